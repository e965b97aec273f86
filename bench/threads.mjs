/**
 * How a process best uses two cores: updates with one thread, with two threads in each operation and with two workers,
 * in turn in one process. Times are ratios to one thread.
 *
 *     npm run build && node bench/threads.mjs [csi300 | lstm | alstm | sfm | mlp | gat | market | toy | multi30k CORPUS] [--learned] [--repeats N]
 */
import { parseArgs } from 'node:util';
import { createForecast, forecastSchema } from '../dist/forecast/index.js';
import { Random } from '../dist/random.js';
import { createStrategy, strategySchema } from '../dist/schedule/index.js';
import { TranslationProblem, translationSchema } from '../dist/translate/index.js';
import { MULTI30K } from './ours/translation.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { learned: { type: 'boolean', default: false }, repeats: { type: 'string', default: '9' } },
});
const [which = 'csi300', corpus] = positionals;

const SETTINGS = {
  'one thread': { threads: 1, workers: 1 },
  'two threads': { threads: 2, workers: 1 },
  'two workers': { threads: 2, workers: 2 },
};

const split = {
  train: ['2015-04-01', '2016-12-31'],
  validation: ['2017-01-04', '2017-03-31'],
  test: ['2017-04-01', '2017-06-30'],
};
const market = (stocks, keys) =>
  forecastSchema.parse({ kind: 'forecast', data: { format: 'synthetic', stocks, days: 700 }, split, ...keys });
const languages = (keys) => translationSchema.parse({ kind: 'translation', waits: 9, main: 3, ...keys });

const PROBLEMS = {
  csi300: (context) => createForecast(market(300, { model: { name: 'gru', hidden: 32, layers: 2 } }), context),
  // Of the same market, with the defaults of each model.
  ...Object.fromEntries(
    ['lstm', 'alstm', 'sfm', 'mlp', 'gat'].map((name) => [
      name,
      (context) => createForecast(market(300, { model: { name } }), context),
    ]),
  ),
  market: (context) => {
    const small = { features: { window: 10 }, model: { name: 'gru', hidden: 16, layers: 1 }, batch: { size: 256 } };
    return createForecast(market(80, small), context);
  },
  toy: (context) => {
    const small = { data: { from: 'toy' }, model: { preset: 'tiny' }, batch: { tokens: 1024 } };
    return TranslationProblem.create(languages(small), context);
  },
  multi30k: (context) => {
    const large = { data: { from: 'corpus', folder: corpus }, model: MULTI30K, batch: { tokens: 2048 } };
    return TranslationProblem.create(languages(large), context);
  },
};

async function updates(setting) {
  const problem = await PROBLEMS[which]({ random: new Random('bench'), ...setting });
  const name = values.learned ? 'learned' : 'fixed';
  const strategy = await createStrategy(strategySchema.parse({ name }), problem, new Random('s'), setting.threads);
  const status = { updates: 1000, performance: -5, meanPerformance: -5 };
  let update = 0;
  await strategy.beginEpisode?.({ ...status, update: 1 });
  const step = async () => {
    const batch = await problem.nextBatch();
    await problem.train(batch, await strategy.choose(batch, { ...status, update: ++update }));
  };
  const close = async () => {
    await strategy.close?.();
    await problem.close?.();
  };
  return { step, close, times: [] };
}

const sides = [];
for (const [name, setting] of Object.entries(SETTINGS)) sides.push({ name, ...(await updates(setting)) });
for (const { step } of sides) await step();
for (let i = 0; i < Number(values.repeats); i++) {
  for (const { step, times } of sides) {
    const start = performance.now();
    await step();
    times.push(performance.now() - start);
  }
}
const middle = (times) => times.toSorted((a, b) => a - b)[times.length >> 1];
for (const { name, times, close } of sides) {
  const [best, median] = [Math.min(...times), middle(times)];
  const ratios = [best / Math.min(...sides[0].times), median / middle(sides[0].times)].map((x) => x.toFixed(2));
  console.log(`${name}: best ${best.toFixed(1)} ms (${ratios[0]}), median ${median.toFixed(1)} ms (${ratios[1]})`);
  await close();
}
