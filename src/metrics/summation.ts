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
