/** How good and how bumpy a series of daily returns is. */
export interface Risk {
  /** Mean daily return times the trading days of a year: returns are added, not compounded. */
  readonly annualReturn: number;
  /** Mean / standard deviation (ddof 1) of the daily returns, times the root of the trading days of a year. */
  readonly informationRatio: number;
  /** Deepest fall of the running sum of returns below its highest point so far; zero or negative. */
  readonly maxDrawdown: number;
}

/** Trading days of a year in the Chinese market, as qlib counts them. */
export const DAYS_PER_YEAR = 238;

/** qlib's `risk_analysis` in its default mode `sum`. NaN where there are too few days. */
export function risk(returns: ArrayLike<number>, daysPerYear = DAYS_PER_YEAR): Risk {
  const n = returns.length;
  let sum = 0;
  // qlib's peak starts at the first day's sum, not at zero: a loss on the first day is no fall from anywhere.
  let peak = Number.NEGATIVE_INFINITY;
  let maxDrawdown = n === 0 ? Number.NaN : 0;
  for (let i = 0; i < n; i++) {
    sum += returns[i]!;
    peak = Math.max(peak, sum);
    maxDrawdown = Math.min(maxDrawdown, sum - peak);
  }
  const mean = sum / n;
  let squares = 0;
  for (let i = 0; i < n; i++) squares += (returns[i]! - mean) ** 2;
  const deviation = Math.sqrt(squares / (n - 1));
  return {
    annualReturn: mean * daysPerYear,
    informationRatio: (mean / deviation) * Math.sqrt(daysPerYear),
    maxDrawdown,
  };
}
