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
 * Values whose squares would be 0 or infinite, times a power of two, which changes no digit; all others as they are.
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

export function mean(values: ArrayLike<number>): number {
  return pairwiseSum(values) / values.length;
}

/** Sample standard deviation, dividing by n − 1; NaN for fewer than two values. */
export function standardDeviation(values: ArrayLike<number>): number {
  const centre = mean(values);
  const squares = Float64Array.from(values, (value) => (value - centre) ** 2);
  return values.length < 2 ? Number.NaN : Math.sqrt(pairwiseSum(squares) / (values.length - 1));
}
