import { mean } from './summation.js';

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

/**
 * Kendall's τ_b of the valid pairs, in O(n log n) (Knight 1966):
 *
 *     τ_b = (concordant − discordant) / √((n₀ − n₁)(n₀ − n₂)),  n₀ = n(n−1)/2, n₁ and n₂ the pairs tied in x and in y.
 */
export function kendall(x: ArrayLike<number>, y: ArrayLike<number>): number {
  const [a, b] = validPairs(x, y);
  const n = a.length;
  if (n < 2) return Number.NaN;
  const order = Array.from(a.keys()).sort((i, j) => a[i] - a[j] || b[i] - b[j]);
  const tiedX = tiedPairs(order.map((i) => a[i]));
  const tiedBoth = tiedPairs(order, (i, j) => a[i] === a[j] && b[i] === b[j]);
  const values = Float64Array.from(order, (i) => b[i]);
  const discordant = sortCountingSwaps(values);
  const tiedY = tiedPairs(values);
  const pairs = (n * (n - 1)) / 2;
  const difference = pairs - tiedX - tiedY + tiedBoth - 2 * discordant;
  return difference / Math.sqrt(pairs - tiedX) / Math.sqrt(pairs - tiedY);
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

function tiedPairs<T>(sorted: ArrayLike<T>, same = (a: T, b: T) => a === b): number {
  let pairs = 0;
  let run = 1;
  for (let i = 1; i <= sorted.length; i++) {
    if (i < sorted.length && same(sorted[i], sorted[i - 1])) run++;
    else {
      pairs += (run * (run - 1)) / 2;
      run = 1;
    }
  }
  return pairs;
}

/** Merge sort in place; returns the number of neighbour swaps a bubble sort would have made. */
function sortCountingSwaps(values: Float64Array): number {
  const n = values.length;
  let source = values;
  let target: Float64Array = new Float64Array(n);
  let swaps = 0;
  for (let width = 1; width < n; width *= 2) {
    for (let left = 0; left < n; left += 2 * width) {
      const middle = Math.min(left + width, n);
      const end = Math.min(left + 2 * width, n);
      let [i, j] = [left, middle];
      for (let k = left; k < end; k++) {
        if (i < middle && (j >= end || source[i] <= source[j])) target[k] = source[i++];
        else {
          swaps += middle - i;
          target[k] = source[j++];
        }
      }
    }
    [source, target] = [target, source];
  }
  if (source !== values) values.set(source);
  return swaps;
}
