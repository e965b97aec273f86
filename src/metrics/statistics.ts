import { InputError } from '../errors.js';

/**
 * Pearson's correlation as pandas' `Series.corr`: pairs with a NaN on either side are dropped; NaN for fewer than two
 * pairs or a constant side.
 */
export function pearson(x: ArrayLike<number>, y: ArrayLike<number>): number {
  return correlate(...validPairs(x, y));
}

/** Spearman's correlation: Pearson's of the average ranks of the valid pairs. */
export function spearman(x: ArrayLike<number>, y: ArrayLike<number>): number {
  const [a, b] = validPairs(x, y);
  return correlate(averageRanks(a), averageRanks(b));
}

/** Ranks from 1, ties sharing the mean of theirs; NaN has the rank NaN and takes no place (pandas' `Series.rank`). */
export function averageRanks(values: ArrayLike<number>): Float64Array {
  const ranks = new Float64Array(values.length).fill(Number.NaN);
  const order: number[] = [];
  for (let i = 0; i < values.length; i++) if (!Number.isNaN(values[i])) order.push(i);
  order.sort((i, j) => values[i] - values[j]);
  for (let from = 0; from < order.length; ) {
    let to = from + 1;
    while (to < order.length && values[order[to]] === values[order[from]]) to++;
    for (let k = from; k < to; k++) ranks[order[k]] = (from + 1 + to) / 2;
    from = to;
  }
  return ranks;
}

/** The pairs with a value on both sides. */
export function validPairs(x: ArrayLike<number>, y: ArrayLike<number>): [Float64Array, Float64Array] {
  if (x.length !== y.length) throw new RangeError(`correlation of ${x.length} values with ${y.length}`);
  const a = new Float64Array(x.length);
  const b = new Float64Array(x.length);
  let n = 0;
  for (let i = 0; i < x.length; i++) {
    if (Number.isNaN(x[i]) || Number.isNaN(y[i])) continue;
    a[n] = x[i];
    b[n++] = y[i];
  }
  return [a.subarray(0, n), b.subarray(0, n)];
}

/**
 * Scales values whose squares would be 0 or infinite by a power of two, which changes no digit; others are unchanged.
 * Correlations and z-scores do not depend on it.
 */
export function squarable(values: Float64Array): Float64Array {
  let largest = 0;
  for (const value of values) largest = Math.max(largest, Math.abs(value));
  if (largest === 0 || !(largest < 1e-100 || largest > 1e100) || largest === Number.POSITIVE_INFINITY) return values;
  const scale = 2 ** Math.floor(Math.log2(largest));
  return values.map((value) => value / scale);
}

function correlate(given: Float64Array, other: Float64Array): number {
  if (given.length < 2) return Number.NaN;
  const [x, y] = [squarable(given), squarable(other)];
  const [meanX, meanY] = [mean(x), mean(y)];
  let [xx, yy, xy] = [0, 0, 0];
  for (let i = 0; i < x.length; i++) {
    const [dx, dy] = [x[i] - meanX, y[i] - meanY];
    xx += dx * dx;
    yy += dy * dy;
    xy += dx * dy;
  }
  const r = xy / Math.sqrt(xx) / Math.sqrt(yy);
  return Math.max(-1, Math.min(1, r));
}

/**
 * Σ x_i by numpy's pairwise summation, bit for bit: eight interleaved partial sums in blocks of at most 128 values,
 * blocks added as a tree. Rounding matters: whether a constant prediction such as 0.1 has a variance of 0 or of 1e-34
 * decides whether qlib counts the day.
 */
export function pairwiseSum(values: ArrayLike<number>, from = 0, to = values.length): number {
  const n = to - from;
  if (n < 8) {
    let sum = 0;
    for (let i = from; i < to; i++) sum += values[i];
    return sum;
  }
  if (n > 128) {
    let half = n >> 1;
    half -= half % 8;
    return pairwiseSum(values, from, from + half) + pairwiseSum(values, from + half, to);
  }
  const partial = [0, 1, 2, 3, 4, 5, 6, 7].map((k) => values[from + k]);
  const whole = from + n - (n % 8);
  for (let i = from + 8; i < whole; i += 8) for (let k = 0; k < 8; k++) partial[k] += values[i + k];
  const [a, b, c, d, e, f, g, h] = partial;
  let sum = a + b + (c + d) + (e + f + (g + h));
  for (let i = whole; i < to; i++) sum += values[i];
  return sum;
}

/** Arithmetic mean with numpy's pairwise summation; NaN of no values. */
export function mean(values: ArrayLike<number>): number {
  return pairwiseSum(values) / values.length;
}

/** Sample standard deviation, dividing by n − 1; NaN for fewer than two values. */
export function standardDeviation(values: ArrayLike<number>): number {
  const centre = mean(values);
  const squares = Float64Array.from(values, (value) => (value - centre) ** 2);
  return values.length < 2 ? Number.NaN : Math.sqrt(pairwiseSum(squares) / (values.length - 1));
}

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

/** A mean with the bounds of its interval. */
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
    throw new InputError(
      `a paired test needs the same number of values on both sides, found ${a.length} and ${b.length}`,
    );
  const differences = a.map((value, i) => value - b[i]);
  if (differences.some((difference) => !Number.isFinite(difference))) {
    throw new InputError('a paired test needs finite values');
  }
  return differences;
}

/**
 * Two-sided p-value of Student's t with ν degrees of freedom:
 *
 *     P(|T| ≥ |t|) = I_x(ν/2, 1/2),  x = ν / (ν + t²)   (Abramowitz & Stegun 26.5.27).
 */
export function studentTwoSided(t: number, degrees: number): number {
  if (Number.isNaN(t)) return Number.NaN;
  return incompleteBeta(degrees / (degrees + t * t), degrees / 2, 0.5);
}

/** The t ≥ 0 that |T| exceeds with probability p, for 0 < p ≤ 1: half the width of an interval in standard errors. */
export function studentCritical(p: number, degrees: number): number {
  let [low, high] = [0, 1];
  while (studentTwoSided(high, degrees) > p) high *= 2;
  // Bisection down to neighbouring numbers.
  for (let middle = (low + high) / 2; middle > low && middle < high; middle = (low + high) / 2) {
    if (studentTwoSided(middle, degrees) > p) low = middle;
    else high = middle;
  }
  return high;
}

/**
 * The regularised incomplete beta function I_x(a, b), by the continued fraction 26.5.8 of Abramowitz & Stegun (in
 * Lentz's evaluation) on the side of its mean where it converges fast.
 */
export function incompleteBeta(x: number, a: number, b: number): number {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(1 - x, b, a);
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x));
  return (front / a) * betaFraction(x, a, b);
}

/** log Γ(x) for x > 0: Lanczos' approximation with g = 7 and nine terms, good to about 1e-15. */
export function logGamma(x: number): number {
  // Γ(x) Γ(1−x) = π / sin πx
  if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - logGamma(1 - x);
  const z = x - 1;
  let series = LANCZOS[0];
  for (let i = 1; i < LANCZOS.length; i++) series += LANCZOS[i] / (z + i);
  const t = z + 7.5;
  return 0.5 * Math.log(2 * Math.PI) + (z + 0.5) * Math.log(t) - t + Math.log(series);
}

const LANCZOS = [
  0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
  12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
];

const TINY = 1e-300;
const PRECISION = 1e-16;

function betaFraction(x: number, a: number, b: number): number {
  const away = (value: number) => (Math.abs(value) < TINY ? TINY : value);
  let c = 1;
  let d = 1 / away(1 - ((a + b) * x) / (a + 1));
  let fraction = d;
  for (let m = 1; m < 100_000; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away(1 + even * d);
    c = away(1 + even / c);
    fraction *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away(1 + odd * d);
    c = away(1 + odd / c);
    fraction *= d * c;
    if (Math.abs(d * c - 1) < PRECISION) return fraction;
  }
  throw new RangeError(`the incomplete beta function did not converge at x ${x}, a ${a}, b ${b}`);
}

/** Items by a key, both in the order in which they come. */
export function groupBy<T, K>(items: Iterable<T>, keyOf: (item: T, index: number) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  let index = 0;
  for (const item of items) {
    const key = keyOf(item, index++);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}
