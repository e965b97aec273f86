import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FIRST_ADDRESS, LANES, loadTreeKernels, newSharedMemory, SLOTS } from '../../src/forecast/trees/kernel.js';
import { Random } from '../../src/random.js';

const HALF = 16; // features whose histograms one `accumulate` fills
const ROWS = 64;
const memory = newSharedMemory(2 ** 18 + 3 * HALF * SLOTS * 16);
const kernels = loadTreeKernels(memory);
const at = {
  rows: FIRST_ADDRESS,
  bins: FIRST_ADDRESS + 1024,
  gradients: FIRST_ADDRESS + 8192,
  whole: 2 ** 18,
  part: 2 ** 18 + HALF * SLOTS * 16,
  other: 2 ** 18 + 2 * HALF * SLOTS * 16,
};
const rows = new Uint32Array(memory.buffer, at.rows, ROWS);
const bins = new Uint8Array(memory.buffer, at.bins, ROWS * LANES);
const gradients = new BigInt64Array(memory.buffer, at.gradients, 2 * ROWS);

const drawn = fc.integer().map((value) => {
  const random = new Random(value);
  return {
    /** Bins. [ROWS, LANES] */
    table: Uint8Array.from({ length: ROWS * LANES }, () => random.int(256)),
    /** Two sums a row. */
    all: Array.from({ length: 2 * ROWS }, () => BigInt(random.int(2 ** 51) - 2 ** 50)),
  };
});
const split = fc.integer({ min: 0, max: ROWS });

/** The histogram of the given rows; `words` i64 a slot. */
function histogram(address: number, wanted: number[], all: bigint[], words: 1 | 2): BigInt64Array {
  const result = new BigInt64Array(memory.buffer, address, HALF * SLOTS * words).fill(0n);
  rows.set(wanted);
  for (const [i, row] of wanted.entries()) {
    for (let word = 0; word < words; word++) gradients[i * words + word] = all[row * 2 + word];
  }
  const kernel = words === 1 ? kernels.accumulate : kernels.accumulateWeighted;
  kernel(at.rows, wanted.length, at.bins, at.gradients, address);
  return result;
}

describe.each([1, 2] as const)('histograms of %i sums a slot', (words) => {
  it('hold the sum of the gradients of the rows in each bin', () => {
    fc.assert(
      fc.property(drawn, split, ({ table, all }, n) => {
        bins.set(table);
        const found = histogram(
          at.whole,
          Array.from({ length: n }, (_, i) => i),
          all,
          words,
        );
        const expected = new BigInt64Array(found.length);
        for (let row = 0; row < n; row++) {
          for (let feature = 0; feature < HALF; feature++) {
            const slot = (feature * SLOTS + table[row * LANES + feature]) * words;
            for (let word = 0; word < words; word++) expected[slot + word] += all[row * 2 + word];
          }
        }
        expect(found.findIndex((sum, slot) => sum !== expected[slot])).toBe(-1);
      }),
      { numRuns: 20 },
    );
  });

  it('of a parent less those of a child are exactly those of the other child', () => {
    fc.assert(
      fc.property(drawn, split, ({ table, all }, n) => {
        bins.set(table);
        const everyone = Array.from({ length: ROWS }, (_, i) => (i * 37) % ROWS);
        const parent = histogram(at.whole, everyone, all, words);
        histogram(at.part, everyone.slice(0, n), all, words);
        const direct = histogram(at.other, everyone.slice(n), all, words);
        kernels.subtract(at.whole, at.part, parent.byteLength);
        expect(parent.findIndex((sum, slot) => sum !== direct[slot])).toBe(-1);
      }),
      { numRuns: 20 },
    );
  });
});

describe('columns', () => {
  it('are sorted like numbers', () => {
    const scratch = at.whole;
    const values = new Float32Array(memory.buffer, at.bins, ROWS);
    fc.assert(
      fc.property(fc.float32Array({ noNaN: true, maxLength: ROWS }), (given) => {
        values.set(given);
        kernels.sortValues(at.bins, given.length, scratch, at.other);
        expect(Array.from(values.subarray(0, given.length), (x) => x + 0)).toEqual(
          Array.from(given.sort(), (x) => x + 0),
        );
      }),
    );
  });

  it('fall into the first bin whose bound is not below the value, missing values into theirs or with 0', () => {
    const values = new Float32Array(memory.buffer, at.rows, ROWS);
    const limits = new Float64Array(memory.buffer, at.whole, SLOTS);
    const cell = fc.oneof(fc.integer({ min: -20, max: 20 }), fc.constant(Number.NaN));
    fc.assert(
      fc.property(
        fc.array(cell, { maxLength: ROWS }),
        fc.uniqueArray(fc.integer({ min: -20, max: 20 }), { maxLength: 20 }),
        fc.boolean(),
        (given, cuts, missing) => {
          const bounds = [...cuts.sort((a, b) => a - b), Infinity];
          values.set(given);
          limits.fill(Infinity).set(bounds);
          kernels.binColumn(at.rows, given.length, at.whole, missing ? bounds.length : -1, at.bins);
          for (const [row, value] of given.entries()) {
            const binOf = (x: number) => bounds.findIndex((bound) => x <= bound);
            const expected = Number.isNaN(value) ? (missing ? bounds.length : binOf(0)) : binOf(value);
            expect(bins[row * LANES]).toBe(expected);
          }
        },
      ),
    );
  });
});

describe('partitioning', () => {
  it('puts the rows that go left first and keeps the order on both sides', () => {
    fc.assert(
      fc.property(drawn, fc.nat(255), fc.integer({ min: -1, max: 255 }), ({ table }, bin, leftBin) => {
        bins.set(table);
        const before = Array.from({ length: ROWS }, (_, i) => (i * 11) % ROWS);
        rows.set(before);
        const left = kernels.partition(at.rows, ROWS, at.bins + 3, bin, leftBin, at.whole);
        const goesLeft = (row: number) => table[row * LANES + 3] <= bin || table[row * LANES + 3] === leftBin;
        const [lefts, rights] = [before.filter(goesLeft), before.filter((row) => !goesLeft(row))];
        expect(left).toBe(lefts.length);
        expect(Array.from(rows)).toEqual([...lefts, ...rights]);
      }),
    );
  });
});
