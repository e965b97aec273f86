/** A linear map from values to places on a chart, with round values to mark. */
export interface Scale {
  (value: number): number;
  readonly ticks: readonly number[];
}

export function linearScale(values: readonly number[], from: number, to: number, count = 4): Scale {
  const [low, high] = extent(values);
  const scale = (value: number) => from + ((value - low) / (high - low)) * (to - from);
  return Object.assign(scale, { ticks: roundValues(low, high, count) });
}

/** The smallest and the largest, apart from each other. */
function extent(values: readonly number[]): [number, number] {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return [0, 1];
  if (low < high) return [low, high];
  const margin = Math.abs(low) * 0.05 || 0.5;
  return [low - margin, high + margin];
}

/** Multiples of 1, 2 or 5 times a power of ten. */
function roundValues(low: number, high: number, count: number): number[] {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough) ?? rough;
  const ticks: number[] = [];
  for (let n = Math.ceil(low / step); n * step <= high; n++) ticks.push(n * step);
  return ticks;
}
