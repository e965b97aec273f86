import { type Command, Option } from 'commander';
import { InputError } from '../errors.js';
import { formatDuration, INTERRUPTED, listenForInterrupt } from '../run/progress.js';
import type { Plan } from '../sweep/index.js';
import { collect } from './flags.js';
import { shippedConfig } from './names.js';
import { requireData, type SweepFlags, sweepOptions } from './sweep.js';
import { askToGoOn, requireSomebodyToAsk } from './terminal.js';

interface ReproduceFlags extends SweepFlags {
  readonly scale: Scale;
}

type Scale = (typeof SCALES)[number];
const SCALES = ['smoke', 'small', 'full'] as const;

/** Where an experiment finds its data. */
interface Data {
  /** Key of the training configuration that says where they are; undefined: the grid says `{data}`. */
  readonly key?: string;
  /** In words. */
  readonly what: string;
}

/** Data of the scales of an experiment; null: it has its own. */
type Experiment = Readonly<Partial<Record<Scale, Data | null>>>;

const CSI300: Data = { key: 'problem.data.path', what: "qlib's folder with the CSI300" };
const CORPUS: Data = { key: 'problem.data.folder', what: 'a folder made by tcts prepare translate' };
const SEVERAL: Data = { what: 'a folder as described in docs/scaling.md' };

/** The experiments of the paper, and the one that asks what its scheduling gains. */
const EXPERIMENTS: Readonly<Record<string, Experiment>> = {
  stock: { smoke: null, small: CSI300, full: CSI300 },
  translation: { smoke: null, small: CORPUS, full: SEVERAL },
  scheduling: { smoke: null, small: SEVERAL },
};

const NAMES = Object.keys(EXPERIMENTS)
  .join(', ')
  .replace(/, (?=[^,]*$)/, ' or ');

export function registerReproduce(program: Command): void {
  sweepOptions(
    program
      .command('reproduce')
      .description('Run an experiment of the paper and write a report with its tables and figures.')
      .argument('<experiment>', NAMES)
      .addOption(
        new Option('--scale <size>', 'smoke: minutes, built-in data; small: hours on two cores; full: days')
          .choices([...SCALES])
          .default('smoke'),
      )
      .option('--data <path>', 'where the data are (small and full)')
      .option('--set <key=value>', 'override a key of the training configuration; may be repeated', collect, []),
  )
    .option('--dry-run', 'print what would run, and how long it would take', false)
    .option('--yes', 'start the runs without asking', false)
    .addHelpText(
      'after',
      `
The experiments are the grids configs/sweeps/EXPERIMENT-SCALE.yaml. The same command goes on with one that was stopped.

Examples:
  tcts reproduce stock --yes
  tcts reproduce stock --scale small --data data/cn_data
  tcts reproduce translation --scale small --data corpora/multi30k
  tcts reproduce translation --scale full --data corpora --dry-run
  tcts reproduce scheduling --scale small --data data --seeds 201-205`,
    )
    .action(reproduce);
}

async function reproduce(name: string, flags: ReproduceFlags): Promise<void> {
  const { loadGrid, countRuns } = await import('../sweep/index.js');
  const { describePlan, planOf } = await import('./sweep-run.js');
  const { withModules } = await import('../problems/index.js');
  const { set, data } = dataOptions(name, flags);
  const grid = loadGrid(shippedConfig(`sweeps/${name}-${flags.scale}`), flags.seeds);
  const plan = await withModules(() => planOf(grid, { set: [...set, ...flags.set], data, out: flags.out }));
  if (flags.dryRun) {
    const { json, text } = describePlan(plan);
    const time = await expectedTime(plan, flags);
    process.stdout.write(flags.json ? `${JSON.stringify({ ...json, ...time })}\n` : `${text}\n`);
    return;
  }
  say(flags, summary(plan, countRuns(grid)));
  if (!(await mayBegin(plan, flags))) return;

  const { sweepRun } = await import('./sweep-run.js');
  const record = await sweepRun(plan, flags);
  if (record.runs.some(({ state }) => state === 'stopped')) return;
  const { writeReport } = await import('../report/index.js');
  const { html } = await writeReport(plan.folder);
  say(flags, `report: ${html}`);
}

/** How the plan is told where the data are; without `--data` only the smoke test can be run. */
function dataOptions(name: string, { scale, data: given }: ReproduceFlags): { set: string[]; data?: string } {
  const experiment = EXPERIMENTS[name];
  if (experiment === undefined) {
    throw new InputError(`there is no experiment ${JSON.stringify(name)}, expected ${NAMES}`);
  }
  const data = experiment[scale];
  if (data === undefined) {
    const scales = Object.keys(experiment).join(' or ');
    throw new InputError(`${name} has no scale ${scale}, expected ${scales}`, { key: '--scale' });
  }
  if (data === null) {
    if (given === undefined) return { set: [] };
    const scales = SCALES.filter((other) => experiment[other]).join(' or ');
    throw new InputError(`the smoke test has data of its own; --data goes with --scale ${scales}`, { key: '--data' });
  }
  const { key, what } = data;
  if (given === undefined) throw new InputError(`missing, expected the path of ${what}`, { key: '--data' });
  requireData(given, what);
  return key === undefined ? { set: [], data: given } : { set: [`${key}=${JSON.stringify(given)}`] };
}

function summary({ grid, groups, folder }: Plan, count: number): string {
  const lines = groups.map(({ name, settings, seeds }) => {
    const variants = settings[0].variants.length;
    const chosen = variants > 1 ? `, each chosen among ${variants}` : '';
    return `  ${name}: ${settings.length} settings × ${seeds.length} seeds${chosen}`;
  });
  return [`${grid.name}: ${count} runs in ${folder}`, ...lines].join('\n');
}

/** Says how long it will take and asks, unless there is nothing left to do. */
async function mayBegin(plan: Plan, flags: ReproduceFlags): Promise<boolean> {
  if (await isFinished(plan)) return true;
  if (!flags.yes) requireSomebodyToAsk('The runs start only after a confirmation.');
  const time = await expectedTime(plan, flags);
  return time !== undefined && (flags.yes || (await askToGoOn('Continue?')));
}

async function isFinished(plan: Plan): Promise<boolean> {
  const { isDone, plannedRuns } = await import('../sweep/index.js');
  return plannedRuns(plan).every(({ run }) => isDone(run.job));
}

/** Prints and returns the expected seconds of the remaining trainings; undefined: it was interrupted. */
async function expectedTime(plan: Plan, flags: ReproduceFlags): Promise<{ seconds: number | null } | undefined> {
  const { estimate, isDone, plannedRuns } = await import('../sweep/index.js');
  const left = plannedRuns(plan).flatMap(({ run }) => (isDone(run.job) ? [] : [run]));
  const ending = new AbortController();
  const interrupt = listenForInterrupt({ announce: () => ending.abort() });
  const { seconds, trials } = await estimate(left, {
    cores: flags.cores,
    signal: ending.signal,
    onTrial: ({ name }) => say(flags, `timing ${name} for a few seconds`),
  }).finally(() => interrupt.dispose());
  if (ending.signal.aborted) {
    process.exitCode = INTERRUPTED;
    return undefined;
  }
  const most = left.some(({ config }) => config.earlyStopping?.patience) ? 'at most ' : '';
  const time = seconds === undefined ? 'a time that could not be measured' : `${most}about ${formatDuration(seconds)}`;
  say(
    flags,
    `${left.length} trainings will take ${time} on ${flags.cores} cores, by ${trials} short trials; evaluations and runs ` +
      'with chosen settings are not included',
  );
  return { seconds: seconds ?? null };
}

function say({ quiet }: ReproduceFlags, text: string): void {
  if (!quiet) process.stderr.write(`${text}\n`);
}
