import type { Samples } from '../data/samples.js';

/** Returns of the stocks grouped by their forecast, day by day. */
export interface GroupReturns {
  /** Calendar index of each day that has at least one stock a group. */
  readonly days: Int32Array;
  /** [groups][days]: mean return of each group; group 0 has the highest forecasts. */
  readonly returns: readonly Float64Array[];
  /** [groups][days]: running sums of `returns`. */
  readonly cumulative: readonly Float64Array[];
  /** [days]: group 0 minus the last group, running sum. */
  readonly longShort: Float64Array;
}

/**
 * Sorts each day's stocks by their forecast, cuts them into `groups` parts of equal size (to within one stock) and
 * averages the return that followed in each. Stocks without a forecast or a return are left out; equal forecasts keep the
 * order of the samples; a day with fewer stocks than groups is left out.
 *
 * @param scores forecast of each sample
 * @param returns what came of it: the raw label of each sample
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
    for (let i = samples.dayStarts[d]!; i < samples.dayStarts[d + 1]!; i++) {
      if (!Number.isNaN(scores[i]!) && !Number.isNaN(returns[i]!)) order.push(i);
    }
    if (order.length < groups) continue;
    order.sort((a, b) => scores[b]! - scores[a]!);
    days.push(samples.day[order[0]!]!);
    for (let g = 0; g < groups; g++) {
      const from = Math.floor((g * order.length) / groups);
      const to = Math.floor(((g + 1) * order.length) / groups);
      let sum = 0;
      for (let i = from; i < to; i++) sum += returns[order[i]!]!;
      series[g]!.push(sum / (to - from));
    }
  }
  const daily = series.map((values) => Float64Array.from(values));
  const cumulative = daily.map(runningSum);
  return {
    days: Int32Array.from(days),
    returns: daily,
    cumulative,
    longShort: cumulative[0]!.map((x, i) => x - cumulative[groups - 1]![i]!),
  };
}

function runningSum(values: Float64Array): Float64Array {
  let sum = 0;
  return values.map((x) => {
    sum += x;
    return sum;
  });
}
