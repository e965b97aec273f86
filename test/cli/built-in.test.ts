import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { builtInModel } from '../../src/cli/names.js';
import { verbFinalText } from '../../src/translate/toy.js';
import { temporaryFolder } from '../run/temporary.js';
import { LiveClient } from '../serve/live-client.js';
import { startTcts } from './train-process.js';

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/** Sentences of the grammar that training has not seen, and what the grammar makes of them. */
const { test: pairs } = verbFinalText(1, { train: 0, valid: 0 });
const few = pairs.slice(0, 6);
const about = 'built-in model, trained on a made-up language: English with the verb at the end into plain English';
const inOneLine = (text: string): string => text.replaceAll(/\s+/g, ' ');

describe('the bundled model', () => {
  it('translates before any training, and says what it is', () => {
    const input = few.map(({ source }) => `${source}\n`).join('');
    // The longest sentence is known to wait-9 in time (toy.ts).
    const command = [main, 'translate', '--k', '9', '--beam', '1'];
    const options = { cwd: temporaryFolder(), input, encoding: 'utf8' } as const;
    const { status, stdout, stderr } = spawnSync(process.execPath, command, options);
    expect(status).toBe(0);
    expect(stdout).toBe(few.map(({ target }) => `${target}\n`).join(''));
    expect(inOneLine(stderr)).toContain(about);
  });

  it('is on the page where there are no runs, with what it was trained on', async () => {
    const { child, ended } = startTcts(temporaryFolder(), 'serve', '--port', '0');
    let said = '';
    while (!said.includes('http://')) said += (await once(child.stderr, 'data'))[0];
    const [url] = /http:\S+/.exec(said) ?? [''];
    expect(inOneLine(said)).toContain(about);
    expect(await (await fetch(`${url}/api/runs`)).json()).toEqual([]);
    const { runs } = (await (await fetch(`${url}/api/translation`)).json()) as {
      runs: { id: string; about: string }[];
    };
    expect(runs).toMatchObject([{ id: 'built-in', source: 'verb-final', target: 'english', k: 3 }]);
    expect(runs[0].about).toContain('made-up language');
    const client = await LiveClient.connect(url);
    client.sentence('a', 'built-in', 'wait-k:9', few[0].source.split(' '));
    expect(await client.text('a')).toBe(few[0].target);
    child.kill('SIGINT');
    expect((await ended).code).toBe(0);
  });

  it('is small: parameters alone', () => {
    const sizes = readdirSync(builtInModel.folder, { recursive: true, encoding: 'utf8' })
      .map((name) => statSync(join(builtInModel.folder, name)))
      .filter((file) => file.isFile());
    expect(sizes.reduce((sum, { size }) => sum + size, 0)).toBeLessThan(1e6);
  });
});
