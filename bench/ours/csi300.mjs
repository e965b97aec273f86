/**
 * An update of the paper's forecaster as a training run does it: 800 samples drawn from a market of CSI300's size, their
 * windows gathered and normalised, GRU of 2 × 32, Adam. The prices are made up, so that it can be measured anywhere.
 */
import { createForecast, forecastSchema } from '../../dist/forecast/index.js';
import { Random } from '../../dist/random.js';

export async function setup({ workers, threads }) {
  const config = forecastSchema.parse({
    kind: 'forecast',
    data: { format: 'synthetic', stocks: 300, days: 1700 },
    split: {
      train: ['2015-04-01', '2020-12-31'],
      validation: ['2021-01-04', '2021-03-31'],
      test: ['2021-04-01', '2021-06-30'],
    },
    model: { name: 'gru', hidden: 32, layers: 2 },
  });
  const problem = await createForecast(config, { random: new Random('bench'), workers, threads });
  return {
    async step() {
      const batch = await problem.nextBatch();
      const size = problem.sizeOf(batch);
      return problem.train(batch, { tasks: new Int32Array(size), weights: new Float32Array(size).fill(1) });
    },
    close: () => problem.close(),
  };
}
