import type { Samples } from '../data/panel.js';

/** Return and risk of a series of daily returns. */
export interface Risk {
  /** Mean daily return times the trading days of a year: returns are added, not compounded. */
  readonly annualReturn: number;
  /** Mean / standard deviation (ddof 1) of the daily returns, times the root of the trading days of a year. */
  readonly informationRatio: number;
  /** Deepest fall of the running sum of returns below its highest point so far; zero or negative. */
  readonly maxDrawdown: number;
}

/**
 * qlib's `risk_analysis` in its default mode `sum`. NaN if there are too few days.
 *
 * @param days trading days of a year
 */
export function risk(returns: ArrayLike<number>, days: number): Risk {
  const n = returns.length;
  let sum = 0;
  // qlib's peak starts at the first day's sum, not at zero: a loss on the first day is not a drawdown.
  let peak = Number.NEGATIVE_INFINITY;
  let maxDrawdown = n === 0 ? Number.NaN : 0;
  for (let i = 0; i < n; i++) {
    sum += returns[i];
    peak = Math.max(peak, sum);
    maxDrawdown = Math.min(maxDrawdown, sum - peak);
  }
  const mean = sum / n;
  let squares = 0;
  for (let i = 0; i < n; i++) squares += (returns[i] - mean) ** 2;
  const deviation = Math.sqrt(squares / (n - 1));
  return {
    annualReturn: mean * days,
    informationRatio: (mean / deviation) * Math.sqrt(days),
    maxDrawdown,
  };
}

/** Returns of the stocks grouped by their forecast, day by day. */
export interface GroupReturns {
  /** Calendar index of each day that has at least one stock per group. */
  readonly days: Int32Array;
  /** [groups][days]: mean return of each group; group 0 has the highest forecasts. */
  readonly returns: readonly Float64Array[];
  /** [groups][days]: running sums of `returns`. */
  readonly cumulative: readonly Float64Array[];
  /** Running sum of group 0 minus the last group, [days]. */
  readonly longShort: Float64Array;
}

/**
 * Sorts each day's stocks by their forecast, cuts them into `groups` parts of equal size (to within one stock) and
 * averages the return that followed in each. Stocks without a forecast or a return are left out; equal forecasts keep the
 * order of the samples; a day with fewer stocks than groups is left out.
 *
 * @param scores forecast of each sample
 * @param returns the outcome: the raw label of each sample
 */
export function groupReturns(
  samples: Samples,
  scores: ArrayLike<number>,
  returns: ArrayLike<number>,
  groups = 5,
): GroupReturns {
  const days: number[] = [];
  const series: number[][] = Array.from({ length: groups }, () => []);
  for (let d = 0; d + 1 < samples.dayStarts.length; d++) {
    const order: number[] = [];
    for (let i = samples.dayStarts[d]; i < samples.dayStarts[d + 1]; i++) {
      if (!Number.isNaN(scores[i]) && !Number.isNaN(returns[i])) order.push(i);
    }
    if (order.length < groups) continue;
    order.sort((a, b) => scores[b] - scores[a]);
    days.push(samples.day[order[0]]);
    for (let g = 0; g < groups; g++) {
      const from = Math.floor((g * order.length) / groups);
      const to = Math.floor(((g + 1) * order.length) / groups);
      let sum = 0;
      for (let i = from; i < to; i++) sum += returns[order[i]];
      series[g].push(sum / (to - from));
    }
  }
  const daily = series.map((values) => Float64Array.from(values));
  const cumulative = daily.map(runningSum);
  return {
    days: Int32Array.from(days),
    returns: daily,
    cumulative,
    longShort: cumulative[0].map((x, i) => x - cumulative[groups - 1][i]),
  };
}

function runningSum(values: Float64Array): Float64Array {
  let sum = 0;
  return values.map((x) => {
    sum += x;
    return sum;
  });
}
