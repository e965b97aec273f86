import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { limits } from '../../src/serve/limits.js';
import { type PageServer, startServer } from '../../src/serve/server.js';
import { Translator } from '../../src/translate/decode/translator.js';
import { randomTranslationRun, type TranslationRun } from '../cli/translation-run.js';
import { LiveClient } from './live-client.js';

let run: TranslationRun;
let server: PageServer;
let translator: Translator;

beforeAll(async () => {
  run = await randomTranslationRun(5);
  server = await startServer({ folder: run.folder, port: 0 });
  translator = await Translator.open(run.folder, { beam: 1 });
});

afterAll(async () => {
  await server.close();
  await translator.close();
  run.remove();
});

/** What the run writes for whole lines, greedily. */
function expected(lines: readonly string[], policy: string): Promise<string[]> {
  return translator.lines(lines, translator.policy(policy), { beam: 1 });
}

const eventually = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
};

describe('a sentence over the WebSocket', () => {
  it('is tried further before a token is written, as a line is, where the server says so', async () => {
    const search = { beam: 3, speculate: 2 };
    const trying = await startServer({ folder: run.folder, port: 0, ...search });
    const opened = await Translator.open(run.folder, { beam: 3 });
    const client = await LiveClient.connect(trying.url);
    const lines = run.sources.slice(0, 4);
    const policy = opened.policy('wait-k:2');
    for (const [i, line] of lines.entries()) client.sentence(`lane-${i}`, 'run', 'wait-k:2', line.split(' '));
    const written = await Promise.all(lines.map((_, i) => client.text(`lane-${i}`)));
    expect(written).toEqual(await opened.lines(lines, policy, search));
    expect(written).not.toEqual(await opened.lines(lines, policy, { beam: 3 }));
    await client.close();
    await trying.close();
    await opened.close();
  });

  it.each([
    ['mma-h', 'monotonic'],
    ['hmt', 'hmt:p=0.5'],
  ] as const)(
    'is translated by a model that learned when to read, %s, which can also run in the page',
    async (attention, policy) => {
      const own = await randomTranslationRun(3, attention);
      const deciding = await startServer({ folder: own.folder, port: 0, browser: true });
      const opened = await Translator.open(own.folder, { beam: 1 });
      const get = async (path: string) => (await fetch(new URL(path, deciding.url))).json();
      const offered = (await get('/api/translation')) as {
        places: string[];
        runs: { id: string; policies: string[] }[];
      };
      expect(offered.places).toHaveLength(2);
      expect(offered.runs[0].policies[0]).toBe(attention === 'hmt' ? 'hmt' : 'monotonic');
      expect(await get(`/api/model?run=${offered.runs[0].id}`)).toContain('decoder-step.onnx');
      const client = await LiveClient.connect(deciding.url);
      const lines = own.sources.slice(0, 3);
      for (const [i, line] of lines.entries()) client.sentence(`lane-${i}`, 'run', policy, line.split(' '));
      const written = await Promise.all(lines.map((_, i) => client.text(`lane-${i}`)));
      expect(written).toEqual(await opened.lines(lines, opened.policy(policy), { beam: 1 }));
      expect(written.join('')).not.toBe('');
      await client.close();
      await deciding.close();
      await opened.close();
      own.remove();
    },
  );

  it('is translated as a line is', async () => {
    const [line] = run.sources;
    const client = await LiveClient.connect(server.url);
    client.sentence('a', 'run', 'wait-k:2', line.split(' '));
    expect(await client.text('a')).toBe((await expected([line], 'wait-k:2'))[0]);
    await client.close();
  });

  it('can come in portions, as a text that is pasted does', async () => {
    const [line] = run.sources;
    const [first, ...others] = line.split(' ');
    const client = await LiveClient.connect(server.url);
    client.send({ type: 'begin', lane: 'a', run: 'run', policy: 'wait-k:2' });
    client.send({ type: 'words', lane: 'a', words: [first] });
    client.send({ type: 'words', lane: 'a', words: others });
    client.send({ type: 'end', lane: 'a' });
    expect(await client.text('a')).toBe((await expected([line], 'wait-k:2'))[0]);
    await client.close();
  });

  it('is written while its words arrive: wait-2 writes after the second word', async () => {
    const [first, second] = run.sources[0].split(' ');
    const client = await LiveClient.connect(server.url);
    client.send({ type: 'begin', lane: 'a', run: 'run', policy: 'wait-k:2' });
    client.send({ type: 'word', lane: 'a', word: first });
    client.send({ type: 'word', lane: 'a', word: second });
    const written = await client.until((m) => m.type === 'event' && m.action === 'WRITE');
    // AL = g_1 = 2 and AP = 2 / (2 · 1) after one token written with two read.
    expect(written).toMatchObject({ read: 2, written: 1, AL: 2, AP: 1 });
    expect(client.events('a').slice(0, 2)).toEqual([`READ ${first}`, `READ ${second}`]);
    await client.close();
  });

  it('goes on with another policy when it is changed', async () => {
    const words = run.sources.find((line) => line.split(' ').length >= 7)!.split(' ');
    const client = await LiveClient.connect(server.url);
    client.send({ type: 'begin', lane: 'a', run: 'run', policy: 'wait-k:1' });
    client.send({ type: 'word', lane: 'a', word: words[0] });
    await client.until((m) => m.type === 'event' && m.action === 'WRITE');
    client.send({ type: 'policy', lane: 'a', policy: 'wait-k:4' });
    for (const word of words.slice(1, 6)) client.send({ type: 'word', lane: 'a', word });
    await client.until((m) => m.type === 'event' && m.read === 6);
    // One token was written; wait-4 writes the second when 1 + 4 source tokens are known, the third with the sixth.
    const actions = client.events('a').map((event) => event.split(' ')[0]);
    expect(actions.slice(0, 7)).toEqual(['READ', 'WRITE', 'READ', 'READ', 'READ', 'READ', 'WRITE']);
    await client.close();
  });

  it('can run beside another with a policy of its own', async () => {
    const [line] = run.sources;
    const client = await LiveClient.connect(server.url);
    client.sentence('a', 'run', 'wait-k:1', line.split(' '));
    client.sentence('b', 'run', 'wait-if-diff:initial=2,step=1', line.split(' '));
    expect(await client.text('a')).toBe((await expected([line], 'wait-k:1'))[0]);
    expect(await client.text('b')).toBe((await expected([line], 'wait-if-diff:initial=2,step=1'))[0]);
    await client.close();
  });

  it('takes the place of the one before it in its lane, which is not heard of again', async () => {
    const [before, after] = run.sources;
    const client = await LiveClient.connect(server.url);
    client.sentence('a', 'run', 'wait-k:1', before.split(' '));
    client.sentence('a', 'run', 'wait-k:2', after.split(' '));
    await client.text('a');
    await client.close();
    const begun = client.messages.findLastIndex(({ type }) => type === 'begun');
    const own = client.messages.slice(begun).map((m) => (m.type === 'text' ? m.text : ''));
    expect(own.join('')).toBe((await expected([after], 'wait-k:2'))[0]);
    expect(client.messages.filter(({ type }) => type === 'done').length).toBe(1);
  });

  it('without a word is translated to nothing', async () => {
    const client = await LiveClient.connect(server.url);
    client.sentence('a', 'run', 'wait-k:2', []);
    expect(await client.text('a')).toBe('');
    await client.close();
  });

  it('is refused with a reason where the run or the policy does not exist', async () => {
    const client = await LiveClient.connect(server.url);
    client.send({ type: 'begin', lane: 'a', run: '../run', policy: 'wait-k:2' });
    client.send({ type: 'begin', lane: 'b', run: 'run', policy: 'guess' });
    await expect(client.text('a')).rejects.toThrow('there is no such run');
    await expect(client.text('b')).rejects.toThrow('expected one of wait-k');
    await client.close();
    expect(server.sentences).toBe(0);
  });
});

describe('many sentences at a time', () => {
  it('come out as each on its own, up to the limit, and the next one is told to wait', async () => {
    const count = limits.streams;
    const lines = Array.from({ length: count }, (_, i) => run.sources[i % run.sources.length]);
    const clients = await Promise.all(
      Array.from({ length: Math.ceil(count / limits.lanes) + 1 }, () => LiveClient.connect(server.url)),
    );
    const place = (i: number) => ({ client: clients[Math.floor(i / limits.lanes)], lane: `l${i % limits.lanes}` });
    lines.forEach((line, i) => {
      const { client, lane } = place(i);
      client.send({ type: 'begin', lane, run: 'run', policy: 'wait-k:2' });
      client.send({ type: 'word', lane, word: line.split(' ')[0] });
    });
    await eventually(() => server.sentences === count);
    const late = clients.at(-1)!;
    late.send({ type: 'begin', lane: 'late', run: 'run', policy: 'wait-k:2' });
    await expect(late.text('late')).rejects.toThrow('translating the maximum number of sentences');
    lines.forEach((line, i) => {
      const { client, lane } = place(i);
      client.send({ type: 'words', lane, words: line.split(' ').slice(1) });
      client.send({ type: 'end', lane });
    });
    const texts = await Promise.all(lines.map((_, i) => place(i).client.text(place(i).lane)));
    expect(texts).toEqual(await expected(lines, 'wait-k:2'));
    expect(server.sentences).toBe(0);
    await Promise.all(clients.map((client) => client.close()));
  });

  it('are dropped with the client that leaves in the middle', async () => {
    const client = await LiveClient.connect(server.url);
    for (const lane of ['a', 'b']) {
      client.send({ type: 'begin', lane, run: 'run', policy: 'wait-k:2' });
      for (const word of run.sources[0].split(' ')) client.send({ type: 'word', lane, word });
    }
    await eventually(() => server.sentences === 2);
    client.socket.terminate();
    await eventually(() => server.sentences === 0);
  });
});

describe('a client that overdoes it', () => {
  const message = { type: 'word', lane: 'a', word: 'x' } as const;

  it('is cut off for a message that is too large', async () => {
    const client = await LiveClient.connect(server.url);
    client.socket.send('x'.repeat(limits.messageBytes + 1));
    expect(await client.closed).toBe(1009);
  });

  it('is cut off for a flood of messages', async () => {
    const client = await LiveClient.connect(server.url);
    for (let i = 0; i < 2 * limits.messageBurst; i++) client.send(message);
    expect(await client.closed).toBe(1008);
  });

  it('is cut off for anything but text', async () => {
    const client = await LiveClient.connect(server.url);
    client.socket.send(Buffer.from([1, 2, 3]));
    expect(await client.closed).toBe(1008);
  });

  it.each([
    ['no JSON', '{', 'JSON'],
    ['an unknown type', '{"type":"shutdown"}', 'Invalid'],
    ['a field too many', '{"type":"end","lane":"a","x":1}', 'Unrecognized key'],
    ['a word with a space', '{"type":"word","lane":"a","word":"a b"}', 'word'],
    ['a portion without words', '{"type":"words","lane":"a","words":[]}', 'words'],
    [
      'a portion that is too large',
      JSON.stringify({ type: 'words', lane: 'a', words: new Array(65).fill('x') }),
      'words',
    ],
    ['a lane that is a path', '{"type":"end","lane":"../a"}', 'lane'],
  ])('is told what is wrong with %s', async (_, text, reason) => {
    const client = await LiveClient.connect(server.url);
    client.socket.send(text);
    const answer = await client.until((m) => m.type === 'error');
    expect(answer).toMatchObject({ message: expect.stringContaining(reason) });
    await client.close();
  });

  it('can have so many lanes and no more', async () => {
    const client = await LiveClient.connect(server.url);
    for (let i = 0; i <= limits.lanes; i++) {
      client.send({ type: 'begin', lane: `l${i}`, run: 'run', policy: 'wait-k:2' });
    }
    await expect(client.text(`l${limits.lanes}`)).rejects.toThrow(`${limits.lanes} sentences at a time`);
    await client.close();
  });

  it('cannot make a sentence grow without end', async () => {
    const client = await LiveClient.connect(server.url);
    // The model has 64 positions, one of them for the end.
    client.sentence('a', 'run', 'wait-k:2', new Array(64).fill('x'));
    await expect(client.text('a')).rejects.toThrow('a sentence can have at most 63 tokens');
    await client.close();
  });
});

describe('stopping', () => {
  it('translates what has come in, then says goodbye', async () => {
    const own = await startServer({ folder: run.folder, port: 0 });
    const [line] = run.sources;
    const client = await LiveClient.connect(own.url);
    client.send({ type: 'begin', lane: 'a', run: 'run', policy: 'wait-k:2' });
    await client.until((m) => m.type === 'begun');
    for (const word of line.split(' ')) client.send({ type: 'word', lane: 'a', word });
    client.send({ type: 'end', lane: 'a' });
    await client.until((m) => m.type === 'event');
    await own.close();
    expect(await client.closed).toBe(1001);
    expect(await client.text('a')).toBe((await expected([line], 'wait-k:2'))[0]);
  });
});
