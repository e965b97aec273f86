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

/** The mean of a series and its uncertainty. */
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

/**
 * numpy's `default_rng(seed)`: PCG64 (O'Neill 2014, XSL-RR 128/64) seeded through numpy's SeedSequence. sacreBLEU draws
 * its resamples from it; drawing the same ones gives the same p-values.
 */
export class Pcg64 {
  // Eight limbs of 16 bits, least significant first.
  private readonly state = new Float64Array(8);
  private readonly increment: Float64Array;
  private high = 0;
  private hasHigh = false;
  private bits = 0;
  private bitsLeft = 0;

  /** @param seed an integer from 0 to 2³² − 1 */
  constructor(seed: number) {
    const words = seedWords(seed);
    // The first half of the words is the initial state, the second the sequence: each two little-endian 64-bit numbers,
    // the high one first.
    const initial = limbs([words[2], words[3], words[0], words[1]]);
    const sequence = limbs([words[6], words[7], words[4], words[5]]);
    this.increment = add(add(sequence, sequence), Float64Array.of(1, 0, 0, 0, 0, 0, 0, 0));
    this.step();
    this.state.set(add(this.state, initial));
    this.step();
  }

  /** A uniform 32-bit integer: the low half of a 64-bit draw, then its high half. */
  uint32(): number {
    if (this.hasHigh) {
      this.hasHigh = false;
      return this.high;
    }
    this.step();
    const s = this.state;
    const low = join(s[4], s[5]) ^ join(s[0], s[1]);
    const high = join(s[6], s[7]) ^ join(s[2], s[3]);
    // Rotate the 64-bit xor right by the state's top six bits.
    const turn = s[7] >>> 10;
    const [a, b] = turn < 32 ? [low, high] : [high, low];
    const shift = turn % 32;
    this.high = (shift === 0 ? b : (b >>> shift) | (a << (32 - shift))) >>> 0;
    this.hasHigh = true;
    return (shift === 0 ? a : (a >>> shift) | (b << (32 - shift))) >>> 0;
  }

  /** A uniform integer in [0, n), `rng.integers(n)` for n < 2³²: Lemire's multiplication with rejection. */
  int(n: number): number {
    if (n === 1) return 0;
    const threshold = (2 ** 32 - n) % n;
    while (true) {
      const draw = this.uint32();
      // The 64-bit product draw · n in two halves of at most 53 bits.
      const low = (draw & 0xffff) * n;
      const high = (draw >>> 16) * n + Math.floor(low / 65536);
      const fraction = (high % 65536) * 65536 + (low % 65536);
      if (fraction >= threshold) return Math.floor(high / 65536);
    }
  }

  /** A fair coin, `rng.integers(2, dtype=bool)`: the bits of a 32-bit draw, lowest first. */
  coin(): boolean {
    if (this.bitsLeft === 0) {
      this.bits = this.uint32();
      this.bitsLeft = 32;
    } else this.bits >>>= 1;
    this.bitsLeft--;
    return (this.bits & 1) === 1;
  }

  private step(): void {
    const state = this.state;
    let carry = 0;
    for (let k = 7; k >= 0; k--) {
      let sum = this.increment[k];
      for (let i = 0; i <= k; i++) sum += state[i] * MULTIPLIER[k - i];
      state[k] = sum;
    }
    for (let k = 0; k < 8; k++) {
      const total = state[k] + carry;
      carry = Math.floor(total / 65536);
      state[k] = total - carry * 65536;
    }
  }
}

// 0x2360ed051fc65da44385df649fccf645
const MULTIPLIER = limbs([0x9fccf645, 0x4385df64, 0x1fc65da4, 0x2360ed05]);

function limbs(words: readonly number[]): Float64Array {
  return Float64Array.from(words.flatMap((word) => [word & 0xffff, word >>> 16]));
}

function add(a: Float64Array, b: Float64Array): Float64Array {
  const sum = new Float64Array(8);
  let carry = 0;
  for (let k = 0; k < 8; k++) {
    const total = a[k] + b[k] + carry;
    carry = total >= 65536 ? 1 : 0;
    sum[k] = total - carry * 65536;
  }
  return sum;
}

function join(low: number, high: number): number {
  return (high << 16) | low;
}

/** SeedSequence(seed).generate_state(8): the hash of O'Neill's `seed_seq_fe`, pool of four words. */
function seedWords(seed: number): number[] {
  let constant = 0x43b0d7e5;
  const hash = (word: number) => {
    const mixed = word ^ constant;
    constant = Math.imul(constant, 0x931e8875);
    return fold(Math.imul(mixed, constant));
  };
  const pool = [seed >>> 0, 0, 0, 0].map(hash);
  for (let from = 0; from < 4; from++) {
    for (let to = 0; to < 4; to++) {
      if (from === to) continue;
      pool[to] = fold(Math.imul(0xca01f9dd, pool[to]) - Math.imul(0x4973f715, hash(pool[from])));
    }
  }
  constant = 0x8b51f9dd;
  return Array.from({ length: 8 }, (_, i) => {
    const mixed = pool[i % 4] ^ constant;
    constant = Math.imul(constant, 0x58f38ded);
    return fold(Math.imul(mixed, constant)) >>> 0;
  });
}

function fold(word: number): number {
  const unsigned = word >>> 0;
  return (unsigned ^ (unsigned >>> 16)) >>> 0;
}
