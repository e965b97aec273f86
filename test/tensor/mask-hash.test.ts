import { describe, expect, it } from 'vitest';
import { type MaskHash, type MaskKey, MaskMemory } from '../../src/kernels.js';

const COUNT = 1 << 18;
const memory = new MaskMemory();

/** 1 where a mask keeps an element, else 0. */
function kept(key: MaskKey, keep: number): Uint8Array {
  memory.reset();
  memory.reserve(COUNT);
  return Uint8Array.from(memory.mask(COUNT, key, keep), (value) => (value > 0 ? 1 : 0));
}

/** Correlation of two masks, in its standard deviations if they are independent. */
function correlation(a: Uint8Array, b: Uint8Array, keep: number, lag = 0): number {
  let sum = 0;
  for (let i = lag; i < COUNT; i++) sum += (a[i] - keep) * (b[i - lag] - keep);
  return Math.abs(sum) / (keep * (1 - keep) * Math.sqrt(COUNT));
}

// Of hundreds of independent normal numbers the largest is about 3.5; structure shows as hundreds.
const CHANCE = 5;

describe.each<MaskHash>(['triple32', 'portable'])('masks by %s', (hash) => {
  const keys: MaskKey[] = [
    [0, 0, hash],
    [1, 0, hash],
    [123, 456, hash],
    [0xffffffff, 7, hash],
  ];

  it.each([0.5, 0.9])('have no pattern along themselves, and none in common: keep %s', (keep) => {
    const masks = keys.map((key) => kept(key, keep));
    for (const mask of masks) {
      const share = mask.reduce((sum, value) => sum + value, 0) / COUNT;
      expect(Math.abs(share - keep)).toBeLessThan(CHANCE * Math.sqrt((keep * (1 - keep)) / COUNT));
      for (const lag of [1, 2, 3, 4, 7, 8, 16, 64, 256, 1024, 4096, 65536]) {
        expect(correlation(mask, mask, keep, lag), `lag ${lag}`).toBeLessThan(CHANCE);
      }
    }
    for (const [i, a] of masks.entries()) {
      for (const b of masks.slice(0, i)) expect(correlation(a, b, keep)).toBeLessThan(CHANCE);
    }
  });

  it('have all patterns of eight neighbours alike often', () => {
    const mask = kept([5, 6, hash], 0.5);
    const counts = new Float64Array(256);
    for (let i = 0; i < COUNT; i += 8) counts[mask.subarray(i, i + 8).reduce((bits, bit) => 2 * bits + bit, 0)]++;
    const expected = COUNT / 8 / 256;
    const chiSquare = counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
    // Mean 255, standard deviation √510.
    expect(Math.abs(chiSquare - 255) / Math.sqrt(510)).toBeLessThan(CHANCE);
  });
});
