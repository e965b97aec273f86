/**
 * What the strategy `influence` costs: ten updates of a training run, from the next batch to the changed parameters, one
 * of which measures. The shipped configuration of each size on synthetic data of its shape, so that it can be measured
 * anywhere; threads and workers are the configuration's.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createProblem, trainConfigSchema } from '../../dist/problems/index.js';
import { Random } from '../../dist/random.js';
import { loadConfig, workersOf } from '../../dist/run/index.js';
import { createStrategy, strategySchema } from '../../dist/schedule/index.js';
import { randomCorpus } from './translation.mjs';

/** `every` of `influence`, whose first 32 measurements come four times as often. */
const [EVERY, FREQUENT] = [10, 32];

/** @type {Record<string, { file: string, data: (folder: string) => object }>} */
const SIZES = {
  stocks: {
    file: 'csi300.yaml',
    data: () => ({
      data: { format: 'synthetic', stocks: 300, days: 1700 },
      split: {
        train: ['2015-04-01', '2020-12-31'],
        validation: ['2021-01-04', '2021-04-30'],
        test: ['2021-05-03', '2021-06-30'],
      },
      validation: { reward: 0.5 },
    }),
  },
  translation: {
    file: 'multi30k.yaml',
    data: (folder) => ({ data: { folder: randomCorpus(folder) }, validation: { reward: 0.2 } }),
  },
};

/** @param {{ size: 'stocks' | 'translation', strategy: 'mtl' | 'influence' }} options */
export async function setup({ size, strategy: name }) {
  const folder = mkdtempSync(join(tmpdir(), 'tcts-bench-'));
  const { problem, strategy } = await open(SIZES[size], name, folder);
  const choose = async (update) => {
    const batch = await problem.nextBatch();
    return { batch, choice: await strategy.choose(batch, status(update)) };
  };
  let update = 0;
  const updates = async (count) => {
    let loss = 0;
    for (let i = 0; i < count; i++) {
      const { batch, choice } = await choose(++update);
      loss = await problem.train(batch, choice);
    }
    return loss;
  };
  // As a training begins; the threads that help to validate have then started.
  await problem.validate();
  await updates(EVERY);
  // An update whose number is 1 measures: the frequent measurements are made at once, without their trainings.
  for (let i = 0; name === 'influence' && i < FREQUENT; i++) await choose(1);
  return {
    step: () => updates(EVERY),
    async close() {
      await strategy.close?.();
      await problem.close();
      rmSync(folder, { recursive: true });
    },
  };
}

async function open({ file, data }, name, folder) {
  const path = fileURLToPath(new URL(`../../configs/${file}`, import.meta.url));
  const set = Object.entries(data(folder)).flatMap(([section, keys]) =>
    Object.entries(keys).map(([key, value]) => `problem.${section}.${key}=${JSON.stringify(value)}`),
  );
  const config = loadConfig(trainConfigSchema, path, { set });
  const { threads } = config;
  const random = new Random('bench');
  const context = { random: random.fork('problem'), threads, workers: workersOf(config) };
  const problem = await createProblem(config.problem, context);
  const strategy = await createStrategy(strategySchema.parse({ name }), problem, random.fork('strategy'), threads);
  return { problem, strategy };
}

const status = (update) => ({ update, updates: 10_000, performance: -5, meanPerformance: -5 });
