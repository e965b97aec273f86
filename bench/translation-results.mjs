/**
 * The runs behind docs/results/multi30k.md and policies.md, which are those of `tcts reproduce translation --scale full`:
 * a line of CSV for each evaluation as soon as its run is done; runs that have lines are not made again.
 *
 *     node bench/translation-results.mjs docs/results/translation.csv --data corpora --groups wait,scheduled,all-waits --seeds 1-3
 *
 * Runs are made in the folder `translation-runs`, seed by seed, as many at a time as there are cores, and continue where
 * they were killed; `--match 'main=3,'` makes only those whose names the regular expression matches. The tables of the
 * pages, printed or put between their marks, and the figures:
 *
 *     node bench/translation-results.mjs docs/results/translation.csv --table multi30k
 *     node bench/translation-results.mjs docs/results/translation.csv --table policies --write docs/results/policies.md
 *     node bench/translation-results.mjs docs/results/translation.csv --figures docs/results/figures
 */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { seedList } from '../dist/cli/sweep.js';
import { planOf } from '../dist/cli/sweep-run.js';
import { readEvaluations, readResult, readWaitLoss } from '../dist/run/index.js';
import { loadGrid, localExecutor } from '../dist/sweep/index.js';
import { WARM_START } from '../dist/sweep/plan.js';
import { showTables } from './page-tables.mjs';
import { HEADER, lineOf, readLines, shippedGrid, WAITS } from './translation-lines.mjs';

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    data: { type: 'string' },
    groups: { type: 'string' },
    seeds: { type: 'string', default: '1-5' },
    match: { type: 'string', default: '' },
    cores: { type: 'string', default: String(cpus().length) },
    set: { type: 'string', multiple: true, default: [] },
    table: { type: 'string' },
    write: { type: 'string' },
    figures: { type: 'string' },
  },
});
const [file] = positionals;
if (file !== undefined && values.table !== undefined) {
  const { tables } = await import('./translation-tables.mjs');
  showTables(tables(file, values.table), values.write);
  process.exit(0);
}
if (file !== undefined && values.figures !== undefined) {
  const { policyFigures } = await import('./translation-figure.mjs');
  for (const [name, svg] of policyFigures(file)) writeFileSync(`${values.figures}/${name}.svg`, svg);
  process.exit(0);
}
if (file === undefined || values.data === undefined) {
  console.error(
    'usage: node bench/translation-results.mjs FILE --data FOLDER [--groups a,b] [--match REGEXP] [--seeds 1-3] [--cores N]',
  );
  process.exit(1);
}

const plan = planOf(loadGrid(shippedGrid), { set: values.set, data: values.data, out: 'translation-runs' });
const wanted = values.groups?.split(',') ?? plan.groups.map(({ name }) => name);
const unknown = wanted.find((name) => plan.groups.every((group) => group.name !== name));
if (unknown !== undefined) throw new Error(`there is no group ${unknown} in ${shippedGrid}`);
if (!existsSync(file)) appendFileSync(file, `${HEADER.join()}\n`);
const known = new Set(readLines(file).map(({ run }) => run));
const executor = localExecutor({ cores: Number(values.cores) });
const ready = new Map();

/** Trains and evaluates a run, once; what it starts from first. */
function done(group, variant, seed) {
  const key = `${group.name} ${variant.run(seed).name}`;
  if (!ready.has(key)) ready.set(key, make(group, variant, seed));
  return ready.get(key);
}

async function make(group, variant, seed) {
  let filled;
  if (group.warmStart !== undefined) {
    const base = plan.groups.find(({ name }) => name === group.warmStart);
    filled = { [WARM_START]: (await done(base, base.settings[0].variants[0], seed)).folder };
  }
  // The wait that is best for wait-3 is not known before all seeds of wait-k are done.
  if (group.atBestWait !== undefined) filled = { [group.atBestWait]: variant.run(seed).config.problem.main };
  const run = variant.run(seed, filled);
  const job = { ...run.job, after: [...run.job.after, ...lossesOf(group, run)] };
  const outcome = await executor.submit(job, () => {});
  if (outcome.state !== 'done') throw new Error(`${run.name}: ${outcome.state} ${outcome.reason ?? ''}`);
  return job;
}

/** Evaluations of the loss: on validation data for wait-k*, on test data under every wait that is translated with. */
function lossesOf(group, { config }) {
  const measure = (waits, ...more) => ['evaluate', '--k', waits.join(), '--loss', '--threads', '1', ...more];
  const validation = group.name === plan.waitKStar.among ? [measure(WAITS, '--split', plan.waitKStar.split)] : [];
  const waits = waitsOf(group, config);
  const test = waits.length === 0 ? [] : [measure(waits, '--split', 'test', '--checkpoint', 'latest')];
  return [...validation, ...test];
}

/** The waits of a run whose test losses are recorded; none where the model does not wait for k words. */
function waitsOf({ name }, { problem }) {
  if (problem.kind !== 'translation' || problem.waits === 'full') return [];
  return [plan.waitKStar.among, 'all-waits', 'all-waits-further'].includes(name) ? WAITS : [problem.main];
}

async function write(group, variant, seed) {
  const { name, config } = variant.run(seed);
  if (known.has(name)) return;
  const { folder } = await done(group, variant, seed);
  const { translations, policies } = readEvaluations(folder);
  const { updates, best } = readResult(folder);
  const losses =
    group.name === plan.waitKStar.among
      ? WAITS.map((k) => -readWaitLoss({ run: folder, split: plan.waitKStar.split, k }).performance)
      : [];
  const training = { updates, loss: -best.performance, seconds: processorSeconds(folder), losses };
  const all = [...translations, ...policies].filter(({ split }) => split === 'test');
  const waits = waitsOf(group, config);
  const testLoss = ({ k }) =>
    waits.includes(k) ? readWaitLoss({ run: folder, split: 'test', k, checkpoint: 'latest' }).plain : undefined;
  appendFileSync(file, all.map((figures) => `${lineOf(name, training, figures, testLoss(figures))}\n`).join(''));
  console.log(`${name}: ${all.map(({ sacrebleu }) => sacrebleu.toFixed(2)).join(', ')}`);
}

/** Processor time of a training: of every process that went on with it, up to the last line that it wrote. */
function processorSeconds(folder) {
  const log = readFileSync(`${folder}/timings.jsonl`, 'utf8').trimEnd().split('\n');
  const times = log.map((line) => JSON.parse(line).processor);
  return times.reduce((sum, time, i) => (i + 1 < times.length && times[i + 1] >= time ? sum : sum + time), 0);
}

const match = new RegExp(values.match);
const tasks = [];
for (const seed of seedList(values.seeds)) {
  for (const group of plan.groups.filter(({ name, seeds }) => wanted.includes(name) && seeds.includes(seed))) {
    const variants = group.settings.map(({ variants: [first] }) => first);
    const chosen = variants.filter((variant) => match.test(variant.run(seed).name));
    tasks.push(...chosen.map((variant) => write(group, variant, seed)));
  }
}
const failed = (await Promise.allSettled(tasks)).filter(({ status }) => status === 'rejected');
for (const { reason } of failed) console.error(reason.message);
process.exit(failed.length === 0 ? 0 : 1);
