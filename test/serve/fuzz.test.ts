import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { Random } from '../../src/random.js';
import { Translator } from '../../src/translate/decode/translator.js';
import { startTcts } from '../cli/train-process.js';
import { randomTranslationRun, type TranslationRun } from '../cli/translation-run.js';
import { LiveClient } from './live-client.js';

/** `TCTS_FUZZ_SECONDS=600 TCTS_FUZZ_SEED=7 npx vitest run test/serve/fuzz.test.ts` goes on for longer. In CI a minute. */
const SECONDS = Number(process.env.TCTS_FUZZ_SECONDS ?? (process.env.CI ? 60 : 8));
const SEED = process.env.TCTS_FUZZ_SEED ?? String(Date.now());

const HANDSHAKE =
  'GET /live HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n' +
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n';

// As its own process: if it ended, the test would not.
describe(`a server among clients that say anything, seed ${SEED}`, () => {
  const random = new Random(SEED);
  let run: TranslationRun;
  let server: ReturnType<typeof startTcts>;
  let url: string;
  let said = '';
  let expected: string;

  beforeAll(async () => {
    run = await randomTranslationRun(5);
    const translator = await Translator.open(run.folder, { beam: 1 });
    [expected] = await translator.lines([run.sources[0]], translator.policy('wait-k:2'), { beam: 1 });
    await translator.close();
    server = startTcts(run.scratch, 'serve', 'run', '--port', '0');
    server.child.stderr.on('data', (text) => (said += text));
    while (!said.includes('http:')) await once(server.child.stderr, 'data');
    url = /http:\S+/.exec(said)![0].replace('localhost', '127.0.0.1');
  });

  afterAll(async () => {
    server.child.kill('SIGKILL');
    await server.ended;
    run.remove();
  });

  /** Each attacker has its own address, and with it all that one client may do. */
  const address = (): string => `127.0.${1 + random.int(200)}.${1 + random.int(200)}`;
  const pick = <T>(of: readonly T[]): T => of[random.int(of.length)];
  const text = (length: number): string =>
    String.fromCharCode(...Array.from({ length }, () => pick([32 + random.int(95), random.int(0xffff)])));
  const bytes = (length: number): Buffer => Buffer.from(Array.from({ length }, () => random.int(256)));

  /** Messages of the protocol in any order, with fields that are right, wrong, huge or missing. */
  const message = (): unknown => {
    const joined = { word: text(1), joined: pick([true, true, false, 1]) };
    const word = () =>
      pick([...run.sources[0].split(' '), text(random.int(120)), 'x'.repeat(100), '', '\ud800', joined]);
    const number = () => pick(['3', '0', '-1', '1e9', '16000000', 'NaN', '999999999999999999999', '0.5', 'full']);
    const policy = () =>
      pick([
        `wait-k:${number()}`,
        `adaptive:min=${number()},max=${number()}`,
        `wait-if-diff:initial=${number()},step=${number()}`,
        `adaptive:min=${'1,'.repeat(random.int(60))}1`,
        text(random.int(220)),
      ]);
    const lane = pick(['a', 'b', 'c', 'd', 'e', '../a', '', text(5)]);
    const fields: Record<string, unknown> = {
      type: pick(['begin', 'begin', 'word', 'word', 'words', 'end', 'policy', 'stop', 'close', '__proto__', 7]),
      lane,
      run: pick(['run', 'run', 'run', '../run', '', '__proto__', text(40)]),
      policy: policy(),
      word: word(),
      words: Array.from({ length: random.int(70) }, word),
    };
    const wanted = new Map([
      ['begin', ['run', 'policy']],
      ['word', ['word']],
      ['words', ['words']],
      ['policy', ['policy']],
    ]);
    const own = ['type', 'lane', ...(wanted.get(String(fields.type)) ?? [])];
    const kept = own.filter(() => random.uniform() > 0.02);
    return Object.fromEntries(
      kept.map((name) => [name, random.uniform() < 0.02 ? pick([null, 1e308, [], {}, true]) : fields[name]]),
    );
  };
  const mutated = (json: string): string => {
    const at = random.int(json.length + 1);
    return pick([
      () => json,
      () => json,
      () => json,
      () => json.slice(0, at),
      () => json.slice(0, at) + text(3) + json.slice(at),
      () => '['.repeat(random.int(2000)),
      () => json.repeat(random.int(80)),
    ])();
  };

  const patient = async (socket: WebSocket): Promise<boolean> => {
    socket.on('error', () => {});
    return Promise.race([once(socket, 'open').then(() => true), once(socket, 'close').then(() => false)]).catch(
      () => false,
    );
  };
  const talker = async (): Promise<void> => {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/live`, { localAddress: address() });
    if (!(await patient(socket))) return;
    // A slow reader takes nothing in for as long as it lives.
    if (random.uniform() < 0.3) socket.pause();
    for (let i = random.int(120); i > 0 && socket.readyState === WebSocket.OPEN; i--) {
      if (random.uniform() < 0.01) socket.send(bytes(random.int(300)));
      else socket.send(mutated(JSON.stringify(message())));
      if (random.uniform() < 0.1) await sleep(random.int(5));
    }
    socket.resume();
    if (random.uniform() < 0.5) socket.terminate();
    else socket.close();
  };
  const socketOf = async (): Promise<Socket> => {
    const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', localAddress: address() });
    socket.on('error', () => {});
    await once(socket, 'connect');
    return socket;
  };
  /** Frames that are cut off, have no mask, lie about their length, or are none. */
  const frames = async (): Promise<void> => {
    const socket = await socketOf();
    socket.write(HANDSHAKE);
    await sleep(random.int(4));
    const frame = Buffer.concat([
      Buffer.from([pick([0x81, 0x82, 0x80, 0x88, 0x89, 0xf1, 0x01]), pick([0x85, 0xfe, 0xff, 0x05])]),
      bytes(random.int(200)),
    ]);
    for (let i = random.int(5); i >= 0 && !socket.destroyed; i--)
      socket.write(frame.subarray(0, random.int(frame.length)));
    await sleep(random.int(4));
    if (random.uniform() < 0.7) socket.resetAndDestroy();
    else socket.destroy();
  };
  /** Requests that are none, end in the middle, or ask for what there is not. */
  const requests = async (): Promise<void> => {
    const socket = await socketOf();
    const path = pick([
      '/',
      '/live',
      '/api/run?run=',
      `/api/run?run=${encodeURIComponent('../run')}`,
      '/api/translation',
      `/${'x'.repeat(random.int(20_000))}`,
    ]);
    const request = pick([
      `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
      `${pick(['POST', 'PUT', 'HEAD', 'OPTIONS', 'BREW'])} ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\nx`,
      HANDSHAKE.replace('Host: localhost', pick(['Host: evil.example', 'Host: [', `Origin: ${path}`, 'X: y'])),
      HANDSHAKE.replace('13', pick(['12', '-1', '99999999999'])),
    ]);
    socket.write(pick([request, request.slice(0, random.int(request.length)), bytes(100)]));
    await sleep(random.int(6));
    if (random.uniform() < 0.7) socket.resetAndDestroy();
    else socket.destroy();
  };

  it(
    'stays up, keeps its memory, and goes on translating for others',
    async () => {
      const memory = () =>
        Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.child.pid}/status`, 'utf8'))?.[1]) / 1024;
      // From an address of its own: the others may have used up the rate of theirs.
      const honest = (): Promise<string> => LiveClient.wordByWord(url, '127.0.0.9', run.sources[0].split(' '));
      expect(await honest()).toBe(expected);
      const until = performance.now() + 1000 * SECONDS;
      // Beside the attacks, one sentence after the other, word by word.
      const beside = async (): Promise<number> => {
        let sentences = 0;
        for (; performance.now() < until; sentences++) expect(await honest()).toBe(expected);
        return sentences;
      };
      const attack = async (): Promise<{ rounds: number; first: number }> => {
        let [rounds, first] = [0, 0];
        for (; performance.now() < until; rounds++) {
          await Promise.all(Array.from({ length: 12 }, () => pick([talker, talker, frames, requests])()));
          if (rounds === 15) first = memory();
        }
        return { rounds, first };
      };
      const [sentences, { rounds, first }] = await Promise.all([beside(), attack()]);
      expect(sentences).toBeGreaterThan(0);
      expect(await honest()).toBe(expected);
      expect(server.child.exitCode).toBeNull();
      expect(said).not.toMatch(/^\s+at /m);
      if (first > 0) expect(memory() - first).toBeLessThan(200);
      console.log(`seed ${SEED}: ${rounds} rounds of 12 attacks and ${sentences} sentences in ${SECONDS} s`);
    },
    1000 * SECONDS + 60_000,
  );
});
