import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Command, Option } from 'commander';
import { InputError } from '../errors.js';
import { INTERRUPTED, listenForInterrupt } from '../run/interrupt.js';
import { formatDuration } from '../run/progress.js';
import type { Plan } from '../sweep/index.js';
import { askToGoOn, requireSomebodyToAsk } from './ask.js';
import { type SweepFlags, sweepOptions } from './sweep.js';
import { collect } from './train.js';

interface ReproduceFlags extends Omit<SweepFlags, 'dryRun'> {
  readonly scale: 'smoke' | 'small' | 'full';
  readonly data?: string;
}

/** The experiments of the paper, and the key of the training configuration that says where their data are. */
const EXPERIMENTS: Readonly<Record<string, { readonly data: string; readonly what: string }>> = {
  stock: { data: 'problem.data.path', what: "qlib's folder with the CSI300" },
  translation: { data: 'problem.data.folder', what: 'a folder made by tcts prepare translate' },
};

export function registerReproduce(program: Command): void {
  sweepOptions(
    program
      .command('reproduce')
      .description('Run an experiment of the paper and write a report with its tables and figures.')
      .argument('<experiment>', Object.keys(EXPERIMENTS).join(' or '))
      .addOption(
        new Option('--scale <size>', 'smoke: minutes, built-in data; small: hours of two cores; full: as in the paper')
          .choices(['smoke', 'small', 'full'])
          .default('smoke'),
      )
      .option('--data <path>', 'where the data are (small and full)')
      .option('--set <key=value>', 'lay a value over the training configuration; may be repeated', collect, []),
  )
    .option('--yes', 'do not ask before the runs begin', false)
    .addHelpText(
      'after',
      `
The experiments are the grids configs/sweeps/EXPERIMENT-SCALE.yaml. The same command goes on with one that was stopped.

Examples:
  tcts reproduce stock --yes
  tcts reproduce stock --scale small --data data/cn_data
  tcts reproduce translation --scale small --data corpora/multi30k`,
    )
    .action(reproduce);
}

async function reproduce(name: string, flags: ReproduceFlags): Promise<void> {
  const { loadGrid, countRuns } = await import('../sweep/index.js');
  const { planOf } = await import('./sweep-plan.js');
  const set = [...dataSetting(name, flags), ...flags.set];
  const file = fileURLToPath(new URL(`../../configs/sweeps/${name}-${flags.scale}.yaml`, import.meta.url));
  const grid = loadGrid(file);
  const plan = planOf(grid, { set, out: flags.out });
  say(flags, summary(plan, countRuns(grid)));
  if (!(await mayBegin(plan, flags))) return;

  const { sweepRun } = await import('./sweep-run.js');
  const record = await sweepRun(plan, flags);
  if (record.runs.some(({ state }) => state === 'stopped')) return;
  const { writeReport } = await import('../report/index.js');
  const { html } = await writeReport(plan.folder);
  say(flags, `report: ${html}`);
}

/** The assignment that says where the data are; without `--data` only the smoke test can be run. */
function dataSetting(name: string, { scale, data }: ReproduceFlags): string[] {
  const experiment = EXPERIMENTS[name];
  if (experiment === undefined) {
    const known = Object.keys(EXPERIMENTS).join(' or ');
    throw new InputError(`there is no experiment ${JSON.stringify(name)}, expected ${known}`);
  }
  if (scale === 'smoke') {
    if (data === undefined) return [];
    throw new InputError('the smoke test has data of its own; --data goes with --scale small or full', {
      key: '--data',
    });
  }
  if (data === undefined) throw new InputError(`missing, expected the path of ${experiment.what}`, { key: '--data' });
  if (!existsSync(data)) throw new InputError(`there is no ${data}, expected ${experiment.what}`, { key: '--data' });
  return [`${experiment.data}=${JSON.stringify(data)}`];
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
  if (!flags.yes) requireSomebodyToAsk('The runs are not begun unasked.');
  const ending = new AbortController();
  const interrupt = listenForInterrupt({ announce: () => ending.abort() });
  const { seconds, trials } = await estimate(left, {
    cores: flags.cores,
    signal: ending.signal,
    onTrial: ({ name }) => say(flags, `trying out ${name} for some seconds`),
  }).finally(() => interrupt.dispose());
  if (ending.signal.aborted) {
    process.exitCode = INTERRUPTED;
    return false;
  }
  const time = seconds === undefined ? 'a time that could not be measured' : `about ${formatDuration(seconds)}`;
  say(
    flags,
    `${left.length} trainings will take ${time} on ${flags.cores} cores, by ${trials} short trials; evaluations and runs ` +
      'with chosen settings come on top',
  );
  return flags.yes || (await askToGoOn('Go on?'));
}

function say({ quiet }: ReproduceFlags, text: string): void {
  if (!quiet) process.stderr.write(`${text}\n`);
}
