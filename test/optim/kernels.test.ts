import { describe, expect, it } from 'vitest';
import { loadKernels, MaskMemory, newMemory } from '../../src/kernels.js';

const memory = newMemory(1 << 20);
const kernels = loadKernels(memory);
const types = [
  { dtype: 'f32', Elements: Float32Array, lanes: 4 },
  { dtype: 'f64', Elements: Float64Array, lanes: 2 },
] as const;

describe.each(types)('$dtype kernels', ({ dtype, Elements, lanes }) => {
  const kernel = kernels[dtype];
  const array = (address: number, values: readonly number[]): Float32Array | Float64Array => {
    const view = new Elements(memory.buffer, address, values.length);
    view.set(values);
    return view;
  };

  it('sum squares exactly where the result is a whole number', () => {
    // Σ i², i = 0 … n − 1, is (n − 1)n(2n − 1)/6; 20,000 elements span several blocks.
    const n = 20_000;
    array(
      64,
      Array.from({ length: n }, (_, i) => i),
    );
    expect(kernel.squaredNorm(64, n)).toBe(((n - 1) * n * (2 * n - 1)) / 6);
    expect(kernel.squaredNorm(64, 0)).toBe(0);
  });

  it('sum squares to nearly full double precision', () => {
    const n = 100_000;
    const view = array(64, new Array<number>(n).fill(0.1));
    // The square of an f32 is exact in f64, so the sum is n times it, apart from rounding.
    const expected = n * view[0] ** 2;
    expect(Math.abs(kernel.squaredNorm(64, n) / expected - 1)).toBeLessThan(1e-13);
  });

  it('find an infinity or a NaN at any place', () => {
    const n = 3 * 8192 + lanes;
    const view = array(64, new Array<number>(n).fill(-1e30));
    expect(kernel.allFinite(64, n)).toBe(1);
    for (const place of [0, 1, lanes - 1, 8191, 8192, n - 1]) {
      for (const bad of [Infinity, -Infinity, Number.NaN]) {
        view[place] = bad;
        expect(kernel.allFinite(64, n)).toBe(0);
        view[place] = 0;
      }
    }
  });

  it('scale, and add a multiple', () => {
    const y = array(64, [1, -2, 3, 0]);
    array(1024, [10, 20, 30, -40]);
    kernel.scale(64, 4, 0.5);
    expect([...y]).toEqual([0.5, -1, 1.5, 0]);
    kernel.axpy(64, 1024, 4, 0.25);
    expect([...y]).toEqual([3, 4, 9, -10]);
  });

  it('clamp to a symmetric interval and keep NaN', () => {
    const x = array(64, [-5, -0.5, 3, Number.NaN, Infinity, -Infinity, 2, 0]);
    kernel.clamp(64, 8, 2);
    expect([...x]).toEqual([-2, -0.5, 2, Number.NaN, 2, -2, 2, 0]);
  });

  it('sum several arrays in their order', () => {
    // With 1 lost beside `big`, (big + 1) − big is 0 while (big − big) + 1 is 1: the order shows.
    const big = dtype === 'f32' ? 2 ** 30 : 2 ** 60;
    array(1024, [big, big, 1, 7]);
    array(2048, [1, -big, 2, 7]);
    array(3072, [-big, 1, 3, 7]);
    const out = array(64, [0, 0, 0, 0]);
    kernel.sum(64, 1024, 1024, 3, 4);
    expect([...out]).toEqual([0, 1, 6, 21]);
    kernel.sum(1024, 1024, 1024, 2, 4);
    expect([...new Elements(memory.buffer, 1024, 4)].slice(2)).toEqual([3, 14]);
    kernel.sum(64, 3072, 1024, 1, 4);
    expect([...out]).toEqual([-big, 1, 3, 7]);
  });
});

describe('dropoutMask', () => {
  const masks = new MaskMemory();
  const draw = (n: number, low: number, high: number, keep: number): Float32Array => {
    masks.reset();
    masks.reserve(n);
    return masks.mask(n, [low, high], keep);
  };

  it('is the hash of key and index that its definition says', () => {
    // triple32 as published in the README of skeeto/hash-prospector, with a key after its first round.
    const mix = (x: number, key: number): number => {
      x = Math.imul(x ^ (x >>> 17), 0xed5ad4bb);
      x = Math.imul(x ^ (x >>> 11) ^ key, 0xac4c1b51);
      x = Math.imul(x ^ (x >>> 15), 0x31848bab);
      return (x ^ (x >>> 14)) >>> 0;
    };
    const [low, high, keep] = [0xdeadbeef, 0x01234567, 0.7];
    const k0 = mix(mix(low, 0x9e3779b9), high);
    const k1 = mix(mix(high, 0x85ebca6b), k0);
    // 0.7·2¹⁶ = 45875.2.
    const expected = Array.from({ length: 1003 }, (_, i) => {
      const hash = mix((i >>> 3) * 4 + (i & 3) + k0, k1);
      const half = (i & 7) < 4 ? hash & 0xffff : hash >>> 16;
      return half < 45875 ? Math.fround(1 / keep) : 0;
    });
    expect([...draw(1003, low, high, keep)]).toEqual(expected);
  });

  it('depends on key and index alone, not on the length', () => {
    const long = draw(1000, 5, 6, 0.5).slice();
    expect(draw(998, 5, 6, 0.5)).toEqual(long.subarray(0, 998));
    expect(draw(1000, 5, 6, 0.5)).toEqual(long);
  });

  it('keeps everything at 1, and refuses a share outside (0, 1]', () => {
    expect(draw(1_000_000, 1, 2, 1).every((x) => x === 1)).toBe(true);
    expect(() => draw(10, 1, 2, 0)).toThrow(RangeError);
    expect(() => draw(10, 1, 2, 1.5)).toThrow(RangeError);
    expect(() => draw(10, 1, 2, Number.NaN)).toThrow(RangeError);
  });

  it.each([0.1, 0.5, 0.7, 0.9])('keeps a share of %f of the elements, scaled by its inverse', (keep) => {
    const n = 200_000;
    const kept = draw(n, 77, 88, keep).reduce((count, x) => count + Number(x === Math.fround(1 / keep)), 0);
    expect(Math.abs(kept / n - keep)).toBeLessThan(5 * Math.sqrt((keep * (1 - keep)) / n));
  });

  it('has no correlation between elements at any small or power-of-two distance', () => {
    const n = 1 << 17;
    const signs = Int8Array.from(draw(n, 3, 4, 0.5), (x) => (x > 0 ? 1 : -1));
    const lags = [1, 2, 3, 4, 5, 7, 8, 16, 32, 60, 64, 128, 256, 512, 1024, 4096, 1 << 15, 1 << 16];
    for (const lag of lags) {
      let sum = 0;
      for (let i = lag; i < n; i++) sum += signs[i] * signs[i - lag];
      expect(Math.abs(sum), `lag ${lag}`).toBeLessThan(5 * Math.sqrt(n - lag));
    }
  });

  it('has every pattern of eight neighbours equally often', () => {
    const n = 1 << 18;
    const bits = draw(n, 9, 0, 0.5);
    const counts = new Array<number>(256).fill(0);
    for (let i = 0; i < n; i += 8) {
      let pattern = 0;
      for (let j = 0; j < 8; j++) pattern = 2 * pattern + Number(bits[i + j] > 0);
      counts[pattern]++;
    }
    const expected = n / 8 / 256;
    const chi2 = counts.reduce((sum, c) => sum + (c - expected) ** 2 / expected, 0);
    // χ² with 255 degrees of freedom: mean 255, deviation √510 = 22.6; five of them either way.
    expect(Math.abs(chi2 - 255)).toBeLessThan(5 * 22.6);
  });

  it('gives unrelated masks for keys that differ in one bit or by one', () => {
    const n = 1 << 14;
    const signs = (low: number, high: number) => Int8Array.from(draw(n, low, high, 0.5), (x) => (x > 0 ? 1 : -1));
    const reference = signs(1000, 0);
    const others = Array.from({ length: 32 }, (_, bit) => [
      [1000 ^ (1 << bit), 0],
      [1000, 1 << bit],
      [1000 + bit + 1, 0],
    ]).flat();
    for (const [low, high] of others) {
      const other = signs(low, high);
      const product = reference.reduce((sum, sign, i) => sum + sign * other[i], 0);
      expect(Math.abs(product), `key ${low}, ${high}`).toBeLessThan(5 * Math.sqrt(n));
    }
  });

  it('makes a key’s mask no shifted copy of its neighbour’s', () => {
    const n = 1 << 12;
    const signs = (low: number) => Int8Array.from(draw(n, low, 0, 0.5), (x) => (x > 0 ? 1 : -1));
    const a = signs(41);
    const b = signs(42);
    for (let shift = -64; shift <= 64; shift++) {
      let sum = 0;
      for (let i = 64; i < n - 64; i++) sum += a[i] * b[i + shift];
      expect(Math.abs(sum), `shift ${shift}`).toBeLessThan(5 * Math.sqrt(n));
    }
  });
});

describe('uniforms', () => {
  it('are the halves of the hashes that decide on a mask', () => {
    const masks = new MaskMemory();
    masks.reserve(2 * 1003);
    const numbers = masks.uniforms(1003, [0xdeadbeef, 0x01234567]);
    const mask = masks.mask(1003, [0xdeadbeef, 0x01234567], 0.7);
    // 0.7·2¹⁶ = 45875.2: kept are the halves h < 45875, of which the number is (h + ½)·2⁻¹⁶.
    numbers.forEach((u, i) => {
      const h = u * 65536 - 0.5;
      expect(Number.isInteger(h) && h >= 0 && h < 65536).toBe(true);
      expect(h < 45875).toBe(mask[i] > 0);
    });
  });
});

describe('MaskMemory', () => {
  it('hands out masks of a step that do not disturb each other, of odd lengths too', () => {
    const masks = new MaskMemory();
    const sizes = [1, 3, 1000, 7, 0, 70_001, 2];
    masks.reserve(sizes.reduce((a, b) => a + b));
    const handed = sizes.map((n, i) => masks.mask(n, [i, 0], 0.5));
    const alone = new MaskMemory();
    handed.forEach((mask, i) => {
      alone.reset();
      alone.reserve(sizes[i]);
      expect(mask).toEqual(alone.mask(sizes[i], [i, 0], 0.5));
    });
  });

  it('grows for the next step and reuses its memory', () => {
    const masks = new MaskMemory();
    masks.reserve(10);
    const first = masks.mask(10, [1, 1], 0.5).slice();
    masks.reset();
    masks.reserve(1_000_000);
    expect(masks.mask(10, [1, 1], 0.5)).toEqual(first);
    expect(masks.mask(999_990, [1, 2], 0.5).length).toBe(999_990);
  });

  it('refuses to lose masks: no growth within a step, no mask that was not reserved', () => {
    const masks = new MaskMemory();
    masks.reserve(100);
    masks.mask(100, [1, 1], 0.5);
    expect(() => masks.reserve(1_000_000)).toThrow('after reset');
    expect(() => masks.mask(1_000_000, [1, 1], 0.5)).toThrow('not reserved');
    masks.reset();
    expect(() => masks.reserve(2 ** 30)).toThrow('4 GiB');
  });
});
