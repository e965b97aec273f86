import { describe, expect, it } from 'vitest';
import { blockBootstrap, crossedBootstrap, mean, pairedTTest, standardDeviation } from '../../src/metrics/index.js';
import { Random } from '../../src/random.js';

/** What makes the daily RankIC of two methods that are equally good differ: the seeds, the days, both together. */
interface Noise {
  readonly seed: number;
  readonly day: number;
  readonly both: number;
  /** How much of a day's noise is left on the next. */
  readonly memory?: number;
}

const DAYS = 200;

/** RankIC of two methods with the same seeds on the same days, the second better by `gain` on average. */
function methods(random: Random, seeds: number, { seed, day, both, memory = 0 }: Noise, gain = 0): number[][][] {
  const walk = (size: number): number[] => {
    let now = 0;
    return Array.from({ length: DAYS }, () => {
      now = memory * now + size * random.normal();
      return now;
    });
  };
  const market = walk(1);
  return [0, gain].map((better) => {
    const days = walk(day);
    return Array.from({ length: seeds }, () => {
      const level = better + seed * random.normal();
      return walk(both).map((own, t) => market[t] + days[t] + level + own);
    });
  });
}

function differences([a, b]: readonly number[][][]): number[][] {
  return a.map((values, s) => values.map((value, t) => b[s][t] - value));
}

/** Share of p < .05 among many comparisons. */
function found(noise: Noise, gain = 0, seeds = 5): number {
  const random = new Random(7).fork('null');
  const trials = 800;
  const hits = Array.from({ length: trials }, () => crossedBootstrap(differences(methods(random, seeds, noise, gain))));
  return hits.filter(({ p }) => p < 0.05).length / trials;
}

describe('a bootstrap of seeds × blocks of days', () => {
  // The share of 800 is between .034 and .066 in 96 % of all cases when it is .05.
  it.each([
    ['seeds alone', { seed: 1, day: 0, both: 0 }, 5],
    ['three seeds', { seed: 1, day: 0, both: 0 }, 3],
    ['days alone', { seed: 0, day: 1, both: 0 }, 5],
    ['days that remember', { seed: 0, day: 1, both: 0, memory: 0.3 }, 5],
    ['seeds and days', { seed: 0.05, day: 1, both: 1 }, 5],
    ['seeds and days that remember', { seed: 0.05, day: 1, both: 1, memory: 0.3 }, 5],
  ])('finds a difference that is not there about once in twenty times: %s', (_, noise, seeds) => {
    const share = found(noise, 0, seeds);
    expect(share).toBeGreaterThan(0.03);
    expect(share).toBeLessThan(0.075);
  });

  it('is careful, not wrong, when every run has noise of its own', () => {
    expect(found({ seed: 0, day: 0, both: 1 })).toBeLessThan(0.05);
  });

  it('does not change what it finds when the arms are exchanged', () => {
    const [a, b] = methods(new Random(3), 5, { seed: 0.05, day: 1, both: 1 });
    const [one, other] = [crossedBootstrap(differences([a, b])), crossedBootstrap(differences([b, a]))];
    expect(one.p).toBeCloseTo(other.p, 12);
    expect(one.mean).toBeCloseTo(-other.mean, 12);
  });

  it('finds a difference that is there', () => {
    // Standard error: √(2 (.05² ∕ 5 + 1 ∕ 200 + 1 ∕ 1000)) = .114; five of them.
    expect(found({ seed: 0.05, day: 1, both: 1 }, 0.57)).toBeGreaterThan(0.95);
  });

  it('is the paired t-test where only the seeds differ', () => {
    const gains = [0.3, 0.1, -0.2, 0.4, 0.25];
    const { p, standardError, degrees } = crossedBootstrap(gains.map((gain) => new Array(60).fill(gain)));
    expect(p).toBeCloseTo(pairedTTest(gains, [0, 0, 0, 0, 0]).p, 9);
    expect(standardError).toBeCloseTo(standardDeviation(gains) / Math.sqrt(5), 12);
    expect(degrees).toBeCloseTo(4, 9);
  });

  it('has the variance of resampled days where all seeds are the same, and of both drawn where effects add up', () => {
    const random = new Random(11);
    const days = Array.from({ length: DAYS }, () => random.normal());
    const index = (n: number) => random.int(n);
    const alone = crossedBootstrap([days, days, days]);
    const drawn = blockBootstrap(days, index, { samples: 20_000 });
    expect(alone.standardError / drawn.standardError).toBeCloseTo(1, 1);
    expect(alone.blockLength).toBe(drawn.blockLength);

    const levels = [0.1, -0.1, 0.05];
    const crossed = crossedBootstrap(levels.map((level) => days.map((value) => value + level)));
    const [S, L] = [levels.length, crossed.blockLength];
    const means = Array.from({ length: 20_000 }, () => {
      const level = mean(levels.map(() => levels[index(S)]));
      let [sum, left] = [0, DAYS];
      while (left > 0) {
        const start = index(DAYS);
        for (let i = 0; i < Math.min(L, left); i++) sum += days[(start + i) % DAYS];
        left -= L;
      }
      return level + sum / DAYS;
    });
    // The draws of S seeds vary by (S − 1) ∕ S of what their mean does.
    const ofSeeds = standardDeviation(levels) ** 2 / S;
    const expected = Math.sqrt(standardDeviation(means) ** 2 + ofSeeds / S);
    expect(crossed.standardError / expected).toBeCloseTo(1, 1);
  });

  it('leaves out days that a seed lacks, and says nothing differs where nothing does', () => {
    const values = [1, 2, Number.NaN, 1, 3, 2, 4, 1, 2];
    const { days, mean } = crossedBootstrap([values, values.map((value, t) => (t === 4 ? Number.NaN : value))]);
    expect([days, mean]).toEqual([7, 13 / 7]);
    expect(crossedBootstrap([new Array(9).fill(0), new Array(9).fill(0)])).toMatchObject({ p: 1, standardError: 0 });
  });

  it('refuses a single seed and too few days', () => {
    expect(() => crossedBootstrap([[1, 2, 3]])).toThrow('at least 2 seeds, found 1');
    const few = [1, 2, 3];
    expect(() => crossedBootstrap([few, few])).toThrow('at least two blocks of 2 days, found 3');
    // As of two models that say the same of all stocks.
    const none = [Number.NaN, Number.NaN];
    expect(() => crossedBootstrap([none, none])).toThrow('at least two blocks of 1 days, found 0');
    expect(() => crossedBootstrap([[], []])).toThrow('found 0');
  });
});
