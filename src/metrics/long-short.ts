import { InputError } from '../errors.js';
import type { ForecastDay } from './forecast.js';
import { mean, standardDeviation } from './summation.js';

/** One day of the portfolios that qlib's signal analysis looks at. Labels must be returns. */
export interface LongShortDay {
  readonly date: string;
  /** (mean return of the top quantile − mean return of the bottom quantile) / 2. */
  readonly longShort: number;
  /** Mean return of all instruments. */
  readonly average: number;
  /** Share of the top quantile with a positive return. */
  readonly longPrecision: number;
  /** Share of the bottom quantile with a negative return. */
  readonly shortPrecision: number;
}

/** A daily return series in a year's terms. */
export interface AnnualReturn {
  /** mean · days a year. */
  readonly annualReturn: number;
  /** mean / standard deviation (n − 1) · √(days a year). */
  readonly sharpe: number;
}

/**
 * Daily returns of going long the best and short the worst predictions, as qlib's `calc_long_short_return` and
 * `calc_long_short_prec`: ⌊n · quantile⌋ instruments a side, ties to the earlier row, missing labels left out of the
 * means.
 */
export function longShortReturns(days: readonly ForecastDay[], quantile = 0.2): LongShortDay[] {
  if (!(quantile > 0 && quantile <= 0.5)) {
    throw new InputError(`the quantile of a long-short portfolio must lie in (0, 0.5], found ${quantile}`);
  }
  return days.map(({ date, predictions, labels }) => {
    const order = Array.from({ length: predictions.length }, (_, i) => i).filter((i) => !Number.isNaN(predictions[i]));
    const size = Math.floor(predictions.length * quantile);
    const long = returnsOf(order.toSorted((i, j) => predictions[j] - predictions[i]).slice(0, size), labels);
    const short = returnsOf(order.toSorted((i, j) => predictions[i] - predictions[j]).slice(0, size), labels);
    return {
      date,
      longShort: (mean(long) - mean(short)) / 2,
      average: mean(
        returnsOf(
          Array.from({ length: labels.length }, (_, i) => i),
          labels,
        ),
      ),
      longPrecision: long.filter((r) => r > 0).length / long.length,
      shortPrecision: short.filter((r) => r < 0).length / short.length,
    };
  });
}

/** Annualises a series of daily returns; NaN days are skipped. */
export function annualise(returns: readonly number[], daysPerYear = 252): AnnualReturn {
  const valid = returns.filter((r) => !Number.isNaN(r));
  return {
    annualReturn: mean(valid) * daysPerYear,
    sharpe: (mean(valid) / standardDeviation(valid)) * Math.sqrt(daysPerYear),
  };
}

function returnsOf(rows: readonly number[], labels: ArrayLike<number>): number[] {
  return rows.map((i) => labels[i]).filter((label) => !Number.isNaN(label));
}
