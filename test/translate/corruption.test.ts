import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Random } from '../../src/random.js';
import { translationSchema } from '../../src/translate/config.js';
import { pairCount } from '../../src/translate/corpus/batches.js';
import type { PairedSequences } from '../../src/translate/corpus/corpus.js';
import { TranslationProblem } from '../../src/translate/problem.js';
import { scrambled, swapped } from '../../src/translate/training.js';

it('swapped halves keep the words and the end of the sentence', () => {
  // 2 ends a sentence.
  expect([...swapped([11, 12, 13, 14, 15, 2])]).toEqual([14, 15, 11, 12, 13, 2]);
  expect([...swapped([11, 12, 13, 14, 2])]).toEqual([13, 14, 11, 12, 2]);
  expect([...swapped([11, 2])]).toEqual([11, 2]);
  expect([...swapped([2])]).toEqual([2]);
});

describe('scrambled pairs', () => {
  const sequences = (first: number) => ({
    lengths: new Int32Array(100).fill(5),
    read: (i: number) => Int32Array.of(first + i, first + i + 1, first + i + 2, first + i + 3, 2),
  });
  const pairs: PairedSequences = { count: 100, source: sequences(1000), target: sequences(5000), close: () => {} };

  it('are as many as the share says, of which the source alone is changed, by a seed of their own', () => {
    const { origin, source, target } = scrambled(pairs, 0.3, 1);
    expect(origin.reduce((sum, one) => sum + one, 0)).toBe(30);
    for (let i = 0; i < 100; i++) {
      const own = pairs.source.read(i);
      expect(source.read(i)).toEqual(origin[i] === 1 ? swapped(own) : own);
      expect(target.read(i)).toEqual(pairs.target.read(i));
    }
    expect(scrambled(pairs, 0.3, 1).origin).toEqual(origin);
    expect(scrambled(pairs, 0.3, 2).origin).not.toEqual(origin);
  });
});

describe('the problem', () => {
  const create = (over: object) =>
    TranslationProblem.create(
      translationSchema.parse({
        kind: 'translation',
        data: { from: 'toy', pairs: 60 },
        waits: 9,
        main: 2,
        model: { preset: 'tiny', encoderLayers: 1, decoderLayers: 1, width: 16, ffn: 16, heads: 2 },
        batch: { tokens: 160 },
        mainLoss: 'estimated',
        ...over,
      }),
      { random: new Random(1) },
    );
  let [clean, spoilt]: TranslationProblem[] = [];
  beforeAll(async () => {
    [clean, spoilt] = [await create({}), await create({ corruption: { scrambled: 0.5 } })];
  });
  afterAll(async () => {
    await clean.close();
    await spoilt.close();
  });

  it('validates on what it would validate on', async () => {
    expect(await spoilt.validate()).toBe(await clean.validate());
    const sources = (problem: TranslationProblem) => [...problem.validationBatches()].map(([batch]) => batch.source);
    expect(sources(spoilt)).toEqual(sources(clean));
  });

  it('says which features cost a pass of the model, scrambled or not', () => {
    // The losses behind `training` are estimated by their own pass: `mainLoss: estimated`.
    for (const { features } of [clean, spoilt]) {
      expect(features.filter(({ costly }) => costly).map(({ name }) => name)).toEqual(['training']);
    }
  });

  it('shows the origin, and its oracle leaves scrambled pairs to the waits that see the words in time', async () => {
    expect(clean.oracle).toBeUndefined();
    expect(clean.features.map(({ name }) => name)).toEqual(['lengths', 'training', 'validation', 'step']);
    expect(spoilt.features.at(-1)).toMatchObject({ name: 'origin', width: 1 });
    const status = { update: 1, updates: 10, performance: -1, meanPerformance: -1 };
    const kinds = new Set<number>();
    for (let n = 0; n < spoilt.batchesPerEpoch; n++) {
      const [batch, plain] = [spoilt.nextBatch(), clean.nextBatch()];
      const origins = new Float32Array(pairCount(batch));
      await spoilt.writeFeatures(batch, status, ['origin'], origins);
      const rows = spoilt.oracle!(batch);
      const [{ source, sourceLengths, size }] = batch;
      for (let i = 0; i < pairCount(batch); i++) {
        kinds.add(origins[i]);
        const column = (all: Int32Array) => Array.from({ length: sourceLengths[i] }, (_, t) => all[t * size + i]);
        const own = column(plain[0].source);
        expect(column(source)).toEqual(origins[i] === 1 ? [...swapped(own)] : own);
        const row = [...rows.subarray(9 * i, 9 * i + 9)];
        if (origins[i] === 0) {
          expect(row[1]).toBe(0.5);
          continue;
        }
        // wait-2 of the original is wait-(2 + n/2) of the swapped one; there is none beyond wait-9.
        const shortest = Math.min(9, 2 + Math.ceil((sourceLengths[i] - 1) / 2));
        expect(row.findIndex((p) => p > 0)).toBe(shortest - 1);
        expect(row.reduce((sum, p) => sum + p, 0)).toBeCloseTo(1, 6);
      }
    }
    expect(kinds).toEqual(new Set([0, 1]));
    const [valid] = spoilt.validationBatches();
    const none = new Float32Array(pairCount(valid)).fill(1);
    await spoilt.writeFeatures(valid, status, ['origin'], none);
    expect(none.every((origin) => origin === 0)).toBe(true);
  });
});
