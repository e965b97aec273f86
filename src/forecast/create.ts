import type { Problem, ProblemContext } from '../schedule/index.js';
import type { ForecastConfig } from './config.js';
import { openDataSet } from './data-set.js';
import type { NetworkConfig, TreesConfig } from './models/index.js';
import { ForecastProblem } from './problem.js';
import { TreesProblem } from './trees-problem.js';

/** The problem of a configuration: reads the data and builds the model. */
export async function createForecast(config: ForecastConfig, context: ProblemContext): Promise<Problem> {
  const data = await openDataSet(config);
  for (const { kind, count, first } of data.notes) context.note?.(`data: ${count} × ${kind} (first: ${first})`);
  const { model } = config;
  if (model.name === 'trees') {
    const trees = config as ForecastConfig & { model: TreesConfig };
    return new TreesProblem(trees, data, context.random, Math.max(context.threads, context.workers)) as Problem;
  }
  return (await ForecastProblem.create(config as ForecastConfig & { model: NetworkConfig }, data, context)) as Problem;
}
