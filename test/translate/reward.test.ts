import { expect, test } from 'vitest';
import type { Batch } from '../../src/translate/corpus/batches.js';
import type { PairedSequences } from '../../src/translate/corpus/corpus.js';
import { RewardGradients, rewardPieces } from '../../src/translate/loss-evaluation.js';

/** Sentence i has this many tokens, all of them i. */
function corpus(lengths: readonly number[]): PairedSequences & { reads: number[] } {
  const reads: number[] = [];
  const side = {
    lengths: Int32Array.from(lengths),
    read: (i: number) => {
      reads.push(i);
      return new Int32Array(lengths[i]).fill(i);
    },
  };
  return { count: lengths.length, source: side, target: side, close: () => {}, reads } as never;
}

test('validation gradients take one batch after the other, by length, and read no other', async () => {
  const pairs = corpus([4, 2, 3, 2]);
  const seen: { indices: number[]; task: number }[] = [];
  const gradients = new RewardGradients({
    size: 7,
    main: 1,
    pairs,
    // Two sentences of two tokens, then the longer ones alone.
    tokens: 4,
    gradient: async ([batch], task) => void seen.push({ indices: [...batch.indices], task }),
  });
  for (let i = 0; i < 4; i++) await gradients.ofValidation(new Float32Array(7));
  const batches = [[1, 3], [2], [0], [1, 3]];
  expect(seen).toEqual(batches.map((indices) => ({ indices, task: 1 })));
  // Source and target of each pair.
  expect(pairs.reads).toEqual(batches.flat().flatMap((i) => [i, i]));
  expect(gradients.turn).toBe(4);
  gradients.turn = 1;
  await gradients.ofValidation(new Float32Array(7));
  expect(seen[4].indices).toEqual([2]);
  await gradients.ofTask([{ indices: [9] } as unknown as Batch], 0, new Float32Array(7));
  expect(seen[5]).toEqual({ indices: [9], task: 0 });
});

test('pieces of the reward pairs have about half a batch of tokens and together all pairs', () => {
  // 60 tokens are six halves of a batch of 20.
  const pieces = rewardPieces(corpus(new Array(12).fill(5)), 20);
  expect(pieces.count).toBe(6);
  const places = Array.from({ length: 6 }, (_, i) => pieces.batchesOf(i).flatMap(({ indices }) => [...indices]));
  expect(places[0]).toEqual([0, 6]);
  expect(places.flat().sort((a, b) => a - b)).toEqual(Array.from({ length: 12 }, (_, i) => i));
});
