import { InputError } from '../errors.js';
import { blockSums } from './paired-tests.js';
import { mean, studentCritical, studentTwoSided } from './statistics.js';

/** The mean of differences that vary with the seed and with the day, and how sure it is. */
export interface CrossedBootstrap {
  readonly mean: number;
  /** For other seeds and other days at once. */
  readonly standardError: number;
  /** Degrees of freedom of that error, between the seeds and the blocks. */
  readonly degrees: number;
  /** 95 % interval of the mean. */
  readonly interval: readonly [number, number];
  /** Two-sided p-value of the hypothesis that the mean is 0. */
  readonly p: number;
  readonly seeds: number;
  /** Days on which every seed has a value. */
  readonly days: number;
  readonly blockLength: number;
}

/**
 * Bootstrap of seeds × blocks of days (the pigeonhole bootstrap of crossed effects, Owen 2007, with circular blocks of
 * consecutive days). d[s][t] is the difference of two methods with seed s on day t, so that both see the same drawn
 * seeds and days. Drawing seeds alone, days alone, and both has the variances
 *
 *     A = Σ_s (d_s. − d..)² ∕ S²,   B = the block variance of the mean of d_.t,   A + B + I,
 *     I = Σ_s (the block variance of the mean of d_st − d_s. − d_.t + d..) ∕ S²,
 *
 * here exact, as of infinitely many draws. S ∕ (S − 1) makes A and I unbiased; noise of its own in every d_st is then
 * in A, in B and in I once each, but once in the truth:
 *
 *     V = max(A′, B, A′ + B − I′),   A′ = A · S ∕ (S − 1),   I′ = I · S ∕ (S − 1).
 *
 * With five seeds the share of resamples beyond 0 is no p-value: it is below .05 in 16 % of all cases where the seeds
 * vary and nothing differs. p is therefore that of Student's t with Satterthwaite's degrees of freedom, V² ∕ (A′² ∕ (S
 * − 1) + B² ∕ (blocks − 1)).
 *
 * @param differences a series of all days for each seed; days with a NaN in any of them are left out
 */
export function crossedBootstrap(
  differences: readonly ArrayLike<number>[],
  options: { readonly blockLength?: number } = {},
): CrossedBootstrap {
  const seeds = differences.length;
  if (seeds < 2) throw new InputError(`a bootstrap over seeds and days needs at least 2 seeds, found ${seeds}`);
  const series = commonDays(differences);
  const days = series[0].length;
  const { blockLength = Math.ceil(Math.max(1, days) ** (1 / 3)) } = options;
  if (days < 2 * blockLength) {
    throw new InputError(
      `a bootstrap over seeds and days needs at least two blocks of ${blockLength} days, found ${days}`,
    );
  }
  const bySeed = series.map((values) => mean(values));
  const centre = mean(bySeed);
  const byDay = Float64Array.from({ length: days }, (_, t) => mean(series.map((values) => values[t])));
  const own = series.map((values, s) => values.map((value, t) => value - bySeed[s] - byDay[t] + centre));

  const unbiased = 1 / (seeds * (seeds - 1));
  const A = unbiased * sum(bySeed.map((value) => (value - centre) ** 2));
  const B = blockVariance(byDay, blockLength);
  const I = unbiased * sum(own.map((values) => blockVariance(values, blockLength)));
  const V = Math.max(A, B, A + B - I);
  const degrees = V ** 2 / (A ** 2 / (seeds - 1) + B ** 2 / (days / blockLength - 1));
  const standardError = Math.sqrt(V);
  const found = { mean: centre, standardError, seeds, days, blockLength };
  // The same forecasts on both sides.
  if (V === 0) return { ...found, degrees: seeds - 1, interval: [centre, centre], p: centre === 0 ? 1 : 0 };
  const half = standardError * studentCritical(0.05, degrees);
  const p = studentTwoSided(centre / standardError, degrees);
  return { ...found, degrees, interval: [centre - half, centre + half], p };
}

/** Variance of the mean of a series whose circular blocks are drawn, the last one cut to the length of the series. */
function blockVariance(values: Float64Array, blockLength: number): number {
  const n = values.length;
  const centre = mean(values);
  const sumOf = blockSums(values);
  const varianceOf = (length: number): number => {
    let squares = 0;
    for (let start = 0; start < n; start++) squares += (sumOf(start, length) - length * centre) ** 2;
    return squares / n;
  };
  const whole = Math.floor(n / blockLength);
  return (whole * varianceOf(blockLength) + varianceOf(n - whole * blockLength)) / n ** 2;
}

function commonDays(series: readonly ArrayLike<number>[]): Float64Array[] {
  const [first] = series;
  const odd = series.find(({ length }) => length !== first.length);
  if (odd !== undefined)
    throw new RangeError(`paired seeds must have the same days, found ${first.length} and ${odd.length}`);
  const known = Array.from(first, (_, t) => t).filter((t) => series.every((values) => !Number.isNaN(values[t])));
  return series.map((values) => Float64Array.from(known, (t) => values[t]));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
