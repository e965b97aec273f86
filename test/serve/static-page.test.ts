import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, vi } from 'vitest';
import { verbFinalText } from '../../src/translate/toy.js';
import { temporaryFolder } from '../run/temporary.js';
import { describeWithBrowser, launchBrowser, openPage, outcome, PATIENCE } from './browser.js';

vi.setConfig({ testTimeout: 1.2 * PATIENCE });

const root = fileURLToPath(new URL('../..', import.meta.url));
const TYPES: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };

/** Files as they are, below a path, without compression: the least that a host of static sites does. */
async function serveFiles(folder: string, below: string) {
  const asked: string[] = [];
  const server = createServer(({ url = '' }, response) => {
    const name = url.slice(below.length) || 'index.html';
    asked.push(name);
    try {
      const content = readFileSync(join(folder, name));
      response.writeHead(200, { 'content-type': TYPES[extname(name)] ?? 'application/octet-stream' }).end(content);
    } catch {
      response.writeHead(404).end();
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, asked, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${below}` };
}

describeWithBrowser('the live page of the site', () => {
  it('translates in the browser, from files alone, wherever the site lies', async () => {
    const folder = temporaryFolder();
    execFileSync(process.execPath, [join(root, 'docs/typedoc/live.mjs'), folder]);
    const { server, asked, url } = await serveFiles(folder, '/some/project/live/');
    const browser = await launchBrowser();
    try {
      const { page, faults } = await openPage(browser, url);
      const [{ source, target }] = verbFinalText(1, { train: 0, valid: 0, test: 4 }).test;
      await page.getByRole('slider', { name: 'pace' }).fill('10');
      await page.getByRole('slider', { name: 'k =' }).fill('9');
      await page.getByRole('button', { name: source }).click();
      await page.locator('.timeline .target').first().waitFor();
      expect(await outcome(page)).toBe(target);
      expect(await page.getByText('trained on a made-up language').count()).toBe(1);
      expect(await page.getByRole('link', { name: 'Runs' }).count()).toBe(0);
      expect(await page.getByRole('link', { name: 'Documentation' }).getAttribute('href')).toBe('../index.html');
      expect(faults).toEqual([]);
      // What has changed is asked for again and again only where there is a server to know it.
      expect(asked.filter((name) => name === 'files/translation.json')).toHaveLength(1);
    } finally {
      await browser.close();
      server.close();
    }
  });
});
