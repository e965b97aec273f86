import { existsSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, Option } from 'commander';
import type { DeviceChoice } from '../devices.js';
import { InputError } from '../errors.js';
import { launch, Ranks } from '../ranks.js';
import { runConfigFile } from '../run/folder.js';
import { INTERRUPTED } from '../run/progress.js';
import { formatFigure, wrapped } from '../text-table.js';
import { deviceOption, mapOf, type QueueFlags, queueOptions, setOption, wholeNumber } from './flags.js';
import { configFile, runFolder } from './names.js';
import { nextLines, reportError } from './terminal.js';

interface TrainOptions extends QueueFlags {
  readonly set: readonly string[];
  readonly strategy?: string;
  readonly main?: string;
  readonly tasks?: string;
  readonly model?: string;
  readonly walkForward?: Readonly<Record<string, unknown>>;
  readonly budget?: string;
  readonly device?: DeviceChoice;
  readonly resume: boolean;
  readonly until?: number;
  readonly quiet: boolean;
  readonly json: boolean;
  readonly cores: number;
}

export function registerTrain(program: Command): void {
  const command = program
    .command('train')
    .description('Train the model of a configuration in a new run folder.')
    .argument('<config>', 'configuration file, or the name of a shipped one; with --resume also a run folder');
  setOption(command)
    .option('--strategy <name>', 'short for --set strategy.name=<name>')
    .option('--main <m>', 'short for --set problem.main=<m>')
    .option('--tasks <n>', 'short for --set problem.tasks=<n>')
    .option('--model <name>', 'short for --set problem.model.name=<name>')
    .addOption(deviceOption())
    .addOption(
      new Option(
        '--walk-forward <map>',
        'forecast: train a run for each window, such as {train: 4y, validation: 1y, step: 6m}',
      ).argParser((text) => mapOf(text, '--walk-forward')),
    )
    .option(
      '--budget <time>',
      'choose sizes and updates for a training of 90s, 30m, 1h30m; --set training.budget=<time>',
    )
    .option('--resume', 'continue a run that was stopped or killed', false)
    .addOption(
      new Option('--until <updates>', 'pause after this many updates, before any test').argParser(
        wholeNumber('--until', 1),
      ),
    )
    .option('--quiet', 'show no progress', false)
    .option('--json', 'print the result as JSON', false)
    .addOption(
      new Option('--cores <n>', 'walk-forward and seeds: cores used by all runs together')
        .argParser(wholeNumber('--cores'))
        .default(availableParallelism(), 'all'),
    );
  queueOptions(command, true)
    .addHelpText(
      'after',
      `
Every key of a configuration is explained in configs/reference.yaml.

Examples:
  tcts train configs/demo.yaml
  tcts train configs/demo.yaml --set strategy.name=mtl --set name=demo-mtl --set seed=2
  tcts train configs/csi300.yaml --strategy mtl --main 2 --tasks 5 --model gru
  tcts train translator.yaml --budget 30m
  tcts train --resume runs/demo-mtl
  tcts train stocks.yaml --walk-forward '{train: 4y, validation: 1y, step: 6m}' --set name=walk
  tcts train stocks.yaml --set problem.seeds=5 --set name=five-seeds
  mpirun -n 2 tcts train configs/csi300.yaml --set workers=1`,
    )
    .action((target: string, options: TrainOptions) => inMpiJob((ranks) => trainCommand(target, options, ranks)));
}

async function trainCommand(given: string, options: TrainOptions, ranks?: Ranks): Promise<void> {
  // Only here: other verbs need not wait until the runtime is loaded.
  const { runPath } = await import('../run/index.js');
  const { nextCommands, validationOf } = await import('../problems/index.js');
  const { loadTrainConfig } = await import('./sizing.js');
  const { trainingRun } = await import('./training-run.js');

  const target = options.resume && !existsSync(given) ? runFolder(given) : given;
  const isFolder = existsSync(target) && statSync(target).isDirectory();
  if (isFolder && !options.resume) {
    throw new InputError('it is a folder, expected a configuration file (or --resume with a run folder)', {
      file: target,
    });
  }
  const file = isFolder ? runConfigFile(target) : configFile(target);
  const config = await loadTrainConfig(file, assignments(options));
  const folder = isFolder ? target : runPath(config, file);
  const { resume, until, quiet, cores, queue, queueName } = options;
  const { outcome, result, members } = await trainingRun(config, {
    folder,
    resume,
    until,
    quiet,
    ranks,
    cores,
    queue,
    queueName,
  });

  if (result === undefined) {
    if (until === undefined || outcome.signal !== undefined) process.exitCode = INTERRUPTED;
    return;
  }
  if (ranks !== undefined && ranks.rank > 0) return;
  if (options.json) {
    process.stdout.write(`${JSON.stringify({ folder, ...result })}\n`);
    return;
  }
  const { best, test } = result;
  const { name, sign } = validationOf(config.problem);
  const figures = Object.entries(test ?? {}).map(([figure, value]) => `${figure} ${formatFigure(value)}`);
  const where = members === undefined ? `at update ${best?.update}` : 'on average';
  const early = result.stoppedEarly ? `, as the last ${config.earlyStopping.patience} validations were no better` : '';
  const lines = [
    `finished after ${outcome.step} updates${members === undefined ? '' : ` of ${members} runs`}${early}`,
    best && `best validation ${name} ${formatFigure(sign * best.performance)}, ${where}`,
    figures.length > 0 &&
      wrapped(`${members === undefined ? 'that model' : 'all'} on test data: ${figures.join(', ')}`),
    `run folder: ${folder}`,
    nextLines(nextCommands(config.problem, folder)),
  ];
  process.stdout.write(`${lines.filter(Boolean).join('\n')}\n`);
}

/** What the flags give keys of the configuration: those that are short for one, and `--set`. */
export function assignments(options: TrainOptions): string[] {
  const { strategy, main, tasks, model, device, walkForward, budget, set } = options;
  const keys = {
    'strategy.name': strategy,
    'problem.main': main,
    'problem.tasks': tasks,
    'problem.model.name': model,
    device,
    'problem.split.walkForward': walkForward && JSON.stringify(walkForward),
    'training.budget': budget,
  };
  const given = Object.entries(keys).flatMap(([key, value]) => (value === undefined ? [] : [`${key}=${value}`]));
  return [...given, ...set];
}

/**
 * Runs a command in every process of the MPI job that this one belongs to, or alone, without ranks, if there is none.
 * A process whose command fails says so and ends the job: the others may be waiting for it.
 */
async function inMpiJob(command: (ranks?: Ranks) => Promise<void>): Promise<void> {
  const job = launch();
  if (job === undefined) return command();
  let ranks: Ranks | undefined;
  try {
    ranks = await Ranks.open(job);
    await command(ranks);
    ranks.close();
  } catch (error) {
    process.exitCode = 1;
    // Errors common to all processes, such as a typo in the configuration, are reported by rank 0.
    if (job.rank > 0) await sleep(GRACE);
    reportError(error, job.rank === 0 ? 'tcts' : `tcts, process ${job.rank}`);
    ranks?.abort(1);
  }
}

/** Milliseconds in which rank 0 comes to the same end, if it does. */
const GRACE = 2000;
