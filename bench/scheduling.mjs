// What scheduling gains: paired trainings of every strategy on problems with and without a known answer. All arms of a
// seed start from the same parameters and see the same batches and dropout masks; the best checkpoint by validation is
// scored once on test data. Each finished training is a line of the CSV, and what is there is not run again.
//
//   node bench/scheduling.mjs docs/results/scheduling.csv known-answer,contextual 101-120 --data DIR
//   node bench/scheduling.mjs docs/results/scheduling.csv --table
//
// DIR holds ETT-small/, weather/, cn_data/ (qlib), multi30k-10k/ (a corpus prepared as
// configs/known/translation-scrambled.yaml says) and multi30k-2k/ (the same with 2,000 pairs and --bpe 2000).
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { Random } from '../dist/index.js';
import { holm, mean, pairedTTest, studentCritical } from '../dist/metrics/index.js';
import { groupBy } from '../dist/metrics/statistics.js';
import { createProblem, trainConfigSchema } from '../dist/problems/index.js';
import { parseConfig } from '../dist/run/index.js';
import * as schedule from '../dist/schedule/index.js';

const ARMS = {
  fixed: { name: 'fixed' },
  mtl: { name: 'mtl' },
  'static half': { name: 'static', main: 0.5 },
  'static near': { name: 'static', main: 0.5, rest: 'near' },
  'mtl then main': { name: 'static', until: 0.67 }, // main: 1/K, filled in below
  curriculum: { name: 'curriculum' },
  'learned (paper)': { name: 'learned', preset: 'paper', hidden: [32] },
  'learned (stable)': { name: 'learned', hidden: [32] },
  bandit: { name: 'bandit' },
  'bandit (Thompson)': { name: 'bandit', method: 'thompson' },
  aligned: { name: 'aligned' },
  influence: { name: 'influence' },
  'influence (shuffled)': { name: 'influence', shuffle: true },
  'influence (equal time)': { name: 'influence' },
  oracle: { name: 'oracle' },
};

const known = (name, problem, more) => ({ base: `configs/known/${name}.yaml`, problem, ...more });
const series = (data, file, more) =>
  known('series-noisy', { data: { path: join(data, file) }, ...more }, { equal: 0.45 });
const stocks = (data, more) =>
  known('stocks-stale', { data: { path: join(data, 'cn_data') }, ...more }, { equal: 0.5 });
const translation = (data, folder, more, training) =>
  known(
    'translation-scrambled',
    { data: { folder: join(data, folder) }, mainLoss: 'cached', ...more },
    { equal: 0.65, ...training },
  );
const without = { corruption: null };
const small = { training: { episodes: 28, steps: 40 } };
/** The temperature six hours ahead, from values ten minutes apart. */
const weather = { tasks: [6, 12, 36, 72, 144], main: 36, ...without };
/**
 * Of each problem: the configuration it is made from, what differs, and for which share of the updates `influence` takes
 * the time that `mtl` takes for all.
 */
const PROBLEMS = {
  'known-answer': () => ({ base: 'configs/demo.yaml', problem: {}, training: { episodes: 16, steps: 10 } }),
  contextual: () => ({
    base: 'configs/demo.yaml',
    problem: { kind: 'contextual' },
    training: { episodes: 20, steps: 10 },
  }),
  'market-stale': () => known('market-stale', {}),
  'series-noisy': (data) => series(data, 'ETT-small/ETTh2.csv'),
  'stocks-stale': (data) => stocks(data),
  'translation-scrambled': (data) => translation(data, 'multi30k-10k'),
  ETTh1: (data) => series(data, 'ETT-small/ETTh1.csv', without),
  ETTh2: (data) => series(data, 'ETT-small/ETTh2.csv', without),
  weather: (data) => {
    const { problem, ...rest } = series(data, 'weather/weather.csv', weather);
    return { ...rest, problem: { ...problem, data: { ...problem.data, target: 'T (degC)' } } };
  },
  CSI300: (data) => stocks(data, without),
  'Multi30k wait-1': (data) => translation(data, 'multi30k-2k', { ...without, main: 1 }, small),
  'Multi30k wait-3': (data) => translation(data, 'multi30k-2k', without, small),
  'Multi30k wait-9': (data) => translation(data, 'multi30k-2k', { ...without, main: 9 }, small),
};

const HEADER = 'problem,arm,seed,test_loss,best_validation,right,cpu_seconds';

async function main() {
  const [file, ...rest] = process.argv.slice(2);
  if (rest[0] === '--table') return table(file);
  const [names, range, flag, data = ''] = rest;
  if (flag !== undefined && flag !== '--data') throw new Error(`expected --data, found ${flag}`);
  const [first, last] = range.split('-').map(Number);
  const arms = process.env.ARMS?.split(',') ?? Object.keys(ARMS);
  for (let seed = first; seed <= last; seed++) {
    for (const name of names.split(',')) await runSeed(file, name, seed, data, arms);
  }
}

async function runSeed(file, name, seed, data, arms) {
  const done = new Set(readLines(file).map(({ problem, arm, seed: of }) => `${problem},${arm},${of}`));
  const left = arms.filter((arm) => !done.has(`${name},${arm},${seed}`));
  if (left.length === 0) return;
  const config = configOf(name, data);
  const random = new Random(seed);
  const context = { random: random.fork('problem'), threads: 1, workers: 1 };
  const problem = await createProblem(config.problem, context);
  const start = schedule.copySnapshot(problem.capture());
  for (const arm of left) {
    if (arm === 'oracle' && problem.oracle === undefined) continue;
    const { equal } = PROBLEMS[name](data);
    const isShort = arm === 'influence (equal time)';
    if (isShort && equal === undefined) continue;
    const { episodes, steps } = config.training;
    const extent = isShort ? { episodes: Math.round(equal * episodes), steps } : config.training;
    problem.restore(schedule.copySnapshot(start));
    const options = arm === 'mtl then main' ? { ...ARMS[arm], main: 1 / problem.tasks.length } : ARMS[arm];
    const result = await train(problem, options, extent, random.fork('strategy'));
    if (!existsSync(file)) writeFileSync(file, `${HEADER}\n`);
    const { loss, best, right, seconds } = result;
    const cells = [loss.toPrecision(6), (-best).toPrecision(6), right?.toFixed(3) ?? '', seconds.toFixed(2)];
    appendFileSync(file, `"${name}","${arm}",${seed},${cells.join(',')}\n`);
    process.stderr.write(`${name}, ${arm}, seed ${seed}: test loss ${loss.toFixed(4)}\n`);
  }
  await problem.close?.();
}

async function train(problem, options, extent, random) {
  const before = process.cpuUsage();
  const strategy = await schedule.createStrategy(schedule.strategySchema.parse(options), problem, random);
  const subject = schedule.trainee(problem, strategy);
  let [best, snapshot] = [-Infinity, undefined];
  for await (const { episode } of schedule.algorithm1(problem, strategy, extent, subject.course)) {
    if (episode === undefined || episode.performance <= best) continue;
    best = episode.performance;
    snapshot = schedule.copySnapshot(problem.capture());
  }
  const { user, system } = process.cpuUsage(before);
  const right = problem.oracle === undefined ? undefined : await agreement(problem, strategy, subject.course, extent);
  problem.restore(snapshot);
  const { loss } = await problem.test();
  await strategy.close?.();
  return { loss, best, right, seconds: (user + system) / 1e6 };
}

/** Mean probability that the policy gives to the tasks which the oracle would take, where they are not all. */
async function agreement(problem, strategy, course, { episodes, steps }) {
  const K = problem.tasks.length;
  let [sum, count] = [0, 0];
  for (let n = 0; n < 10; n++) {
    const batch = await problem.nextBatch();
    const [right, policy] = [
      problem.oracle(batch),
      await strategy.probabilities(batch, { ...course.status(episodes * steps), update: episodes * steps }),
    ];
    for (let i = 0; i < problem.sizeOf(batch); i++) {
      const row = right.subarray(i * K, (i + 1) * K);
      if (row.every((p) => p > 0)) continue;
      row.forEach((p, task) => {
        if (p > 0) sum += policy[i * K + task];
      });
      count++;
    }
  }
  return count === 0 ? undefined : sum / count;
}

function configOf(name, data) {
  const { base, problem, training } = PROBLEMS[name](data);
  const values = parse(readFileSync(new URL(`../${base}`, import.meta.url), 'utf8'));
  const merged = { ...values, problem: { ...values.problem, ...problem }, training: training ?? values.training };
  if (problem.data !== undefined) merged.problem.data = { ...values.problem.data, ...problem.data };
  if (problem.kind !== undefined) merged.problem = problem;
  if (merged.problem.corruption === null) delete merged.problem.corruption;
  return parseConfig(trainConfigSchema, merged, base);
}

function readLines(file) {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n').slice(1);
  return lines.map((line) => {
    const [, problem, arm, numbers] = line.match(/^"(.*?)","(.*?)",(.*)$/);
    const [seed, loss, best, right, seconds] = numbers.split(',');
    return {
      problem,
      arm,
      seed: Number(seed),
      loss: Number(loss),
      best: Number(best),
      right,
      seconds: Number(seconds),
    };
  });
}

const STATIC = ['static half', 'static near', 'mtl then main'];

/** For each problem and seed the static mix with the best validation loss: the tuned one. */
function bestStatic(lines) {
  const mixes = lines.filter(({ arm }) => STATIC.includes(arm));
  const groups = [...groupBy(mixes, keyOf).values()];
  return groups
    .filter((group) => group.length === STATIC.length)
    .map((group) => ({ ...group.reduce((a, b) => (b.best < a.best ? b : a)), arm: 'best static' }));
}

const keyOf = ({ problem, seed }) => `${problem} ${seed}`;

/** A table in Markdown for each problem: every arm against the better of fixed and mtl, paired by seeds. */
function table(file) {
  const trained = readLines(file);
  const lines = [...trained, ...bestStatic(trained)];
  for (const name of Object.keys(PROBLEMS)) {
    const own = lines.filter(({ problem }) => problem === name);
    if (own.length === 0) continue;
    const arms = [...Object.keys(ARMS), 'best static'].filter((arm) => own.some((line) => line.arm === arm));
    const of = (arm) => new Map(own.filter((line) => line.arm === arm).map((line) => [line.seed, line]));
    const average = (arm) => mean([...of(arm).values()].map(({ loss }) => loss));
    const better = average('fixed') < average('mtl') ? 'fixed' : 'mtl';
    const rows = arms.map((arm) => compare(of(arm), of(better)));
    const tested = arms.map((_, i) => i).filter((i) => rows[i].p !== undefined);
    const adjusted = holm(tested.map((i) => rows[i].p));
    const gain = average(better) - (arms.includes('oracle') ? average('oracle') : Number.NaN);
    console.log(`\n**${name}** (better of fixed and mtl: ${better})\n`);
    console.log(
      `| arm | seeds | validation | test loss | against ${better} | p (Holm) | of the oracle's gain | right | CPU |`,
    );
    console.log('|---|---|---|---|---|---|---|---|---|');
    const cost = mean([...of('mtl').values()].map(({ seconds }) => seconds));
    arms.forEach((arm, i) => {
      const { n, loss, best, difference, half } = rows[i];
      const p = tested.includes(i) ? adjusted[tested.indexOf(i)] : undefined;
      const values = [...of(arm).values()];
      const right = values.every((line) => line.right !== '')
        ? mean(values.map((line) => Number(line.right))).toFixed(2)
        : '';
      const percent = Math.round((-100 * difference) / gain);
      const share = Number.isNaN(gain) || arm === better ? '' : `${percent < 0 ? '−' : ''}${Math.abs(percent)} %`;
      const interval = Number.isNaN(half) ? '' : ` ± ${half.toFixed(4)}`;
      const against = arm === better ? '' : `${signed(difference)}${interval}`;
      const ratio = (mean(values.map(({ seconds }) => seconds)) / cost).toFixed(2);
      console.log(
        `| ${arm} | ${n} | ${best.toFixed(4)} | ${loss.toFixed(4)} | ${against} | ${p === undefined ? '' : p.toFixed(3)} | ${share} | ${right} | ${ratio} |`,
      );
    });
  }
}

function compare(one, other) {
  const seeds = [...one.keys()].filter((seed) => other.has(seed));
  const [a, b] = [one, other].map((lines) => seeds.map((seed) => lines.get(seed).loss));
  const differences = a.map((loss, i) => loss - b[i]);
  const n = seeds.length;
  const difference = mean(differences);
  const deviation = Math.sqrt(differences.reduce((sum, d) => sum + (d - difference) ** 2, 0) / Math.max(1, n - 1));
  const half = n < 2 ? Number.NaN : (studentCritical(0.05, n - 1) * deviation) / Math.sqrt(n);
  const p = n < 2 || deviation === 0 ? undefined : pairedTTest(a, b).p;
  const [loss, best] = ['loss', 'best'].map((of) => mean([...one.values()].map((line) => line[of])));
  return { n, loss, best, difference, half, p };
}

const signed = (x) => `${x < 0 ? '−' : '+'}${Math.abs(x).toFixed(4)}`;

await main();
process.exit(0);
