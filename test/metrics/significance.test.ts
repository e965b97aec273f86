import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { blockBootstrap } from '../../src/metrics/paired-tests.js';
import {
  holm,
  incompleteBeta,
  logGamma,
  pairedTTest,
  studentCritical,
  studentTwoSided,
  wilcoxonSignedRank,
} from '../../src/metrics/statistics.js';
import { Random } from '../../src/random.js';

describe('the incomplete beta function', () => {
  const share = fc.double({ min: 0.001, max: 0.999, noNaN: true });
  const shape = fc.double({ min: 0.1, max: 200, noNaN: true });

  it('is a power where one parameter is 1', () => {
    // I_x(a, 1) = x^a and I_x(1, b) = 1 − (1 − x)^b
    fc.assert(
      fc.property(share, shape, (x, a) => {
        expect(incompleteBeta(x, a, 1)).toBeCloseTo(x ** a, 12);
        expect(incompleteBeta(x, 1, a)).toBeCloseTo(1 - (1 - x) ** a, 12);
      }),
    );
  });

  it('obeys its symmetry and its recurrence', () => {
    // I_x(a, b) = 1 − I_{1−x}(b, a);  I_x(a, b) = I_x(a + 1, b) + x^a (1 − x)^b / (a B(a, b))
    fc.assert(
      fc.property(share, shape, shape, (x, a, b) => {
        const value = incompleteBeta(x, a, b);
        expect(value).toBeCloseTo(1 - incompleteBeta(1 - x, b, a), 12);
        const logBeta = logGamma(a) + logGamma(b) - logGamma(a + b);
        const step = Math.exp(a * Math.log(x) + b * Math.log1p(-x) - logBeta) / a;
        expect(value).toBeCloseTo(incompleteBeta(x, a + 1, b) + step, 11);
      }),
    );
  });

  it('has log Γ(n) = log (n − 1)! and Γ(½) = √π behind it', () => {
    let factorial = 1;
    for (let n = 1; n < 20; factorial *= n++) expect(logGamma(n)).toBeCloseTo(Math.log(factorial), 12);
    expect(logGamma(0.5)).toBeCloseTo(Math.log(Math.PI) / 2, 13);
    // Γ(¼) = 3.625609908221908…
    expect(logGamma(0.25)).toBeCloseTo(Math.log(3.625609908221908), 13);
  });
});

describe("Student's t", () => {
  it('has its closed forms for one and two degrees of freedom', () => {
    for (const t of [0, 0.3, -1, 2.5, 40]) {
      expect(studentTwoSided(t, 1)).toBeCloseTo(1 - (2 / Math.PI) * Math.atan(Math.abs(t)), 13);
      expect(studentTwoSided(t, 2)).toBeCloseTo(1 - Math.abs(t) / Math.sqrt(2 + t * t), 13);
    }
  });

  it('has the quantiles of the tables', () => {
    // Two-sided 5 % and 1 % points, NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.6.7.2.
    expect(studentTwoSided(2.776, 4)).toBeCloseTo(0.05, 4);
    expect(studentTwoSided(4.604, 4)).toBeCloseTo(0.01, 5);
    expect(studentTwoSided(2.262, 9)).toBeCloseTo(0.05, 4);
    expect(studentTwoSided(1.984, 100)).toBeCloseTo(0.05, 4);
    expect(studentCritical(0.05, 4)).toBeCloseTo(2.776, 3);
    expect(studentCritical(0.01, 4)).toBeCloseTo(4.604, 3);
    expect(studentCritical(0.05, 100)).toBeCloseTo(1.984, 3);
    expect(studentCritical(1, 9)).toBeCloseTo(0, 12);
  });
});

describe('the paired t-test', () => {
  it('divides the mean difference by its standard error', () => {
    // d = 1, 2, 3: mean 2, s = 1, t = 2√3 with 2 degrees of freedom.
    const { statistic, p, n } = pairedTTest([2, 4, 6], [1, 2, 3]);
    expect(statistic).toBeCloseTo(2 * Math.sqrt(3), 12);
    expect(p).toBeCloseTo(1 - Math.sqrt(12) / Math.sqrt(14), 12);
    expect(n).toBe(3);
  });

  it('refuses fewer than two pairs, unequal numbers and missing values', () => {
    expect(() => pairedTTest([1], [2])).toThrow('at least 2 pairs, found 1');
    expect(() => pairedTTest([1, 2], [2])).toThrow('the same number of values on both sides, found 2 and 1');
    expect(() => pairedTTest([1, Number.NaN], [2, 3])).toThrow('finite values');
  });
});

describe("Wilcoxon's signed-rank test", () => {
  it('is exact', () => {
    // All five positive: one pattern of 32 on each side.
    expect(wilcoxonSignedRank([1, 2, 3, 4, 5], [0, 0, 0, 0, 0])).toEqual({ statistic: 15, p: 2 / 32, n: 5 });
    // Signs + + + + − with the negative rank 2: rank sums ≤ 2 on the small side are {}, {1}, {2}: 2 · 3/32.
    expect(wilcoxonSignedRank([1, -2, 3, 4, 5], [0, 0, 0, 0, 0]).p).toBeCloseTo(6 / 32, 14);
    // Tied: |d| = 1, 1, 2, ranks 1.5, 1.5, 3; W⁻ = 1.5: patterns with sum ≤ 1.5 are {}, {1.5}, {1.5}: 2 · 3/8.
    expect(wilcoxonSignedRank([1, -1, 2], [0, 0, 0]).p).toBeCloseTo(6 / 8, 14);
  });

  it('agrees with the enumeration of all signs', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -4, max: 4 }), { minLength: 1, maxLength: 8 }), (differences) => {
        const kept = differences.filter((d) => d !== 0);
        const rank = (d: number) =>
          kept.filter((e) => Math.abs(e) < Math.abs(d)).length +
          (kept.filter((e) => Math.abs(e) === Math.abs(d)).length + 1) / 2;
        const middle = (kept.length * (kept.length + 1)) / 4;
        const real = kept.reduce((sum, d) => sum + (d > 0 ? rank(d) : 0), 0);
        let extreme = 0;
        for (let signs = 0; signs < 2 ** kept.length; signs++) {
          const sum = kept.reduce((total, d, i) => total + ((signs >> i) & 1 ? rank(d) : 0), 0);
          if (Math.abs(sum - middle) >= Math.abs(real - middle)) extreme++;
        }
        const { p } = wilcoxonSignedRank(
          differences,
          differences.map(() => 0),
        );
        expect(p).toBeCloseTo(extreme / 2 ** kept.length, 12);
      }),
    );
  });
});

describe("Holm's correction", () => {
  it('multiplies the smallest most, and never puts a larger p-value below a smaller one', () => {
    // Sorted .01 .02 .03 .04 times 4 3 2 1: .04 .06 .06 .04 → .04 .06 .06 .06.
    expect(holm([0.04, 0.01, 0.03, 0.02])).toEqual([
      expect.closeTo(0.06, 14),
      expect.closeTo(0.04, 14),
      expect.closeTo(0.06, 14),
      expect.closeTo(0.06, 14),
    ]);
    expect(holm([0.6, 0.7])).toEqual([1, 1]);
    expect(holm([])).toEqual([]);
  });

  it('keeps the order, lies between the p-value and Bonferroni', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 10 }), (p) => {
        for (const [i, adjusted] of holm(p).entries()) {
          expect(adjusted).toBeGreaterThanOrEqual(p[i]);
          expect(adjusted).toBeLessThanOrEqual(Math.min(1, p.length * p[i]));
          for (const [j, other] of holm(p).entries()) if (p[i] < p[j]) expect(adjusted).toBeLessThanOrEqual(other);
        }
      }),
    );
  });
});

describe('the block bootstrap', () => {
  const index = (seed: number) => {
    const random = new Random(seed);
    return (n: number) => random.int(n);
  };
  const noise = (n: number, seed: number) => {
    const random = new Random(seed);
    // Sum of twelve uniforms less six: mean 0, variance 1.
    return Array.from(
      { length: n },
      () => Array.from({ length: 12 }, () => random.uniform()).reduce((a, b) => a + b) - 6,
    );
  };

  it('with blocks of one day has the standard error of independent days', () => {
    const series = noise(400, 1);
    const { standardError, mean } = blockBootstrap(series, index(2), { blockLength: 1, samples: 4000 });
    const variance = series.reduce((sum, v) => sum + (v - mean) ** 2, 0) / series.length;
    // The bootstrap variance of a mean is the population variance / n; 4000 resamples know it to about 1.1 %.
    expect(standardError / Math.sqrt(variance / series.length)).toBeCloseTo(1, 1);
  });

  it('sees the dependence that blocks of one day miss', () => {
    // Each value five times in a row: five times the variance of the mean.
    const series = noise(200, 3).flatMap((value) => new Array<number>(5).fill(value));
    const error = (blockLength: number, kind: 'circular' | 'moving') =>
      blockBootstrap(series, index(4), { blockLength, samples: 2000, kind }).standardError;
    for (const kind of ['circular', 'moving'] as const) {
      expect(error(40, kind) / error(1, kind)).toBeGreaterThan(1.7);
      expect(error(40, kind) / error(1, kind)).toBeLessThan(2.8);
    }
  });

  it('with one block over the whole circle always returns the mean', () => {
    // Every rotation has the same mean, so no resample is off by as much as the mean itself.
    const { mean, interval, standardError, p } = blockBootstrap([1, 2, 3, 6], index(5), {
      blockLength: 4,
      samples: 99,
    });
    expect(mean).toBe(3);
    expect(interval).toEqual([3, 3]);
    expect(standardError).toBe(0);
    expect(p).toBe(0.01);
  });

  it('rejects a mean of 0 where it is not, and about one time in twenty where it is', () => {
    const shifted = noise(300, 6).map((value) => value + 0.5);
    expect(blockBootstrap(shifted, index(7), { samples: 999 }).p).toBe(0.001);
    const rejected = Array.from({ length: 200 }, (_, seed) =>
      blockBootstrap(noise(100, 100 + seed), index(seed), {
        samples: 199,
        blockLength: 2,
      }),
    ).filter(({ p }) => p < 0.05).length;
    // 200 tests at 5 %: 10 expected, standard deviation 3.1.
    expect(rejected).toBeGreaterThan(1);
    expect(rejected).toBeLessThan(26);
  });

  it('is centred on the expectation of moving blocks, which favour the middle', () => {
    // Days 0 0 6 with blocks of 2: blocks 00 and 06, then one day: the first of either block, always 0.
    // E m* = (3 + 0) / 3 = 1, not 2; the resampled means are 0 and 2, off by 1 < |2|: no resample is extreme.
    const { p, mean } = blockBootstrap([0, 0, 6], index(8), { blockLength: 2, kind: 'moving', samples: 99 });
    expect(mean).toBe(2);
    expect(p).toBe(0.01);
  });

  it('leaves out missing days and refuses what it cannot draw from', () => {
    expect(blockBootstrap([1, Number.NaN, 2, 3], index(9), { samples: 10 }).days).toBe(3);
    expect(() => blockBootstrap([1, Number.NaN], index(9))).toThrow('at least 2 days with a value, found 1');
    expect(() => blockBootstrap([1, 2, 3], index(9), { blockLength: 4 })).toThrow('from 1 to 3, found 4');
  });
});
