import { Random } from '../../src/random.js';
import { type SeriesConfig, SeriesProblem, type SeriesTable, seriesSchema } from '../../src/series/index.js';

/** A series so small that a training takes a moment. */
export const SMALL = {
  kind: 'series',
  data: { format: 'synthetic', rows: 600 },
  tasks: [1, 3, 6],
  main: 3,
  window: 8,
  model: { hidden: 6, layers: 1 },
  batch: 32,
  learningRate: 0.01,
};

export function smallConfig(over: Record<string, unknown> = {}): SeriesConfig {
  return seriesSchema.parse({ ...SMALL, ...over });
}

export function smallProblem(over: Record<string, unknown> = {}, seed = 1, workers = 1): Promise<SeriesProblem> {
  return SeriesProblem.create(smallConfig(over), { random: new Random(seed), threads: 1, workers });
}

/** Hourly rows of the given columns. */
export function tableOf(columns: Readonly<Record<string, readonly number[]>>): SeriesTable {
  const values = Object.values(columns);
  return {
    names: Object.keys(columns),
    columns: values.map((column) => Float64Array.from(column)),
    dates: values[0].map((_, t) => `2016-07-01 ${t}`),
    filled: 0,
  };
}
