import { mean, pairwiseSum, pearson, spearman, squarable, standardDeviation, validPairs } from './statistics.js';

/** The cross-section of one day; NaN if a prediction or a label is missing. */
export interface ForecastDay {
  readonly date: string;
  readonly predictions: ArrayLike<number>;
  readonly labels: ArrayLike<number>;
}

/** One day's scores; NaN if undefined (fewer than two pairs, or a constant side). */
export interface DailyScore {
  readonly date: string;
  readonly IC: number;
  readonly RankIC: number;
  /** Mean squared difference of the z-scores of the day. */
  readonly zMSE: number;
}

/** Forecast scores over days; NaN if undefined. */
export interface ForecastScores {
  /** Mean daily Pearson correlation of prediction and label. */
  readonly IC: number;
  /** Mean ÷ standard deviation (n − 1) of the daily IC; not annualised. */
  readonly ICIR: number;
  /** Mean daily Spearman correlation. */
  readonly RankIC: number;
  readonly RankICIR: number;
  /** Mean squared error over all pairs with a prediction and a label. */
  readonly MSE: number;
  /** The paper's MSE: of per-day z-scored predictions and labels, averaged over days; equal to 2 (1 − IC). */
  readonly zMSE: number;
  /** Days with a defined IC. */
  readonly days: number;
}

/**
 * The scores of a forecast in qlib's conventions: a correlation per day over the pairs without NaN, days without a
 * correlation skipped by mean and standard deviation.
 *
 * @param daily the scores of each day, where they have been computed
 */
export function forecastScores(
  days: readonly ForecastDay[],
  daily: readonly DailyScore[] = dailyScores(days),
): ForecastScores {
  const ic = defined(daily.map((day) => day.IC));
  const rankIC = defined(daily.map((day) => day.RankIC));
  return {
    IC: mean(ic),
    ICIR: mean(ic) / standardDeviation(ic),
    RankIC: mean(rankIC),
    RankICIR: mean(rankIC) / standardDeviation(rankIC),
    MSE: meanSquaredError(days),
    zMSE: mean(defined(daily.map((day) => day.zMSE))),
    days: ic.length,
  };
}

/** The daily series behind the scores, by date. */
export function dailyScores(days: readonly ForecastDay[]): DailyScore[] {
  return days
    .map(({ date, predictions, labels }) => {
      const IC = pearson(predictions, labels);
      const zMSE = Number.isNaN(IC) ? Number.NaN : zScoredError(predictions, labels);
      return { date, IC, RankIC: spearman(predictions, labels), zMSE };
    })
    .sort((a, b) => (a.date < b.date ? -1 : a.date > b.date ? 1 : 0));
}

/** Mean squared error over all pairs with a prediction and a label. */
export function meanSquaredError(days: readonly ForecastDay[]): number {
  let [sum, count] = [0, 0];
  for (const { predictions, labels } of days) {
    const [p, y] = validPairs(predictions, labels);
    sum += pairwiseSum(p.map((value, i) => (value - y[i]) ** 2));
    count += p.length;
  }
  return sum / count;
}

/** qlib's validation loss: only missing labels are left out, so that one missing prediction makes it NaN. */
export function labelledSquaredError(days: readonly ForecastDay[]): number {
  let [sum, count] = [0, 0];
  for (const { predictions, labels } of days) {
    for (let i = 0; i < labels.length; i++) {
      if (Number.isNaN(labels[i])) continue;
      sum += (predictions[i] - labels[i]) ** 2;
      count++;
    }
  }
  return sum / count;
}

function zScoredError(predictions: ArrayLike<number>, labels: ArrayLike<number>): number {
  const [p, y] = validPairs(predictions, labels);
  const [zp, zy] = [zScores(squarable(p)), zScores(squarable(y))];
  return mean(zp.map((value, i) => (value - zy[i]) ** 2));
}

// Divided by n, not n − 1: the error of two such series is exactly 2 (1 − correlation).
function zScores(values: Float64Array): Float64Array {
  const centre = mean(values);
  const centred = values.map((value) => value - centre);
  const deviation = Math.sqrt(mean(centred.map((value) => value * value)));
  return centred.map((value) => value / deviation);
}

function defined(values: readonly number[]): number[] {
  return values.filter((value) => !Number.isNaN(value));
}

/** What to remove from the forecasts of a day. */
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
 * products with β over all. Those without a group form a separate group; an unknown β counts as the mean of its group. A
 * NaN forecast stays NaN, and nothing depends on it.
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

/** Each value minus the mean of those of its group that count; NaN if it is unknown. */
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
