import { InputError } from '../errors.js';
import { type SegmentMetric, type SegmentStatistics, sumSegments } from './segments.js';
import { mean, standardDeviation } from './statistics.js';

/** A system's score with its bootstrap mean and half the width of its 95 % interval. */
export interface BootstrapScore {
  readonly score: number;
  readonly mean: number;
  readonly ci: number;
}

/** The scores of a baseline and of the systems that were compared with it. */
export interface PairedBootstrap {
  readonly baseline: BootstrapScore;
  /** Each system with the p-value of its difference from the baseline. */
  readonly systems: readonly (BootstrapScore & { readonly p: number })[];
}

/**
 * Paired bootstrap resampling (Koehn 2004) as in sacreBLEU: segments are drawn with replacement, the same ones for
 * every system, and
 *
 *     p = (#{ |d_i| − mean |d| > |d| } + 1) / (samples + 1),
 *
 * d the difference of the real scores and d_i that of resample i. Two identical systems get 1 / (samples + 1): the
 * comparison is strict.
 *
 * @param index a uniform integer in [0, n)
 */
export function pairedBootstrap(
  metric: SegmentMetric,
  baseline: SegmentStatistics,
  systems: readonly SegmentStatistics[],
  samples: number,
  index: (n: number) => number,
): PairedBootstrap {
  const all = [baseline, ...systems];
  const scores = all.map((statistics) => metric.score(sumSegments(statistics)));
  const resampled = resampleScores(metric, all, samples, index);
  const summaries = all.map((_, s) => ({ score: scores[s], ...interval(resampled[s]) }));
  return {
    baseline: summaries[0],
    systems: summaries.slice(1).map((summary, s) => {
      const differences = resampled[s + 1].map((score, i) => Math.abs(score - resampled[0][i]));
      const centre = mean(differences);
      const excess = differences.map((difference) => difference - centre);
      return { ...summary, p: pValue(excess, Math.abs(scores[s + 1] - scores[0])) };
    }),
  };
}

/** The scores of bootstrap resamples of several systems over the same drawn segments. */
export function resampleScores(
  metric: SegmentMetric,
  systems: readonly SegmentStatistics[],
  samples: number,
  index: (n: number) => number,
): Float64Array[] {
  checkSameSegments(systems);
  const { segments, width } = systems[0];
  const scores = systems.map(() => new Float64Array(samples));
  const drawn = new Int32Array(segments);
  const sums = new Float64Array(width);
  for (let sample = 0; sample < samples; sample++) {
    for (let i = 0; i < segments; i++) drawn[i] = index(segments) * width;
    for (const [s, { values }] of systems.entries()) {
      sums.fill(0);
      for (let i = 0; i < segments; i++) for (let j = 0; j < width; j++) sums[j] += values[drawn[i] + j];
      scores[s][sample] = metric.score(sums);
    }
  }
  return scores;
}

/** The scores of two systems, and the p-value of their difference. */
export interface RandomisationTest {
  readonly baseline: number;
  readonly system: number;
  readonly p: number;
}

/**
 * Approximate randomisation (Noreen 1989; Riezler & Maxwell 2005) as in sacreBLEU: if the systems were the same,
 * exchanging their outputs of a segment would change nothing. Each trial exchanges every segment by the toss of a coin;
 *
 *     p = (#{ |d_i| > |d| } + 1) / (trials + 1).
 *
 * @param coin a fair coin; true keeps a segment where it is
 */
export function approximateRandomisation(
  metric: SegmentMetric,
  baseline: SegmentStatistics,
  system: SegmentStatistics,
  trials: number,
  coin: () => boolean,
): RandomisationTest {
  checkSameSegments([baseline, system]);
  const { segments, width } = baseline;
  const [sumsA, sumsB] = [sumSegments(baseline), sumSegments(system)];
  const gaps = system.values.map((value, i) => value - baseline.values[i]);
  const [a, b] = [metric.score(sumsA), metric.score(sumsB)];
  const differences = new Float64Array(trials);
  const [trialA, trialB] = [new Float64Array(width), new Float64Array(width)];
  for (let trial = 0; trial < trials; trial++) {
    trialA.set(sumsA);
    trialB.set(sumsB);
    for (let i = 0; i < segments; i++) {
      if (coin()) continue;
      for (let j = 0; j < width; j++) {
        trialA[j] += gaps[i * width + j];
        trialB[j] -= gaps[i * width + j];
      }
    }
    differences[trial] = Math.abs(metric.score(trialA) - metric.score(trialB));
  }
  return { baseline: a, system: b, p: pValue(differences, Math.abs(a - b)) };
}

function pValue(statistics: Float64Array, real: number): number {
  let larger = 0;
  for (const statistic of statistics) if (statistic > real) larger++;
  return (larger + 1) / (statistics.length + 1);
}

function interval(scores: Float64Array): { mean: number; ci: number } {
  const sorted = scores.toSorted();
  const lower = Math.floor(sorted.length / 40);
  return { mean: mean(sorted), ci: (sorted[sorted.length - lower - 1] - sorted[lower]) / 2 };
}

function checkSameSegments(systems: readonly SegmentStatistics[]): void {
  for (const { segments } of systems) {
    if (segments !== systems[0].segments) {
      throw new RangeError(`paired systems must have the same segments, found ${systems[0].segments} and ${segments}`);
    }
  }
}

/** How the series is resampled. */
export interface BlockBootstrapOptions {
  /** Days in a block. Default ⌈n^(1/3)⌉. */
  readonly blockLength?: number;
  /** Default 10,000. */
  readonly samples?: number;
  /** `circular` (default) lets a block run over the end into the beginning; `moving` does not. */
  readonly kind?: 'circular' | 'moving';
}

/** The mean of a series and how sure it is. */
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
export function blockSums(values: Float64Array): (start: number, length: number) => number {
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
