import { InputError } from '../errors.js';
import { mean, standardDeviation } from './summation.js';

export interface BlockBootstrapOptions {
  /** Days in a block. Default ⌈n^(1/3)⌉. */
  readonly blockLength?: number;
  /** Default 10,000. */
  readonly samples?: number;
  /** `circular` (default) lets a block run over the end into the beginning; `moving` does not. */
  readonly kind?: 'circular' | 'moving';
}

export interface BlockBootstrap {
  readonly mean: number;
  /** Standard deviation of the resampled means. */
  readonly standardError: number;
  /** 95 % percentile interval of the mean. */
  readonly interval: readonly [number, number];
  /** Two-sided p-value of the hypothesis that the mean is 0. */
  readonly p: number;
  /** Days that count: those without NaN. */
  readonly days: number;
  readonly blockLength: number;
}

/**
 * Bootstrap of the mean of a dependent series, such as the daily difference of two models' RankIC: whole blocks of
 * consecutive days are drawn, so that the dependence within a block survives (Künsch 1989, moving blocks; Politis &
 * Romano 1992, circular blocks). NaN days are left out. With m* the resampled means and E m* their expectation,
 *
 *     p = (#{ |m* − E m*| ≥ |m| } + 1) / (samples + 1).
 *
 * @param index a uniform integer in [0, n)
 */
export function blockBootstrap(
  series: ArrayLike<number>,
  index: (n: number) => number,
  options: BlockBootstrapOptions = {},
): BlockBootstrap {
  const values = Float64Array.from(series).filter((value) => !Number.isNaN(value));
  const n = values.length;
  if (n < 2) throw new InputError(`a block bootstrap needs at least 2 days with a value, found ${n}`);
  const blockLength = options.blockLength ?? Math.ceil(n ** (1 / 3));
  if (!Number.isInteger(blockLength) || blockLength < 1 || blockLength > n) {
    throw new InputError(`the block length must be a whole number of days from 1 to ${n}, found ${blockLength}`);
  }
  const samples = options.samples ?? 10_000;
  const starts = options.kind === 'moving' ? n - blockLength + 1 : n;
  const sumOf = blockSums(values);
  const whole = Math.floor(n / blockLength);
  const rest = n - whole * blockLength;

  const means = new Float64Array(samples);
  for (let sample = 0; sample < samples; sample++) {
    let sum = 0;
    for (let block = 0; block < whole; block++) sum += sumOf(index(starts), blockLength);
    if (rest > 0) sum += sumOf(index(starts), rest);
    means[sample] = sum / n;
  }

  const centre = mean(values);
  const expected = expectedSum(starts, sumOf, whole, blockLength, rest) / n;
  let extreme = 0;
  for (const value of means) if (Math.abs(value - expected) >= Math.abs(centre)) extreme++;
  const sorted = means.toSorted();
  const tail = Math.floor(samples / 40);
  return {
    mean: centre,
    standardError: standardDeviation(means),
    interval: [sorted[tail], sorted[samples - tail - 1]],
    p: (extreme + 1) / (samples + 1),
    days: n,
    blockLength,
  };
}

/** Σ of `length` values from `start` on, wrapping around, from running totals. */
function blockSums(values: Float64Array): (start: number, length: number) => number {
  const n = values.length;
  const totals = new Float64Array(2 * n + 1);
  for (let i = 0; i < 2 * n; i++) totals[i + 1] = totals[i] + values[i % n];
  return (start, length) => totals[start + length] - totals[start];
}

// Moving blocks draw the days near the ends less often: the mean of their means is not the mean of the series.
function expectedSum(
  starts: number,
  sumOf: (start: number, length: number) => number,
  whole: number,
  blockLength: number,
  rest: number,
): number {
  let sum = 0;
  for (let start = 0; start < starts; start++) sum += whole * sumOf(start, blockLength) + sumOf(start, rest);
  return sum / starts;
}
