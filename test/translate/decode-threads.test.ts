import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { lineIds } from '../../src/translate/decode/text-stream.js';
import { Translator } from '../../src/translate/decode/translator.js';
import { waitK } from '../../src/translate/index.js';
import { randomTranslationRun, type TranslationRun } from '../cli/translation-run.js';

let run: TranslationRun;

beforeAll(async () => {
  run = await randomTranslationRun(1);
});

afterAll(() => run.remove());

/** Whole sentences and beginnings of them: 40 of different lengths. */
function texts({ source }: Translator): Int32Array[] {
  const lines = Array.from({ length: 40 }, (_, i) => {
    const words = run.sources[i % run.sources.length].split(' ');
    return words.slice(0, 1 + (i % words.length)).join(' ');
  });
  return lines.map((line) => lineIds(source, line));
}

describe('sentences that several threads share', () => {
  it.each([
    ['wait-k:2', 1],
    ['wait-k:2', 3],
    ['adaptive:from=.6', 1],
    ['alignatt:f=1', 2],
  ])('have the same translations under %s with a beam of %i, in the same order', async (text, beam) => {
    const options = { beam, batch: 4 };
    const alone = await Translator.open(run.folder, { beam });
    const shared = await Translator.open(run.folder, { beam, workers: 3 });
    try {
      const sources = texts(alone);
      const expected = await alone.translate(sources, alone.policy(text), options);
      const done: number[] = [];
      const onProgress = (count: number): void => void done.push(count);
      // Twice: the threads may still be starting while the first ones are translated.
      expect(await shared.translate(sources, shared.policy(text), { ...options, onProgress })).toEqual(expected);
      expect(await shared.translate(sources, shared.policy(text), options)).toEqual(expected);
      expect(done.at(-1)).toBe(40);
      expect(done).toEqual(done.toSorted((a, b) => a - b));
    } finally {
      await alone.close();
      await shared.close();
    }
  });

  it('are refused by their own number if one is too long', async () => {
    const translator = await Translator.open(run.folder, { beam: 1, workers: 2 });
    try {
      const sources = texts(translator);
      const long = new Int32Array(5000).fill(5);
      await expect(translator.translate(sources.with(17, long), waitK(3), { beam: 1, batch: 4 })).rejects.toThrow(
        /sentence 18\b/,
      );
    } finally {
      await translator.close();
    }
  });

  it('fail with the reason if a thread cannot translate them', async () => {
    const translator = await Translator.open(run.folder, { beam: 1, workers: 2 });
    try {
      const own = { ...waitK(3), name: 'known here only' };
      const again = async (): Promise<void> => {
        for (let i = 0; i < 50; i++) await translator.translate(texts(translator), own, { beam: 1, batch: 2 });
      };
      await expect(again()).rejects.toThrow(/a decoding thread failed: .*known here only/);
    } finally {
      await translator.close();
    }
  });

  it('fail if a thread cannot open the models', async () => {
    const broken = await randomTranslationRun(2);
    const translator = await Translator.open(broken.folder, { beam: 1, workers: 2 });
    try {
      writeFileSync(join(broken.folder, 'checkpoints', 'best.safetensors'), 'nothing');
      const again = async (): Promise<void> => {
        for (let i = 0; i < 50; i++) await translator.translate(texts(translator), waitK(3), { beam: 1, batch: 2 });
      };
      await expect(again()).rejects.toThrow(/best\.safetensors/);
    } finally {
      await translator.close();
      broken.remove();
    }
  });
});
