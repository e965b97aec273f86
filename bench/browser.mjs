/**
 * What it takes to run a model in the page of `tcts serve --browser`: bytes that are sent and time until the first word is
 * written, for a first visit (empty cache), and for a second one.
 *
 *     node bench/browser.mjs [RUN] [--repeat 3]
 *
 * Without a run, the bundled model. Time is from the click on a sentence, wait-1, so that the first word of the
 * translation can be written as soon as runtime and model are there; it is given with the load of the machine.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { repeat: { type: 'string', default: '3' } },
});
const [run] = positionals;
const name = run === undefined ? 'built-in' : basename(resolve(run));
const main = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const folder = run === undefined ? [] : [run];
const server = spawn(process.execPath, [main, 'serve', ...folder, '--port', '0', '--browser']);
let said = '';
while (!said.includes('http://')) said += (await once(server.stderr, 'data'))[0];
const [url] = /http:\S+/.exec(said);
const settings = new URLSearchParams({
  ...{ pace: '10', 'a.run': name },
  ...{ 'a.place': 'page', 'a.policy': 'wait-k', 'a.k': '1' },
});

try {
  for (let i = 0; i < Number(values.repeat); i++) {
    // A profile of its own, on the disk as people have it: a cache in memory keeps no large files.
    const profile = mkdtempSync(join(tmpdir(), 'tcts-profile-'));
    const context = await chromium.launchPersistentContext(profile, {
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      args: ['--no-sandbox', '--disable-gpu'],
    });
    for (const visit of ['first', 'second']) {
      const { bytes, milliseconds } = await visited(context);
      const load = loadavg()[0].toFixed(1);
      console.log(
        `${visit} visit: ${(bytes / 1e6).toFixed(2)} MB, first word after ${(milliseconds / 1000).toFixed(2)} s (load ${load})`,
      );
    }
    await context.close();
    rmSync(profile, { recursive: true });
  }
} finally {
  server.kill('SIGINT');
}

/** Opens the page, plays an example, and counts until its first word is there. */
async function visited(context) {
  const page = await context.newPage();
  const protocol = await context.newCDPSession(page);
  await protocol.send('Network.enable');
  let bytes = 0;
  protocol.on('Network.loadingFinished', ({ encodedDataLength }) => {
    bytes += encodedDataLength;
  });
  await page.goto(`${url}/#translate?${settings}`);
  const example = page.locator('.chip').first();
  await example.waitFor();
  const began = performance.now();
  await example.click();
  await page.locator('.timeline .target').first().waitFor({ timeout: 120_000 });
  const milliseconds = performance.now() - began;
  await page.getByRole('button', { name: 'Play' }).waitFor({ timeout: 120_000 });
  await page.close();
  return { bytes, milliseconds };
}
