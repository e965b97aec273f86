import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTcts, tcts } from '../cli/train-process.js';
import { randomTranslationRun, type TranslationRun } from '../cli/translation-run.js';
import { LiveClient } from './live-client.js';

let run: TranslationRun;

beforeAll(async () => {
  run = await randomTranslationRun(5);
});

afterAll(() => run.remove());

/** The command line as a process, and the address that it has announced. */
async function start(...args: string[]) {
  const started = startTcts(run.scratch, 'serve', ...args);
  let said = '';
  for (;;) {
    const [text] = await Promise.race([
      once(started.child.stderr, 'data'),
      started.ended.then(({ stderr }) => Promise.reject(new Error(stderr))),
    ]);
    said += text;
    const [url] = /http:\S+/.exec(said) ?? [];
    if (url !== undefined) return { ...started, url };
  }
}

describe('tcts serve', () => {
  it('serves the page on loopback, and stops at Ctrl-C when the sentence under way is complete', async () => {
    const { child, ended, url } = await start('run', '--port', '0');
    expect(url).toMatch(/^http:\/\/localhost:\d+$/);
    expect(await (await fetch(url)).text()).toContain('<title>tcts</title>');
    const client = await LiveClient.connect(url);
    client.sentence('a', 'run', 'wait-k:2', run.sources[0].split(' '));
    await client.until((m) => m.type === 'event');
    child.kill('SIGINT');
    expect(await client.text('a')).not.toBe('');
    expect(await client.closed).toBe(1001);
    const { code, stderr } = await ended;
    expect(code).toBe(0);
    expect(stderr).toContain('stopping');
  });

  it('beyond loopback warns, and prints a link with a token that it has made', async () => {
    const { child, ended, url } = await start('run', '--port', '0', '--host', '0.0.0.0');
    const { port, searchParams } = new URL(url);
    expect(searchParams.get('token')).toMatch(/^[\w-]{22}$/);
    expect((await fetch(`http://127.0.0.1:${port}/api/runs`)).status).toBe(401);
    child.kill('SIGINT');
    expect((await ended).stderr).toContain('warning: 0.0.0.0 can be reached from other machines');
  });

  it('is an agent of SimulEval with the policy that the run was trained for', async () => {
    const { child, ended, url } = await start('run', '--simuleval', '0');
    expect(await (await fetch(url)).json()).toEqual({ info: 'tcts, run, wait-k:3' });
    child.kill('SIGTERM');
    expect((await ended).code).toBe(0);
  });

  it.each([
    [['nowhere'], 'there is no such folder'],
    [['run', '--port', 'x'], '--port: expected a port'],
    [['.', '--simuleval', '0'], 'an agent translates with one run'],
    [['run', '--token', 'short'], '--token: expected a token of at least 8 characters'],
    [['run', '--speculate', '2'], '--speculate: there is nothing to choose from with a beam of 1'],
    [['run', '--token-env', 'TCTS_ABSENT'], '--token-env: the environment variable TCTS_ABSENT is not set'],
  ])('refuses %j with a sentence', async (args, reason) => {
    const { code, stderr } = await tcts(run.scratch, 'serve', ...args);
    expect(code).toBe(1);
    expect(stderr).toContain(reason);
    expect(stderr).not.toContain('    at ');
  });
});
