/**
 * Updates of Algorithm 1 with the learned scheduler, all that belongs to one included: batch, features, choice, step. A
 * GRU of 2×32 on a synthetic market with the shapes of CSI300: 300 stocks, windows of 60 days of 5 numbers, batch 800.
 */
import { createProblem, trainConfigSchema } from '../../dist/problems/index.js';
import { Random } from '../../dist/random.js';
import { algorithm1, Course, createStrategy } from '../../dist/schedule/index.js';
import { openRanks } from './step.mjs';

const CONFIG = {
  problem: {
    kind: 'forecast',
    data: { format: 'synthetic', stocks: 300, days: 200 },
    split: {
      train: ['2015-04-20', '2015-08-10'],
      validation: ['2015-08-11', '2015-09-15'],
      test: ['2015-09-16', '2015-10-01'],
    },
    features: { window: 60 },
    model: { name: 'gru', hidden: 32, layers: 2 },
    batch: { size: 800 },
  },
  strategy: { name: 'learned' },
  // One episode that does not end: validations are left out.
  training: { episodes: 1, steps: 1_000_000 },
};

export async function setup({ workers, threads }) {
  const config = trainConfigSchema.parse(CONFIG);
  const random = new Random('bench');
  const ranks = await openRanks();
  const context = { random: random.fork('problem'), threads, workers, ranks };
  const problem = await createProblem(config.problem, context);
  const strategy = await createStrategy(config.strategy, problem, random.fork('strategy'), threads);
  const updates = algorithm1(problem, strategy, config.training, new Course(problem.tasks.length));
  return {
    step: async () => (await updates.next()).value.loss,
    async close() {
      await strategy.close?.();
      await problem.close();
      ranks?.close();
    },
  };
}
