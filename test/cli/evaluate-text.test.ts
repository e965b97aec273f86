import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startAgent } from '../../src/serve/simuleval.js';
import { evaluateTranslation } from '../../src/translate/evaluate.js';
import type { PipelineConfig } from '../../src/translate/text/pipeline.js';
import { openData } from '../../src/translate/training.js';
import { evaluateRemotely } from '../serve/simuleval-client.js';
import { scoreJson } from './score-run.js';
import { randomTextRun, type TextRun } from './translation-run.js';

const moses = (language: string, lowercase = false): PipelineConfig => ({
  ...{ language, lowercase, normalize: false },
  tokenizer: { kind: 'moses' },
});

const read = (folder: string, name: string): string[] => readFileSync(join(folder, name), 'utf8').trimEnd().split('\n');
const instancesOf = (folder: string): Instance[] => read(folder, 'instances.log').map((line) => JSON.parse(line));

const wordsOf = (text: string): string[] => text.split(/\s+/u).filter((word) => word !== '');

interface Instance {
  index: number;
  prediction: string;
  delays: number[];
  reference: string;
  source_length: number;
}

const ENGLISH = [
  "The dog's ball, a red one, isn't here.",
  'A man (with a hat) said: "No, it is mine!"',
  "They're late; we waited, and waited.",
  'St. James is 5.5 km away, is it?',
  "The boys' bikes are old, but fast.",
  'One word',
].flatMap((line) => [line, line.split(' ').reverse().join(' ')]);
const GERMAN = ENGLISH.map((line) => line.replaceAll('The', 'Der').replaceAll('is', 'ist'));
const JAPANESE = [
  '犬は公園で走る。',
  '彼は本を読む。',
  '赤いボールです。',
  '駅まで歩いた。',
  '雨が降る、今日も。',
  'はい',
].flatMap((line) => [line, Array.from(line).reverse().join('')]);
const paired = (targets: readonly string[]) => ENGLISH.map((line, i) => [line, targets[i]] as const);

describe('a run whose text is in lower case', () => {
  let run: TextRun;
  beforeAll(async () => {
    run = await randomTextRun(3, paired(GERMAN), { source: moses('en', true), target: moses('de', true) });
  });
  afterAll(() => run.remove());

  it('is compared with references in lower case, and its signatures say so', async () => {
    const options = { policies: ['wait-k:3'], beam: 1, earlyEnd: 'block' } as const;
    const [first] = await evaluateTranslation(run.folder, options);
    const outputs = read(first.folder, 'output.txt');
    // References that differ from the outputs in case alone: a perfect translation, as far as such a run can know.
    const corpus = await run.corpusWith(outputs.map((line) => line.toUpperCase()));
    const [scores] = await evaluateTranslation(run.folder, { ...options, corpus });
    expect(scores.sacrebleu).toBeCloseTo(100, 6);
    expect(scores.signature).toContain('|case:lc|');
    expect(scores.chrf).toBeCloseTo(100, 6);
    expect(scores.chrfSignature).toContain('|case:lc|');
    // Whoever scores the files without knowing of this, as SimulEval does, gets the same.
    const { score } = await scoreJson<{ score: number }>(
      ...['bleu', join(scores.folder, 'output.txt'), join(scores.folder, 'reference.txt')],
    );
    expect(score).toBeCloseTo(100, 6);
    expect(instancesOf(scores.folder).map(({ reference }) => reference)).toEqual(outputs);
  });
});

describe('a target that is written without spaces', () => {
  let run: TextRun;
  beforeAll(async () => {
    run = await randomTextRun(5, paired(JAPANESE), { source: moses('en'), target: moses('ja'), bpe: 20 });
  });
  afterAll(() => run.remove());

  it('is scored by characters, in quality and in latency', async () => {
    const options = { policies: ['wait-k:2'], beam: 1, earlyEnd: 'block' } as const;
    const [first] = await evaluateTranslation(run.folder, options);
    const outputs = read(first.folder, 'output.txt');
    const corpus = await run.corpusWith(outputs);
    const [scores] = await evaluateTranslation(run.folder, { ...options, corpus });
    // By 13a a sentence is one word without any 4-gram: a perfect translation would have a BLEU of 0.
    expect(scores.sacrebleu).toBeCloseTo(100, 6);
    expect(scores.bleu).toBeCloseTo(100, 6);
    expect(scores.signature).toContain('|tok:char|');
    expect(scores.unit).toBe('char');
    for (const { prediction, delays, source_length } of instancesOf(scores.folder)) {
      expect(delays).toHaveLength(Array.from(prediction.replaceAll(' ', '')).length);
      expect(delays).toEqual(delays.toSorted((a, b) => a - b));
      expect(delays.at(-1)!).toBeLessThanOrEqual(source_length);
    }
    const latency = await scoreJson<Record<string, number>>('latency', join(scores.folder, 'instances.log'));
    expect(latency.AL).toBeCloseTo(scores.latency.simuleval!.AL, 12);
  });

  it('is counted in words if asked to, beside the other figures', async () => {
    const [scores] = await evaluateTranslation(run.folder, { policies: ['wait-k:2'], beam: 1, unit: 'word' });
    expect(scores.folder).toMatch(/test-wait-2-beam-1-by-word$/);
    for (const { prediction, delays } of instancesOf(scores.folder)) {
      expect(delays).toHaveLength(wordsOf(prediction).length);
    }
  });
});

describe('SimulEval and tcts evaluate', () => {
  let run: TextRun;
  beforeAll(async () => {
    run = await randomTextRun(12, paired(ENGLISH), { source: moses('de'), target: moses('en') });
  });
  afterAll(() => run.remove());

  // What `simuleval --score-only` (evaluator/instance.py, LogInstance, and evaluator.py) does with a folder: each key of a
  // line becomes an attribute of an object on which `reference_length` can only be read; scorers then read the index,
  // prediction, reference, delays and source_length, with --computation-aware elapsed, which is 0 for text. The types of
  // source and target come from config.yaml.
  it('agree on what a folder of results holds', async () => {
    const [{ folder }] = await evaluateTranslation(run.folder, { policies: ['wait-k:3'], beam: 1 });
    expect(read(folder, 'config.yaml')).toEqual(['source_type: text', 'target_type: text']);
    for (const [i, instance] of instancesOf(folder).entries()) {
      expect(instance).not.toHaveProperty('reference_length');
      expect(instance).toMatchObject({ index: i, elapsed: instance.delays.map(() => 0) });
      expect(wordsOf(instance.prediction)).toHaveLength(instance.delays.length);
      expect(instance.reference.trim()).toBe(instance.reference);
    }
  });

  it.each(['allow', 'block'] as const)('agree on words and delays, with early ends: %s', async (earlyEnd) => {
    const [{ folder }] = await evaluateTranslation(run.folder, { policies: ['wait-k:2'], beam: 1, earlyEnd });
    const instances = instancesOf(folder);
    const isCut = ({ delays, source_length }: Instance) => delays.length > 0 && delays.at(-1)! < source_length;
    expect(instances.some(isCut)).toBe(earlyEnd === 'allow');
    // Words with something that the detokeniser has joined to them are the point of this test.
    if (earlyEnd === 'block') expect(instances.some(({ prediction }) => /\p{L}[,.:;!?']/u.test(prediction))).toBe(true);
    const agent = await startAgent({ run: run.folder, port: 0, policy: 'wait-k:2', earlyEnd });
    try {
      for (const [i, line] of run.sources.entries()) {
        const { prediction, delays } = await evaluateRemotely(agent.url, line.split(' '));
        expect({ prediction: prediction.join(' '), delays }).toEqual({
          prediction: instances[i].prediction,
          delays: instances[i].delays,
        });
      }
    } finally {
      await agent.close();
    }
  });
});

describe('a test sentence that is too long for the model', () => {
  it('counts as an empty translation, is named, and costs no other', async () => {
    // The model has 64 positions: 70 words and the end are too many.
    const long = 'word '.repeat(70).trim();
    const pairs = [...paired(GERMAN), [long, 'Wort'] as const];
    const run = await randomTextRun(3, pairs, { source: moses('en'), target: moses('de') });
    try {
      const found: string[] = [];
      const [scores] = await evaluateTranslation(run.folder, {
        ...{ policies: ['wait-k:full'], beam: 1 },
        onTooLong: (line, { message }) => found.push(`${line}: ${message}`),
      });
      expect(found).toEqual(['13: the sentence has 71 tokens including its end, the model reads at most 64']);
      expect(scores).toMatchObject({ sentences: 13, tooLong: 1 });
      const outputs = readFileSync(join(scores.folder, 'output.txt'), 'utf8').split('\n');
      expect(outputs.slice(0, 13).map((line) => line === '')).toEqual([...Array(12).fill(false), true]);
      expect(instancesOf(scores.folder)[12].delays).toEqual([]);
    } finally {
      run.remove();
    }
  });
});

describe('data in other languages than those of the run', () => {
  it('are refused', async () => {
    const run = await randomTextRun(3, paired(GERMAN), { source: moses('en'), target: moses('de') });
    const { corpus, close } = await openData({ from: 'toy', seed: 1, pairs: 60 });
    try {
      await expect(evaluateTranslation(run.folder, { policies: ['wait-k:3'], corpus: corpus.folder })).rejects.toThrow(
        `${corpus.folder}: --data: it translates sov into svo, the run en into de`,
      );
    } finally {
      close();
      run.remove();
    }
  });
});

describe('a source that is written without spaces', () => {
  it('is read and counted character by character', async () => {
    const chars = { language: 'zh', lowercase: false, normalize: false, tokenizer: { kind: 'char' } } as const;
    const pairs = JAPANESE.map((line, i) => [line, GERMAN[i]] as const);
    const run = await randomTextRun(4, pairs, { source: chars, target: moses('de') });
    try {
      const [{ folder }] = await evaluateTranslation(run.folder, {
        ...{ policies: ['wait-k:2'], beam: 1, earlyEnd: 'block' },
      });
      for (const [i, { delays, source_length: length }] of instancesOf(folder).entries()) {
        expect(length).toBe(Array.from(run.sources[i]).length);
        // Wait-2 begins with the second character; the first word is complete when the next token is known not to attach.
        if (delays.length > 1 && length > 4) expect(delays[0]).toBeLessThan(length);
      }
    } finally {
      run.remove();
    }
  });
});
