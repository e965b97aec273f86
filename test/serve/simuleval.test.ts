import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AgentServer, startAgent } from '../../src/serve/simuleval.js';
import { Translator } from '../../src/translate/decode/translator.js';
import { randomTranslationRun, type TranslationRun } from '../cli/translation-run.js';
import { evaluateRemotely } from './simuleval-client.js';

const K = 3;
let run: TranslationRun;
let agent: AgentServer;
let translator: Translator;

beforeAll(async () => {
  run = await randomTranslationRun(5);
  agent = await startAgent({ run: run.folder, port: 0, policy: `wait-k:${K}` });
  translator = await Translator.open(run.folder, { beam: 1 });
});

afterAll(async () => {
  await agent.close();
  await translator.close();
  run.remove();
});

interface Segment {
  index: number;
  content: string;
  finished: boolean;
  is_empty: boolean;
  data_type: string;
}

const put = (segment: unknown) => fetch(`${agent.url}/input`, { method: 'PUT', body: JSON.stringify(segment) });
const reset = () => fetch(`${agent.url}/reset`, { method: 'POST' });
const output = async () => (await (await fetch(`${agent.url}/output`)).json()) as Segment;

const evaluate = (words: readonly string[]) => evaluateRemotely(agent.url, words);

describe('the agent of SimulEval', () => {
  it('says what it is', async () => {
    expect(await (await fetch(agent.url)).json()).toMatchObject({ info: expect.stringContaining('wait-k:3') });
  });

  it('refuses a policy that does not exist', async () => {
    await expect(startAgent({ run: run.folder, port: 0, policy: 'guess' })).rejects.toThrow('expected one of wait-k');
  });

  it('translates each sentence as the run does, with the delays of wait-k', async () => {
    for (const line of run.sources.slice(0, 5)) {
      const words = line.split(' ');
      const { prediction, delays } = await evaluate(words);
      const [text] = await translator.lines([line], translator.policy(`wait-k:${K}`), { beam: 1 });
      expect(prediction.join(' ')).toBe(text);
      // Word i (from 0) is written when i + k words are known, or all. One source word is one token here.
      expect(delays).toEqual(prediction.map((_, i) => Math.min(i + K, words.length)));
    }
  });

  it('tries further before it writes, as the run does', async () => {
    const search = { beam: 3, speculate: 2 };
    const trying = await startAgent({ run: run.folder, port: 0, policy: `wait-k:${K}`, ...search });
    const opened = await Translator.open(run.folder, { beam: 3 });
    const lines = run.sources.slice(0, 4);
    const texts = await opened.lines(lines, opened.policy(`wait-k:${K}`), search);
    expect(texts).not.toEqual(await opened.lines(lines, opened.policy(`wait-k:${K}`), { beam: 3 }));
    for (const [i, line] of lines.entries()) {
      const { prediction } = await evaluateRemotely(trying.url, line.split(' '));
      expect(prediction.join(' ')).toBe(texts[i]);
    }
    await trying.close();
    await opened.close();
  });

  it('answers with fields that every version of the evaluator knows', async () => {
    await reset();
    const said = await output();
    expect(said).toEqual({ index: 0, content: '', finished: false, is_empty: true, data_type: 'text' });
  });

  it('begins anew after a reset in the middle of a sentence', async () => {
    const words = run.sources[0].split(' ');
    const whole = await evaluate(words);
    await reset();
    await put({ index: 0, content: words[1], finished: false, data_type: 'text' });
    expect(await evaluate(words)).toEqual(whole);
  });

  it('ends a sentence without a word', async () => {
    expect(await evaluate([])).toEqual({ prediction: [], delays: [] });
  });

  it.each(['{', '{"data_type":"speech","content":[0.5]}', '{"content":7}'])('refuses the input %s', async (body) => {
    await reset();
    const answer = await fetch(`${agent.url}/input`, { method: 'PUT', body });
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain('segment');
  });

  it('ends a sentence that is too long for the model, which the evaluator would wait for', async () => {
    await reset();
    const answer = await put({ index: 0, content: 'x '.repeat(100), finished: true, data_type: 'text' });
    expect(answer.status).toBe(400);
    expect(await output()).toMatchObject({ finished: true });
  });

  it('does not listen to other sites', async () => {
    const answer = await fetch(`${agent.url}/reset`, { method: 'POST', headers: { Origin: 'http://evil.example' } });
    expect(answer.status).toBe(403);
  });
});
