import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { limits } from '../../src/serve/limits.js';
import { type PageServer, startServer } from '../../src/serve/server.js';
import { Translator } from '../../src/translate/decode/translator.js';
import { randomTranslationRun, type TranslationRun } from '../cli/translation-run.js';
import { LiveClient } from './live-client.js';

const SCHEDSTAT = '/proc/thread-self/schedstat';

/** Milliseconds of the processor that this thread has had: waiting for a busy machine does not count. */
const spent = (): number => Number(readFileSync(SCHEDSTAT, 'utf8').split(' ')[0]) / 1e6;

describe.skipIf(!existsSync(SCHEDSTAT))('one client', () => {
  let run: TranslationRun;
  let server: PageServer;
  let expected: string;

  beforeAll(async () => {
    run = await randomTranslationRun(5);
    server = await startServer({ folder: run.folder, port: 0, browser: true });
    const translator = await Translator.open(run.folder, { beam: 1 });
    [expected] = await translator.lines([run.sources[0]], translator.policy('wait-k:2'), { beam: 1 });
    await translator.close();
    await honest();
  });
  afterAll(async () => {
    await server.close();
    run.remove();
  });

  /** What becomes of a sentence of somebody else, word by word. */
  async function honest(): Promise<string> {
    const client = await LiveClient.connect(server.url, {}, '127.0.0.9');
    client.send({ type: 'begin', lane: 'a', run: 'run', policy: 'wait-k:2' });
    for (const word of run.sources[0].split(' ')) {
      client.send({ type: 'word', lane: 'a', word });
      await sleep(20);
    }
    client.send({ type: 'end', lane: 'a' });
    const text = await client.text('a');
    await client.close();
    return text;
  }

  const begin = (policy: string) => JSON.stringify({ type: 'begin', lane: 'a', run: 'run', policy });
  const words = JSON.stringify({
    type: 'words',
    lane: 'a',
    words: new Array(limits.wordsOfMessage).fill('x'.repeat(55)),
  });
  const floods: readonly (readonly [what: string, messages: readonly string[], connections: number])[] = [
    ['the longest messages there are', [begin('wait-k:1'), words, words, words, words], 1],
    ['the widest policy there is', [begin('adaptive:min=1,max=1000')], 1],
    ['text that is no message', ['['.repeat(limits.messageBytes - 10)], 1],
    ['the longest messages over a hundred connections', [begin('wait-k:1'), words, words, words, words], 100],
    ['runs that there are not, over a hundred connections', [begin('wait-k:1').replace('"run"', '"none"')], 100],
  ];

  it.each(floods)('keeps the server for no more than 50 ms at a stretch with %s', async (_, messages, connections) => {
    const turns: number[] = [];
    let last = spent();
    const watch = setInterval(() => {
      const now = spent();
      turns.push(now - last);
      last = now;
    }, 2);
    const data = { url: server.url, from: '127.0.0.7', connections, messages, count: limits.messageBurst };
    const flood = new Worker(new URL('flood.mjs', import.meta.url), { workerData: data });
    const texts: string[] = [];
    const sent = once(flood, 'message');
    while (texts.length < 3) texts.push(await honest());
    await sent;
    flood.postMessage('end');
    await once(flood, 'exit');
    clearInterval(watch);
    expect(Math.max(...turns)).toBeLessThan(50);
    // Neither cut off nor disturbed: the limits of one client are its own.
    expect(texts).toEqual([expected, expected, expected]);
    await sleep(1100);
  });

  it('waits for the export of a model, which others do not', async () => {
    const order: string[] = [];
    const ask = async (path: string, name: string): Promise<void> => {
      expect((await fetch(server.url + path)).status).toBe(200);
      order.push(name);
    };
    // The first one loads what it takes, and lets go of its thread meanwhile.
    await ask('/api/model?run=run', 'first export');
    const exported = ask('/api/model?run=run&device=webgpu', 'export');
    await sleep(3);
    await Promise.all([exported, ask('/api/runs', 'list'), ask('/api/translation', 'offer'), honest()]);
    expect(order.at(-1)).toBe('export');
  });
});
