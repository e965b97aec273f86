import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { InputError } from '../errors.js';
import type { Ranks } from '../ranks.js';
import { INTERRUPTED } from '../run/interrupt.js';
import { inMpiJob } from './mpi-job.js';

interface TrainOptions {
  readonly set: readonly string[];
  readonly strategy?: string;
  readonly main?: string;
  readonly tasks?: string;
  readonly model?: string;
  readonly resume: boolean;
  readonly quiet: boolean;
  readonly json: boolean;
}

export function registerTrain(program: Command): void {
  program
    .command('train')
    .description('Train a model as a configuration says, in a run folder of its own.')
    .argument('<config>', 'configuration file; with --resume a run folder will do')
    .option('--set <key=value>', 'lay a value over the configuration; may be repeated', collect, [])
    .option('--strategy <name>', 'short for --set strategy.name=<name>')
    .option('--main <m>', 'short for --set problem.main=<m>')
    .option('--tasks <n>', 'short for --set problem.tasks=<n>')
    .option('--model <name>', 'short for --set problem.model.name=<name>')
    .option('--resume', 'go on with a run that was stopped, killed or interrupted', false)
    .option('--quiet', 'show no progress', false)
    .option('--json', 'print the result as JSON', false)
    .addHelpText(
      'after',
      `
Every key of a configuration is explained in configs/reference.yaml.

Examples:
  tcts train configs/demo.yaml
  tcts train configs/demo.yaml --set strategy.name=mtl --set name=demo-mtl --set seed=2
  tcts train configs/csi300.yaml --strategy mtl --main 2 --tasks 5 --model gru
  tcts train --resume runs/demo-mtl
  mpirun -n 2 tcts train configs/csi300.yaml --set workers=1`,
    )
    .action((target: string, options: TrainOptions) => inMpiJob((ranks) => trainCommand(target, options, ranks)));
}

async function trainCommand(target: string, options: TrainOptions, ranks?: Ranks): Promise<void> {
  // Only here: other verbs need not wait until the runtime is loaded.
  const { loadConfig, runPath } = await import('../run/index.js');
  const { trainConfigSchema } = await import('./problems.js');
  const { trainingRun } = await import('./training-run.js');

  const isFolder = existsSync(target) && statSync(target).isDirectory();
  if (isFolder && !options.resume) {
    throw new InputError('it is a folder, expected a configuration file (or --resume with a run folder)', {
      file: target,
    });
  }
  const file = isFolder ? join(target, 'config.yaml') : target;
  const config = loadConfig(trainConfigSchema, file, { set: [...shorthands(options), ...options.set] });
  const folder = isFolder ? target : runPath(config, target);
  const { resume, quiet } = options;
  const { outcome, result } = await trainingRun(config, { folder, resume, quiet, ranks });

  if (result === undefined) {
    process.exitCode = INTERRUPTED;
    return;
  }
  if (ranks !== undefined && ranks.rank > 0) return;
  if (options.json) {
    process.stdout.write(`${JSON.stringify({ folder, ...result })}\n`);
    return;
  }
  const { best, test } = result;
  const figures = Object.entries(test ?? {}).map(([name, value]) => `${name} ${formatFigure(value)}`);
  const lines = [
    `finished after ${outcome.step} updates`,
    best && `best validation performance ${formatFigure(best.performance)}, at update ${best.update}`,
    figures.length > 0 && `that model on test data: ${figures.join(', ')}`,
    `run folder: ${folder}`,
  ];
  process.stdout.write(`${lines.filter(Boolean).join('\n')}\n`);
}

/** Four significant digits. */
export function formatFigure(value: number): string {
  return String(Number(value.toPrecision(4)));
}

/** The flags that stand for keys of the configuration, as assignments to them. */
function shorthands({ strategy, main, tasks, model }: TrainOptions): string[] {
  const keys = { 'strategy.name': strategy, 'problem.main': main, 'problem.tasks': tasks, 'problem.model.name': model };
  return Object.entries(keys).flatMap(([key, value]) => (value === undefined ? [] : [`${key}=${value}`]));
}

export function collect(value: string, previous: string[]): string[] {
  return [...previous, value];
}
