import { type ForecastConfig, forecastSchema } from '../../src/forecast/config.js';
import { openForecastData } from '../../src/forecast/data/dataset.js';
import { ForecastProblem } from '../../src/forecast/problem.js';
import { Random } from '../../src/random.js';
import type { Status } from '../../src/schedule/index.js';

/** A market so small that a training takes a moment. Trading days are Monday to Friday from 2015-01-05 on. */
export const SMALL = {
  kind: 'forecast',
  data: { format: 'synthetic', stocks: 20, days: 160, strength: 0.6 },
  split: {
    train: ['2015-01-20', '2015-04-30'],
    validation: ['2015-05-01', '2015-06-15'],
    test: ['2015-06-16', '2015-07-31'],
  },
  features: { window: 6 },
  model: { name: 'gru', hidden: 6, layers: 1 },
  batch: { size: 50, days: 3 },
  learningRate: 0.01,
};

export function smallConfig(over: Record<string, unknown> = {}): ForecastConfig {
  return forecastSchema.parse({ ...SMALL, ...over });
}

export async function smallProblem(
  over: Record<string, unknown> = {},
  seed = 1,
  workers = 1,
): Promise<ForecastProblem> {
  const config = smallConfig(over);
  const context = { random: new Random(seed), threads: 1, workers };
  return ForecastProblem.create(config, await openForecastData(config), context);
}

export const STATUS: Status = { update: 1, updates: 10, performance: -1, meanPerformance: -1 };
