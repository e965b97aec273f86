import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { type Command, Option } from 'commander';
import { InputError } from '../errors.js';
import { collect, type QueueFlags, queueOptions, wholeNumber } from './flags.js';
import { configFile } from './names.js';
import { askToGoOn } from './terminal.js';

export interface SweepFlags extends QueueFlags {
  readonly set: readonly string[];
  readonly data?: string;
  readonly seeds?: readonly number[];
  readonly out?: string;
  readonly cores: number;
  readonly dryRun: boolean;
  readonly yes: boolean;
  readonly quiet: boolean;
  readonly json: boolean;
}

export function registerSweep(program: Command): void {
  sweepOptions(
    program
      .command('sweep')
      .description('Train and evaluate every combination of a grid of settings.')
      .argument('<grid>', 'grid file; every key is explained in configs/sweeps/reference.yaml')
      .option('--set <key=value>', 'override a key of the training configuration; may be repeated', collect, [])
      .option('--data <folder>', 'what {data} stands for in the values of the grid'),
  )
    .option('--dry-run', 'print what would run', false)
    .option('--yes', `do not ask before more than ${MANY} runs`, false)
    .addHelpText(
      'after',
      `
Finished runs are kept and interrupted ones resumed, so the same command continues a sweep that was
stopped. A run that fails does not stop the rest; the exit code is then 1.

Examples:
  tcts sweep configs/sweeps/stock-smoke.yaml --dry-run
  tcts sweep configs/sweeps/stock-smoke.yaml --cores 2
  tcts sweep grid.yaml --set problem.data.path=data/cn_data
  tcts sweep configs/sweeps/scheduling-small.yaml --data data --seeds 201-205
  tcts sweep grid.yaml --queue redis://queue-host --out /mnt/shared/runs`,
    )
    .action(async (file: string, flags: SweepFlags) => {
      const { loadGrid, countRuns } = await import('../sweep/index.js');
      if (flags.data !== undefined) requireData(flags.data, 'a folder with the data of the grid');
      const grid = loadGrid(configFile(file, 'sweeps'), flags.seeds);
      const count = countRuns(grid);
      if (count > MANY && !flags.yes && !flags.dryRun) {
        if (!(await askToGoOn(`The grid has ${count} runs. Continue?`))) return;
      }
      const { planOf, describePlan } = await import('./sweep-run.js');
      const { withModules } = await import('../problems/index.js');
      const plan = await withModules(() => planOf(grid, flags));
      if (flags.dryRun) {
        const { json, text } = describePlan(plan);
        process.stdout.write(flags.json ? `${JSON.stringify(json)}\n` : `${text}\n`);
        return;
      }
      const { sweepRun } = await import('./sweep-run.js');
      await sweepRun(plan, flags);
    });
}

/** The options that `sweep` and `reproduce` share. */
export function sweepOptions(command: Command): Command {
  return queueOptions(command)
    .option('--out <folder>', 'parent folder of the sweep')
    .option('--seeds <list>', "seeds instead of the grid's: 1,2,5 or 201-205", seedList)
    .addOption(
      new Option('--cores <n>', 'cores used by all runs together')
        .argParser(wholeNumber('--cores'))
        .default(availableParallelism(), 'all'),
    )
    .option('--quiet', 'show no progress', false)
    .option('--json', 'print the outcome of every run as JSON', false);
}

export function requireData(path: string, what: string): void {
  if (!existsSync(path)) throw new InputError(`there is no ${path}, expected ${what}`, { key: '--data' });
}

/** `1,2,5` or `201-205` or both. */
export function seedList(text: string): number[] {
  const seeds = text.split(',').flatMap((part) => {
    const [, first, last = first] = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(part.trim()) ?? [];
    const count = Number(last) - Number(first) + 1;
    if (!(count >= 1 && count <= MANY)) {
      throw new InputError(`expected whole numbers such as 1,2,5 or 201-205, found ${JSON.stringify(text)}`, {
        key: '--seeds',
      });
    }
    return Array.from({ length: count }, (_, i) => Number(first) + i);
  });
  return [...new Set(seeds)];
}

/** More runs than this are worth a question. */
const MANY = 1000;
