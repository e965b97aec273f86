/** What the forecasts of a day are to say nothing about. */
export interface Exposures {
  /** Group of each forecast, such as a sector; NaN: none. Default: all are of one. */
  readonly groups?: ArrayLike<number | string>;
  /** Sensitivity β of each to the market; NaN: unknown. Default: it does not matter. */
  readonly betas?: ArrayLike<number>;
}

/**
 * The forecasts f of one day without what groups and betas explain, the residuals of their least-squares regression on a
 * constant for each group and on β: with ~ for "minus the mean of its group",
 *
 *     f′ᵢ = f̃ᵢ − b · β̃ᵢ,   b = Σ f̃ⱼ β̃ⱼ ∕ Σ β̃ⱼ²
 *
 * Without betas f′ = f̃; without groups the mean is that of the day. So forecasts sum to 0 in each group, and so do their
 * products with β over all. Those without a group are one of their own; an unknown β counts as the mean of its group. A
 * forecast that is NaN stays so, and nothing depends on it.
 */
export function neutralised(forecasts: ArrayLike<number>, { groups, betas }: Exposures): Float64Array {
  const isKnown = (i: number): boolean => !Number.isNaN(forecasts[i]);
  const f = withoutGroupMean(forecasts, groups, isKnown);
  if (betas === undefined) return f;
  const beta = withoutGroupMean(betas, groups, isKnown);
  let [product, square] = [0, 0];
  for (let i = 0; i < f.length; i++) {
    if (Number.isNaN(f[i]) || Number.isNaN(beta[i])) continue;
    product += f[i] * beta[i];
    square += beta[i] * beta[i];
  }
  // Betas that are all equal, but for rounding, explain nothing.
  const slope = square > TINY * f.length ? product / square : 0;
  return f.map((x, i) => (Number.isNaN(beta[i]) ? x : x - slope * beta[i]));
}

const TINY = 1e-12;

/** Each value minus the mean of those of its group that count; NaN where it is unknown. */
function withoutGroupMean(
  values: ArrayLike<number>,
  groups: Exposures['groups'],
  counts: (i: number) => boolean,
): Float64Array {
  const sums = new Map<number | string, { sum: number; count: number }>();
  const groupOf = (i: number): number | string => groups?.[i] ?? 0;
  for (let i = 0; i < values.length; i++) {
    if (!counts(i) || Number.isNaN(values[i])) continue;
    // Maps take all NaN for the same key.
    const entry = sums.get(groupOf(i)) ?? { sum: 0, count: 0 };
    sums.set(groupOf(i), { sum: entry.sum + values[i], count: entry.count + 1 });
  }
  return Float64Array.from({ length: values.length }, (_, i) => {
    const { sum, count } = sums.get(groupOf(i)) ?? { sum: Number.NaN, count: 1 };
    return values[i] - sum / count;
  });
}
