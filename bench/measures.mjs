/**
 * Which validation measure should pick the checkpoint? Each model is trained once and validated after every episode. On
 * every other validation day the best checkpoint is picked by loss, IC and RankIC; how good it is, is measured by the RankIC
 * of the remaining days, and the other way round. Test data are not looked at.
 *
 *     npm run build && node bench/measures.mjs QLIB_FOLDER [--models gru,lstm,mlp] [--seeds 3] [--episodes 20] [--updates 25]
 */
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { filterSamples } from '../dist/forecast/data/panel.js';
import { validationPerformance } from '../dist/forecast/scores.js';
import { createProblem, trainConfigSchema } from '../dist/problems/index.js';
import { Random } from '../dist/random.js';
import { loadConfig } from '../dist/run/index.js';
import { algorithm1, Course, createStrategy } from '../dist/schedule/index.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    models: { type: 'string', default: 'gru,lstm,alstm,mlp,gat' },
    seeds: { type: 'string', default: '3' },
    episodes: { type: 'string', default: '20' },
    updates: { type: 'string', default: '25' },
  },
});
const [folder] = positionals;
const MEASURES = ['loss', 'IC', 'RankIC'];

for (const name of values.models.split(',')) {
  for (let seed = 1; seed <= Number(values.seeds); seed++) {
    const found = await heldOut(name, seed);
    console.log([name, seed, ...found.map((x) => x.toFixed(4))].join('\t'));
  }
}

/** Held-out RankIC of the checkpoint that each measure picks, mean over the two halves; then that of the best and the last. */
async function heldOut(name, seed) {
  const set = [
    `problem.data.path=${folder}`,
    `problem.model={name: ${name}}`,
    'problem.validation.everyDays=2',
    'strategy={name: fixed}',
    `training={episodes: ${values.episodes}, steps: ${values.updates}}`,
    `seed=${seed}`,
  ];
  const file = fileURLToPath(new URL('../configs/csi300.yaml', import.meta.url));
  const config = loadConfig(trainConfigSchema, file, { set });
  const random = new Random(seed);
  const problem = await createProblem(config.problem, { random: random.fork('problem'), threads: 1, workers: 1 });
  const strategy = await createStrategy(config.strategy, problem, random.fork('strategy'), 1);
  const { validation, main, horizons } = problem.data;
  const halves = [0, 1].map((half) => halfOf(validation, half, horizons.length));
  /** [half][episode] the three measures. */
  const seen = [[], []];
  problem.validate = async () => {
    const forecasts = await problem.forecastMain(validation);
    for (const [h, { part, places }] of halves.entries()) {
      const own = Float32Array.from(places, (i) => forecasts[i]);
      const of = (measure) => validationPerformance(measure, 'mse', part, own, main, horizons.length);
      seen[h].push(MEASURES.map(of));
    }
    return 0;
  };
  for await (const _ of algorithm1(problem, strategy, config.training, new Course(horizons.length))) {
    // The episodes are what `validate` keeps.
  }
  await strategy.close?.();
  await problem.close();
  const picks = MEASURES.map((_, m) => (rows) => rows.reduce((best, row, e) => (row[m] > rows[best][m] ? e : best), 0));
  const last = (rows) => rows.length - 1;
  return [...picks, last].map((pick) => {
    const scores = [0, 1].map((h) => seen[1 - h][pick(seen[h])][2]);
    return (scores[0] + scores[1]) / 2;
  });
}

function halfOf({ samples, labels }, half, K) {
  const number = new Map([...samples.dayStarts.subarray(0, -1)].map((start, d) => [samples.day[start], d]));
  const places = Int32Array.from(samples.day.keys()).filter((i) => number.get(samples.day[i]) % 2 === half);
  const isOwn = new Set(places);
  const own = new Float32Array(places.length * K);
  for (const [row, i] of places.entries()) own.set(labels.subarray(i * K, (i + 1) * K), row * K);
  return { part: { samples: filterSamples(samples, (i) => isOwn.has(i)), labels: own }, places };
}
