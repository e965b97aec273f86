import { InputError } from '../errors.js';
import { averageRanks } from './correlation.js';
import { studentCritical, studentTwoSided } from './distributions.js';
import { mean, standardDeviation } from './summation.js';

/** A two-sided test of paired values: the scores of two methods, seed by seed. */
export interface PairedTest {
  readonly statistic: number;
  readonly p: number;
  /** Pairs that count. */
  readonly n: number;
}

/**
 * Paired t-test: t = d̄ / (s_d / √n) with n − 1 degrees of freedom, d the differences a − b. Identical differences give
 * t = ±∞ and p = 0, or NaN if they are all 0.
 */
export function pairedTTest(a: readonly number[], b: readonly number[]): PairedTest {
  const differences = pairedDifferences(a, b);
  const n = differences.length;
  if (n < 2) throw new InputError(`a paired t-test needs at least 2 pairs, found ${n}`);
  const statistic = mean(differences) / (standardDeviation(differences) / Math.sqrt(n));
  return { statistic, p: studentTwoSided(statistic, n - 1), n };
}

export interface Interval {
  readonly mean: number;
  readonly low: number;
  readonly high: number;
}

/** 95 % interval of a mean: x̄ ± t · s / √n. NaN bounds for fewer than two values. */
export function interval(values: readonly number[]): Interval {
  const n = values.length;
  const centre = mean(values);
  const half = n < 2 ? Number.NaN : (studentCritical(0.05, n - 1) * standardDeviation(values)) / Math.sqrt(n);
  return { mean: centre, low: centre - half, high: centre + half };
}

/**
 * Wilcoxon's signed-rank test (1945) with the exact distribution, ties and all: W is the rank sum of the positive
 * differences, zero differences left out, and p the share of the 2ⁿ sign patterns at least as far from the middle.
 */
export function wilcoxonSignedRank(a: readonly number[], b: readonly number[]): PairedTest {
  const differences = pairedDifferences(a, b).filter((difference) => difference !== 0);
  const n = differences.length;
  // Twice the average ranks: whole numbers.
  const ranks = averageRanks(differences.map(Math.abs)).map((rank) => 2 * rank);
  const total = n * (n + 1);
  const positive = ranks.reduce((sum, rank, i) => sum + (differences[i] > 0 ? rank : 0), 0);

  // probability[w]: of the doubled rank sum w, if each sign is the toss of a coin.
  const probability = new Float64Array(total + 1);
  probability[0] = 1;
  let reached = 0;
  for (const rank of ranks) {
    reached += rank;
    for (let w = reached; w >= 0; w--) {
      probability[w] = (probability[w] + (w >= rank ? probability[w - rank] : 0)) / 2;
    }
  }
  const smaller = Math.min(positive, total - positive);
  let tail = 0;
  for (let w = 0; w <= smaller; w++) tail += probability[w];
  return { statistic: positive / 2, p: Math.min(1, 2 * tail), n };
}

/**
 * Holm's correction (1979) of the p-values of several comparisons: sorted ascending, the i-th of m is multiplied by
 * m − i + 1, and none may be smaller than one before it. Returned in the order given.
 */
export function holm(pValues: readonly number[]): number[] {
  const order = pValues.map((_, i) => i).sort((i, j) => pValues[i] - pValues[j]);
  const adjusted = new Array<number>(pValues.length);
  let largest = 0;
  for (const [place, i] of order.entries()) {
    largest = Math.max(largest, Math.min(1, (pValues.length - place) * pValues[i]));
    adjusted[i] = largest;
  }
  return adjusted;
}

function pairedDifferences(a: readonly number[], b: readonly number[]): number[] {
  if (a.length !== b.length)
    throw new InputError(`a paired test needs as many values, found ${a.length} and ${b.length}`);
  const differences = a.map((value, i) => value - b[i]);
  if (differences.some((difference) => !Number.isFinite(difference))) {
    throw new InputError('a paired test needs finite values');
  }
  return differences;
}
