import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InputError } from '../../src/errors.js';
import { BatchIterator } from '../../src/translate/corpus/batches.js';
import type { PairedSequences } from '../../src/translate/corpus/corpus.js';

/** Pairs in memory; sentence i is made of the token 10 + i and ends with 2. */
function pairs(lengths: readonly (readonly [number, number])[]): PairedSequences {
  const side = (which: 0 | 1) => {
    const sizes = Int32Array.from(lengths, (pair) => pair[which]);
    const read = (i: number): Int32Array =>
      Int32Array.from({ length: sizes[i] }, (_, t) => (t + 1 < sizes[i] ? 10 + i : 2));
    return { lengths: sizes, count: lengths.length, read } as unknown as PairedSequences['source'];
  };
  return { count: lengths.length, source: side(0), target: side(1), close: () => undefined };
}

const someLengths = fc.array(fc.tuple(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 20 })), {
  minLength: 1,
  maxLength: 80,
});

describe('batches', () => {
  it('cover every pair exactly once an epoch, within the bound on padded target tokens', () => {
    fc.assert(
      fc.property(someLengths, fc.integer({ min: 20, max: 100 }), fc.boolean(), (lengths, maxTokens, shuffle) => {
        const batches = new BatchIterator(pairs(lengths), { maxTokens, seed: 1, shuffle });
        for (let epoch = 0; epoch < 3; epoch++) {
          const seen: number[] = [];
          for (let left = epoch === 0 ? batches.count : Infinity; left > 0; left--) {
            if (epoch > 0 && seen.length === lengths.length) break;
            const batch = batches.next();
            expect(batch.epoch).toBe(epoch);
            expect(batch.size * batch.targetLength).toBeLessThanOrEqual(maxTokens);
            seen.push(...batch.indices);
          }
          expect(seen.sort((a, b) => a - b)).toEqual(lengths.map((_, i) => i));
        }
      }),
    );
  });

  it('are padded at the right, time-major, with the ends of sentences', () => {
    const batches = new BatchIterator(
      pairs([
        [3, 2],
        [1, 3],
      ]),
      { maxTokens: 100, seed: 1, shuffle: false },
    );
    const batch = batches.next();
    // Sorted by target length: pair 0 (3 source, 2 target tokens), pair 1 (1 source, 3 target tokens).
    expect([...batch.indices]).toEqual([0, 1]);
    expect([...batch.source]).toEqual([10, 2, 10, 1, 2, 1]); // [3, 2]
    expect([...batch.target]).toEqual([10, 11, 2, 11, 1, 2]); // [3, 2]
    expect([...batch.sourceLengths]).toEqual([3, 1]);
    expect([...batch.targetLengths]).toEqual([2, 3]);
    expect(batch.size * batch.sourceLength).toBe(batch.source.length);
  });

  it('hold sentences of similar length', () => {
    const lengths = Array.from({ length: 400 }, (_, i): [number, number] => [5, 1 + (i % 40)]);
    const batches = new BatchIterator(pairs(lengths), { maxTokens: 200, seed: 1 });
    let padded = 0;
    let tokens = 0;
    for (const batch of batches.rest()) {
      padded += batch.target.length;
      tokens += batch.targetLengths.reduce((a, b) => a + b);
    }
    // Unsorted, batches of such sentences would be half padding.
    expect(tokens / padded).toBeGreaterThan(0.9);
  });

  it('come in another order every epoch and for every seed, in the same for the same', () => {
    const lengths = Array.from({ length: 100 }, (_, i): [number, number] => [3, 1 + (i % 7)]);
    const order = (seed: number, epoch: number): number[] => {
      const batches = new BatchIterator(pairs(lengths), { maxTokens: 20, seed }, { epoch, position: 0 });
      return [...batches.rest()].flatMap((batch) => [...batch.indices]);
    };
    expect(order(1, 0)).toEqual(order(1, 0));
    expect(order(1, 1)).not.toEqual(order(1, 0));
    expect(order(2, 0)).not.toEqual(order(1, 0));
  });

  it('go on exactly from a state saved in the middle of an epoch', () => {
    fc.assert(
      fc.property(someLengths, fc.nat(30), (lengths, steps) => {
        const options = { maxTokens: 40, seed: 'x' };
        const whole = new BatchIterator(pairs(lengths), options);
        for (let i = 0; i < steps; i++) whole.next();
        const resumed = new BatchIterator(pairs(lengths), options, JSON.parse(JSON.stringify(whole.state())));
        for (let i = 0; i < 10; i++) expect(resumed.next()).toEqual(whole.next());
      }),
    );
  });

  it('keep to a number of sentences', () => {
    const batches = new BatchIterator(pairs(Array.from({ length: 10 }, () => [2, 2] as const)), {
      maxTokens: 100,
      maxSentences: 3,
      seed: 1,
    });
    expect([...batches.rest()].map((batch) => batch.size).sort()).toEqual([1, 3, 3, 3]);
  });

  it('refuse a sentence that fits in no batch, and impossible bounds', () => {
    expect(() => new BatchIterator(pairs([[1, 30]]), { maxTokens: 20, seed: 1 })).toThrow(
      'pair 0 has 30 target tokens',
    );
    expect(() => new BatchIterator(pairs([[1, 1]]), { maxTokens: 0, seed: 1 })).toThrow(InputError);
    expect(() => new BatchIterator(pairs([]), { maxTokens: 9, seed: 1 })).toThrow('no pairs');
    expect(() => new BatchIterator(pairs([[1, 1]]), { maxTokens: 9, seed: 1 }, { epoch: 0, position: 5 })).toThrow(
      'beyond',
    );
  });
});
