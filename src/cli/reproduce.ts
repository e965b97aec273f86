import { type Command, Option } from 'commander';
import { InputError } from '../errors.js';
import { formatDuration, INTERRUPTED, listenForInterrupt } from '../run/progress.js';
import type { Plan } from '../sweep/index.js';
import { collect } from './flags.js';
import { shippedConfig } from './names.js';
import { requireData, type SweepFlags, sweepOptions } from './sweep.js';
import { askToGoOn, requireSomebodyToAsk } from './terminal.js';

interface ReproduceFlags extends Omit<SweepFlags, 'dryRun'> {
  readonly scale: Scale;
}

type Scale = (typeof SCALES)[number];
const SCALES = ['smoke', 'small', 'full'] as const;

interface Experiment {
  readonly scales: readonly Scale[];
  /** Key of the training configuration that says where the data are; undefined: its grids say `{data}`. */
  readonly key?: string;
  /** The data, in words. */
  readonly what: string;
}

/** The experiments of the paper, and the one that asks what its scheduling gains. */
const EXPERIMENTS: Readonly<Record<string, Experiment>> = {
  stock: { scales: SCALES, key: 'problem.data.path', what: "qlib's folder with the CSI300" },
  translation: { scales: SCALES, key: 'problem.data.folder', what: 'a folder made by tcts prepare translate' },
  scheduling: { scales: ['smoke', 'small'], what: 'a folder as docs/scaling.md describes it' },
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
        new Option('--scale <size>', 'smoke: minutes, built-in data; small: hours of two cores; full: as in the paper')
          .choices([...SCALES])
          .default('smoke'),
      )
      .option('--data <path>', 'where the data are (small and full)')
      .option('--set <key=value>', 'override a key of the training configuration; may be repeated', collect, []),
  )
    .option('--yes', 'do not ask before the runs begin', false)
    .addHelpText(
      'after',
      `
The experiments are the grids configs/sweeps/EXPERIMENT-SCALE.yaml. The same command goes on with one that was stopped.

Examples:
  tcts reproduce stock --yes
  tcts reproduce stock --scale small --data data/cn_data
  tcts reproduce translation --scale small --data corpora/multi30k
  tcts reproduce scheduling --scale small --data data --seeds 201-205`,
    )
    .action(reproduce);
}

async function reproduce(name: string, flags: ReproduceFlags): Promise<void> {
  const { loadGrid, countRuns } = await import('../sweep/index.js');
  const { planOf } = await import('./sweep-run.js');
  const { withModules } = await import('../problems/index.js');
  const { set, data } = dataOptions(name, flags);
  const grid = loadGrid(shippedConfig(`sweeps/${name}-${flags.scale}`), flags.seeds);
  const plan = await withModules(() => planOf(grid, { set: [...set, ...flags.set], data, out: flags.out }));
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
function dataOptions(name: string, { scale, data }: ReproduceFlags): { set: string[]; data?: string } {
  const experiment = EXPERIMENTS[name];
  if (experiment === undefined) {
    throw new InputError(`there is no experiment ${JSON.stringify(name)}, expected ${NAMES}`);
  }
  const { scales, key, what } = experiment;
  if (!scales.includes(scale)) {
    throw new InputError(`${name} has no scale ${scale}, expected ${scales.join(' or ')}`, { key: '--scale' });
  }
  if (scale === 'smoke') {
    if (data === undefined) return { set: [] };
    throw new InputError(
      `the smoke test has data of its own; --data goes with --scale ${scales.slice(1).join(' or ')}`,
      {
        key: '--data',
      },
    );
  }
  if (data === undefined) throw new InputError(`missing, expected the path of ${what}`, { key: '--data' });
  requireData(data, what);
  return key === undefined ? { set: [], data } : { set: [`${key}=${JSON.stringify(data)}`] };
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
  const { estimate, isDone, plannedRuns } = await import('../sweep/index.js');
  const left = plannedRuns(plan).flatMap(({ run }) => (isDone(run.job) ? [] : [run]));
  if (left.length === 0) return true;
  if (!flags.yes) requireSomebodyToAsk('The runs are started only after a confirmation.');
  const ending = new AbortController();
  const interrupt = listenForInterrupt({ announce: () => ending.abort() });
  const { seconds, trials } = await estimate(left, {
    cores: flags.cores,
    signal: ending.signal,
    onTrial: ({ name }) => say(flags, `timing ${name} for a few seconds`),
  }).finally(() => interrupt.dispose());
  if (ending.signal.aborted) {
    process.exitCode = INTERRUPTED;
    return false;
  }
  const time = seconds === undefined ? 'a time that could not be measured' : `about ${formatDuration(seconds)}`;
  say(
    flags,
    `${left.length} trainings will take ${time} on ${flags.cores} cores, by ${trials} short trials; evaluations and runs ` +
      'with chosen settings are not included',
  );
  return flags.yes || (await askToGoOn('Go on?'));
}

function say({ quiet }: ReproduceFlags, text: string): void {
  if (!quiet) process.stderr.write(`${text}\n`);
}
