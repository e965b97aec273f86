import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canSplit, findBins } from '../../src/forecast/trees/bins.js';

const ZERO = Math.fround(1e-35);
const bounds = (values: number[], missing = 0, maxBin = 255, minDataInBin = 1) =>
  Array.from(findBins(Float32Array.from(values).sort(), missing, maxBin, minDataInBin).bounds);

describe('bin boundaries', () => {
  it('lie half-way between few distinct values, with a bin for zero', () => {
    expect(bounds([1, 2, 4])).toEqual([ZERO, 1.5, 3, Infinity]);
    expect(bounds([-4, -2, 0, 3])).toEqual([-3, -ZERO, ZERO, Infinity]);
    expect(bounds([-4, -2])).toEqual([-3, -ZERO, Infinity]);
  });

  it('keep at least minDataInBin values together', () => {
    // 1 1 | 2 3 | 5: a cut comes as soon as two values are behind it.
    expect(bounds([1, 1, 2, 3, 5], 0, 255, 2)).toEqual([ZERO, 1.5, 4, Infinity]);
  });

  it('give a frequent value a bin of its own and share the rest evenly', () => {
    // One bin of 4 is zero's; 12 values in the other 3 are 4 a bin, so that the six 5s are frequent and the six others
    // share 2 bins of 3. 1 2 3 fill one; 4 alone is less than half a bin, so that the 5s join it; 6 7 are the last.
    expect(bounds([1, 2, 3, 4, 5, 5, 5, 5, 5, 5, 6, 7], 0, 4)).toEqual([ZERO, 3.5, 5.5, Infinity]);
  });

  it('divide the bins between the signs in proportion to their values', () => {
    // Of 5 bins one is zero's; 4 * 3/4 = 3 for the negative values, 1 for the positive ones.
    expect(bounds([-6, -5, -4, -3, -2, -1, 1, 2], 0, 5)).toEqual([-4.5, -2.5, -ZERO, ZERO, Infinity]);
  });

  it('leave one bin to missing values', () => {
    const { bounds, missing, counts } = findBins(Float32Array.of(1, 2, 3), 4, 4, 1);
    expect(missing).toBe(true);
    // 3 bins for values: zero's and two for 1 2 3, cut when 1.5 values are reached.
    expect(Array.from(bounds)).toEqual([ZERO, 2.5, Infinity]);
    expect(Array.from(counts)).toEqual([0, 2, 1, 4]);
  });

  it('ascend, end at infinity, stay within maxBin and count every value in the bin that holds it', () => {
    const value = fc.oneof(fc.integer({ min: -9, max: 9 }), fc.float({ noNaN: true, noDefaultInfinity: true }));
    fc.assert(
      fc.property(
        fc.array(value, { maxLength: 300 }),
        fc.nat(5),
        fc.integer({ min: 2, max: 60 }),
        fc.integer({ min: 1, max: 8 }),
        (values, missing, maxBin, minDataInBin) => {
          const sorted = Float32Array.from(values).sort();
          const bins = findBins(sorted, missing, maxBin, minDataInBin);
          const upper = Array.from(bins.bounds);
          expect(upper.at(-1)).toBe(Infinity);
          for (let bin = 1; bin < upper.length; bin++) expect(upper[bin]).toBeGreaterThan(upper[bin - 1]);
          expect(bins.counts.length).toBeLessThanOrEqual(maxBin);
          const counts = new Array<number>(upper.length).fill(0);
          for (const x of sorted) counts[upper.findIndex((bound) => x <= bound)]++;
          expect(Array.from(bins.counts)).toEqual(missing > 0 ? [...counts, missing] : counts);
        },
      ),
    );
  });

  it('tell whether a feature can be split at all', () => {
    expect(canSplit(findBins(Float32Array.of(5, 5, 5, 5), 0, 255, 3), 1)).toBe(false);
    expect(canSplit(findBins(Float32Array.of(5, 5, 6, 6), 0, 255, 1), 2)).toBe(true);
    expect(canSplit(findBins(Float32Array.of(5, 5, 6, 6), 0, 255, 1), 3)).toBe(false);
    expect(canSplit(findBins(Float32Array.of(5, 5), 2, 255, 1), 2)).toBe(true);
    expect(canSplit(findBins(new Float32Array(0), 4, 255, 1), 1)).toBe(false);
  });
});
