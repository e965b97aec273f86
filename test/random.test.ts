import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InputError } from '../src/errors.js';
import { Random, type RandomState } from '../src/random.js';

function withWords(words: RandomState['words']): Random {
  return Random.restore({ generator: 'xoshiro128**', origin: '0'.repeat(32), words, spare: null });
}

function draw(random: Random, count: number): number[] {
  return Array.from({ length: count }, () => random.uint32());
}

describe('the core generator', () => {
  it('gives the outputs of the reference xoshiro128starstar.c', () => {
    // Version 1.1 of the reference, from the state {1, 2, 3, 4}.
    expect(draw(withWords([1, 2, 3, 4]), 6)).toEqual([11520, 0, 5927040, 70819200, 2031721883, 1637235492]);
  });

  it('gives outputs and states of the reference from a state with all bits in use', () => {
    // Generated with the C reference by the test data of edorfaus/xoshiro-6502.
    const random = withWords([0x964d4a0c, 0xd40ab895, 0xad7fdecb, 0x3006f0f0]);
    expect(random.uint32()).toBe(0xf1391922);
    expect(random.state().words).toEqual([0x72410269, 0xef382c52, 0x2e43bec7, 0x62432f20]);
    expect(draw(random, 3)).toEqual([0x6fe53806, 0xa5be2840, 0xf510ee70]);
    expect(random.state().words).toEqual([0xfc65379c, 0x52006d70, 0x87487639, 0xf1908343]);
  });

  it('is seeded with the beginning of SHA-256', () => {
    // SHA-256('abc') = ba7816bf 8f01cfea 414140de 5dae2223 …, FIPS 180-2, appendix B.1.
    expect(new Random('abc').state().words).toEqual([0xba7816bf, 0x8f01cfea, 0x414140de, 0x5dae2223]);
  });

  it('takes a number and its text as the same seed, and refuses what is not a number', () => {
    expect(draw(new Random(17), 3)).toEqual(draw(new Random('17'), 3));
    expect(draw(new Random(17), 3)).not.toEqual(draw(new Random(18), 3));
    expect(() => new Random(Number.NaN)).toThrow(InputError);
  });
});

describe('uniform', () => {
  it('joins 27 and 26 bits of two outputs', () => {
    // The outputs 11520 and 0 give (11520 >>> 5)·2²⁶ / 2⁵³ = 360 / 2²⁷.
    expect(withWords([1, 2, 3, 4]).uniform()).toBe(360 / 2 ** 27);
  });

  it('has the mean, variance and bins of the uniform distribution', () => {
    const random = new Random('uniform');
    const n = 100_000;
    const bins = new Array<number>(10).fill(0);
    let sum = 0;
    let squares = 0;
    for (let i = 0; i < n; i++) {
      const u = random.uniform();
      sum += u;
      squares += u * u;
      bins[Math.floor(u * 10)]++;
    }
    // Five standard errors: √(1/12)/√n of the mean; √(4/45)/√n of the second moment, whose value is 1/3.
    expect(Math.abs(sum / n - 1 / 2)).toBeLessThan((5 * Math.sqrt(1 / 12)) / Math.sqrt(n));
    expect(Math.abs(squares / n - 1 / 3)).toBeLessThan((5 * Math.sqrt(4 / 45)) / Math.sqrt(n));
    // χ² with 9 degrees of freedom exceeds 33.7 once in 10,000 times.
    expect(chiSquare(bins, n / 10)).toBeLessThan(33.7);
  });
});

describe('normal', () => {
  it('has the moments and tails of the standard normal distribution', () => {
    const random = new Random('normal');
    const n = 100_000;
    const x = Array.from({ length: n }, () => random.normal());
    const moment = (k: number) => x.reduce((sum, v) => sum + v ** k, 0) / n;
    // Moments 0, 1, 0, 3; five standard errors, √(E x^2k − (E x^k)²)/√n.
    expect(Math.abs(moment(1))).toBeLessThan(5 / Math.sqrt(n));
    expect(Math.abs(moment(2) - 1)).toBeLessThan((5 * Math.sqrt(2)) / Math.sqrt(n));
    expect(Math.abs(moment(3))).toBeLessThan((5 * Math.sqrt(15)) / Math.sqrt(n));
    expect(Math.abs(moment(4) - 3)).toBeLessThan((5 * Math.sqrt(96)) / Math.sqrt(n));
    // P(|x| > 1.959964) = 0.05.
    const tails = x.filter((v) => Math.abs(v) > 1.959964).length / n;
    expect(Math.abs(tails - 0.05)).toBeLessThan((5 * Math.sqrt(0.05 * 0.95)) / Math.sqrt(n));
    // Neighbours, which may come from one pair, are uncorrelated.
    const lagged = x.slice(1).reduce((sum, v, i) => sum + v * x[i], 0) / (n - 1);
    expect(Math.abs(lagged)).toBeLessThan(5 / Math.sqrt(n));
  });

  it('fills arrays with the given mean and deviation', () => {
    const array = new Float32Array(50_000);
    new Random(1).fillNormal(array, 3, 0.5);
    const mean = array.reduce((sum, v) => sum + v, 0) / array.length;
    const variance = array.reduce((sum, v) => sum + (v - mean) ** 2, 0) / array.length;
    expect(Math.abs(mean - 3)).toBeLessThan((5 * 0.5) / Math.sqrt(array.length));
    expect(Math.abs(variance - 0.25)).toBeLessThan((5 * 0.25 * Math.SQRT2) / Math.sqrt(array.length));
  });

  it('fills arrays uniformly between two bounds', () => {
    const array = new Float64Array(10_000);
    new Random(1).fillUniform(array, -2, 1);
    expect(array.every((v) => v >= -2 && v < 1)).toBe(true);
    const mean = array.reduce((sum, v) => sum + v, 0) / array.length;
    expect(Math.abs(mean + 0.5)).toBeLessThan((5 * 3 * Math.sqrt(1 / 12)) / 100);
  });
});

describe('int', () => {
  it('is unbiased where the remainder of a 32-bit number is not', () => {
    // The remainder modulo 3·2³⁰ would fall below 2³⁰ in half of the cases instead of a third.
    const random = new Random('int');
    const n = 30_000;
    let low = 0;
    for (let i = 0; i < n; i++) if (random.int(3 * 2 ** 30) < 2 ** 30) low++;
    expect(Math.abs(low / n - 1 / 3)).toBeLessThan((5 * Math.sqrt(2 / 9)) / Math.sqrt(n));
  });

  it('stays in its range for every size up to 2⁵³ − 1', () => {
    const random = new Random('range');
    fc.assert(
      fc.property(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), (n) => {
        const x = random.int(n);
        return Number.isSafeInteger(x) && x >= 0 && x < n;
      }),
    );
    expect(() => random.int(0)).toThrow(RangeError);
    expect(() => random.int(2.5)).toThrow(RangeError);
  });

  it('reaches the upper half of a range above 2³²', () => {
    const random = new Random('large');
    const above = Array.from({ length: 1000 }, () => random.int(2 ** 50)).filter((x) => x >= 2 ** 49).length;
    expect(Math.abs(above - 500)).toBeLessThan(5 * Math.sqrt(250));
  });
});

describe('shuffle', () => {
  it('keeps the elements, of plain and of typed arrays', () => {
    fc.assert(
      fc.property(fc.string(), fc.array(fc.integer({ min: -1000, max: 1000 })), (seed, values) => {
        const sorted = values.toSorted((a, b) => a - b);
        const plain = new Random(seed).shuffle([...values]);
        const typed = new Random(seed).shuffle(Int32Array.from(values));
        expect(plain.toSorted((a, b) => a - b)).toEqual(sorted);
        expect([...typed]).toEqual(plain);
      }),
    );
  });

  it('makes every order equally likely', () => {
    const random = new Random('shuffle');
    const counts = new Map<string, number>();
    const n = 12_000;
    for (let i = 0; i < n; i++) {
      const order = random.shuffle(['a', 'b', 'c']).join('');
      counts.set(order, (counts.get(order) ?? 0) + 1);
    }
    expect(counts.size).toBe(6);
    // χ² with 5 degrees of freedom exceeds 25.7 once in 10,000 times.
    expect(chiSquare([...counts.values()], n / 6)).toBeLessThan(25.7);
  });
});

describe('categorical', () => {
  it('draws in proportion to the probabilities of the slice', () => {
    const random = new Random('categorical');
    const table = Float32Array.from([9, 9, 0.1, 0, 0.2, 0.7, 9]);
    const counts = [0, 0, 0, 0];
    const n = 20_000;
    for (let i = 0; i < n; i++) counts[random.categorical(table, 2, 4)]++;
    expect(counts[1]).toBe(0);
    [0.1, 0, 0.2, 0.7].forEach((p, i) => {
      expect(Math.abs(counts[i] / n - p)).toBeLessThanOrEqual(5 * Math.sqrt((p * (1 - p)) / n));
    });
  });

  it('never draws a probability of 0, wherever it stands', () => {
    const random = new Random('zeros');
    for (let i = 0; i < 1000; i++) expect([1, 3]).toContain(random.categorical([0, 1e-300, 0, 1e-300, 0]));
  });

  it('refuses what are not probabilities', () => {
    const random = new Random(1);
    expect(() => random.categorical([0.5, Number.NaN])).toThrow(RangeError);
    expect(() => random.categorical([0.5, -0.1])).toThrow(RangeError);
    expect(() => random.categorical([0, 0])).toThrow(RangeError);
    expect(() => random.categorical([])).toThrow(RangeError);
  });
});

describe('fork', () => {
  it('depends on the seed and the name, not on the draws so far', () => {
    const drawn = new Random('seed');
    drawn.normal();
    draw(drawn, 100);
    expect(drawn.fork('dropout').state()).toEqual(new Random('seed').fork('dropout').state());
    expect(Random.restore(drawn.state()).fork('dropout').state()).toEqual(drawn.fork('dropout').state());
  });

  it('gives unrelated streams for different names, seeds and paths', () => {
    const root = new Random('seed');
    const streams = [
      root,
      root.fork('a'),
      root.fork('b'),
      root.fork('a').fork('b'),
      root.fork('b').fork('a'),
      root.fork('a b'),
      new Random('other').fork('a'),
    ];
    const firsts = new Set(streams.map((random) => draw(random, 4).join()));
    expect(firsts.size).toBe(streams.length);
  });
});

describe('the saved state', () => {
  it('continues the same stream from any point, through JSON', () => {
    const actions: ((random: Random) => number)[] = [
      (random) => random.uint32(),
      (random) => random.uniform(),
      (random) => random.normal(),
      (random) => random.int(1000),
      (random) => random.categorical([1, 2, 3]),
    ];
    fc.assert(
      fc.property(fc.string(), fc.array(fc.nat(4)), fc.array(fc.nat(4)), (seed, before, after) => {
        const random = new Random(seed);
        for (const action of before) actions[action](random);
        const restored = Random.restore(JSON.parse(JSON.stringify(random.state())));
        expect(after.map((action) => actions[action](restored))).toEqual(
          after.map((action) => actions[action](random)),
        );
      }),
    );
  });

  it('holds the second number of a Box–Muller pair', () => {
    const random = new Random('pair');
    random.normal();
    const restored = Random.restore(random.state());
    expect(random.state().spare).not.toBeNull();
    expect(restored.normal()).toBe(random.normal());
    expect(random.state().spare).toBeNull();
  });

  it('is refused when it is damaged', () => {
    const good = new Random(1).state();
    const damaged = [
      { ...good, generator: 'mt19937' },
      { ...good, words: [0, 0, 0, 0] },
      { ...good, words: [1, 2, 3] },
      { ...good, words: [1, 2, 3, 2 ** 32] },
      { ...good, origin: 'abc' },
      { ...good, spare: 'x' },
    ];
    for (const state of damaged) expect(() => Random.restore(state as unknown as RandomState)).toThrow(InputError);
  });
});

function chiSquare(counts: readonly number[], expected: number): number {
  return counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
}
