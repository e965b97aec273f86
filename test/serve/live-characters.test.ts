import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { limits } from '../../src/serve/limits.js';
import type { ClientMessage } from '../../src/serve/live-socket.js';
import type { TranslationOffer } from '../../src/serve/run-folders.js';
import { type PageServer, startServer } from '../../src/serve/server.js';
import { tokenName } from '../../src/translate/decode/text-stream.js';
import { Translator } from '../../src/translate/decode/translator.js';
import { evaluateTranslation } from '../../src/translate/evaluate.js';
import { arrivingWords } from '../../src/translate/text/arriving.js';
import { randomTextRun, type TextRun } from '../cli/translation-run.js';
import { LiveClient } from './live-client.js';

const PAIRS = [
  ['我们喜欢北京的猫。', 'we like cats'],
  ['他们有狗 T恤', 'they have dogs'],
] as const;

describe.each(['char', 'jieba'] as const)('a source without spaces, cut by %s', (kind) => {
  let run: TextRun;
  let server: PageServer;
  let translator: Translator;

  beforeAll(async () => {
    const text = (language: string, tokenizer: { kind: 'char' | 'jieba' | 'none' }) =>
      ({ language, lowercase: false, normalize: false, tokenizer }) as const;
    run = await randomTextRun(3, PAIRS, { source: text('zh', { kind }), target: text('en', { kind: 'none' }) });
    server = await startServer({ folder: run.folder, port: 0 });
    translator = await Translator.open(run.folder, { beam: 1 });
  });
  afterAll(async () => {
    await server.close();
    await translator.close();
    run.remove();
  });

  /** READs and WRITEs of the stream of `tcts translate`, and what it writes. */
  async function streamed(line: string, policy: string): Promise<{ events: string[]; text: string }> {
    const ids: [action: string, token: number][] = [];
    const onEvent = ({ action, token }: { action: 'READ' | 'WRITE'; token: number }) => ids.push([action, token]);
    const stream = translator.stream(translator.policy(policy), { beam: 1, onEvent });
    let text = '';
    for (const { word, joined } of arrivingWords(line, true)) text += await stream.push(word, joined);
    text += await stream.end();
    const side = { READ: translator.source, WRITE: translator.target };
    return { events: ids.map(([action, id]) => `${action} ${tokenName(side[action as 'READ'], id)}`), text };
  }

  const begin = (lane: string, policy: string): ClientMessage => ({ type: 'begin', lane, run: 'run', policy });
  const character = (character: string, joined: boolean): ClientMessage => ({
    ...{ type: 'word', lane: 'a' },
    word: joined ? { word: character, joined } : character,
  });

  it('is said to be read by characters, and has examples as such text is written', async () => {
    const offered = async () => {
      const answer = await fetch(new URL('/api/translation', server.url));
      return ((await answer.json()) as TranslationOffer).runs[0];
    };
    const { byCharacter, examples } = await offered();
    expect(byCharacter).toBe(true);
    const general = { source: '两个年轻的女孩正在草地上玩一个红色的球。' };
    expect(examples).toEqual([general]);
    await evaluateTranslation(run.folder, { beam: 1, policies: ['wait-k:1'] });
    const own = PAIRS.map(([source, reference]) => ({ source, reference }));
    expect((await offered()).examples).toEqual([...own, general]);
  });

  it.each(PAIRS.map(([line]) => line))('is translated as it arrives, as tcts translate does: %s', async (line) => {
    const { events, text } = await streamed(line, 'wait-k:1');
    const client = await LiveClient.connect(server.url);
    client.send(begin('a', 'wait-k:1'));
    const characters = arrivingWords(line, true);
    for (const { word, joined = false } of characters.slice(0, -1)) client.send(character(word, joined));
    // Before the last character is sent.
    await client.until((m) => m.type === 'event' && m.action === 'WRITE');
    const before = client.events('a');
    expect(before).toEqual(events.slice(0, before.length));
    client.send(character(characters.at(-1)!.word, true));
    client.send({ type: 'end', lane: 'a' });
    expect(await client.text('a')).toBe(text);
    expect(client.events('a')).toEqual(events);
    expect([text]).toEqual(await translator.lines([line], translator.policy('wait-k:1'), { beam: 1 }));
    await client.close();
  });

  it('is translated the same when it is pasted, in portions', async () => {
    const [[line]] = PAIRS;
    const words = arrivingWords(line, true).map(({ word, joined }) =>
      joined ? { word, joined: true as const } : word,
    );
    const client = await LiveClient.connect(server.url);
    client.send(begin('a', 'wait-k:2'));
    client.send({ type: 'words', lane: 'a', words: words.slice(0, 4) });
    client.send({ type: 'words', lane: 'a', words: words.slice(4) });
    client.send({ type: 'end', lane: 'a' });
    const { events, text } = await streamed(line, 'wait-k:2');
    expect(await client.text('a')).toBe(text);
    expect(client.events('a')).toEqual(events);
    await client.close();
  });

  it('is not read before it arrives: what is written is the same whatever follows', async () => {
    const shared = '我们喜欢北京的';
    const client = await LiveClient.connect(server.url);
    const written: string[][] = [];
    for (const [lane, rest] of [
      ['a', '猫。'],
      ['b', '狗有们我'],
    ]) {
      const words = arrivingWords(shared + rest, true).map(({ word, joined }) =>
        joined ? { word, joined: true as const } : word,
      );
      client.send(begin(lane, 'wait-k:1'));
      client.send({ type: 'words', lane, words });
      client.send({ type: 'end', lane });
      await client.text(lane);
      written.push(client.events(lane));
    }
    // Up to the first token that the lines do not share.
    const same = written[0].findIndex((event, i) => event !== written[1][i]);
    expect(written[0][same]).toMatch(/^READ/);
    expect(written[0].slice(0, same).filter((event) => event.startsWith('WRITE')).length).toBeGreaterThan(0);
    await client.close();
  });

  it('has a limit in characters, which Jieba may hold back, and joins nothing but characters', async () => {
    const client = await LiveClient.connect(server.url);
    client.send(begin('a', 'wait-k:1'));
    const held = Array.from({ length: limits.wordsOfMessage }, () => ({ word: '啊', joined: true as const }));
    for (let i = 0; i <= limits.sentenceWords; i += held.length) client.send({ type: 'words', lane: 'a', words: held });
    const most = kind === 'char' ? '63 tokens' : `${limits.sentenceWords} characters`;
    await expect(client.text('a')).rejects.toThrow(`a sentence can have at most ${most}, this one has more`);
    client.socket.send('{"type":"word","lane":"a","word":{"word":"我们","joined":true}}');
    const refused = await client.until((m) => m.type === 'error' && m.lane === undefined);
    expect(refused).toMatchObject({ message: 'word.word: expected one character' });
    await client.close();
  });
});
