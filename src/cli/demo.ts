import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { InputError } from '../errors.js';
import { INTERRUPTED } from '../run/interrupt.js';
import type { EpisodeRecord } from '../schedule/index.js';
import { distributionPlot } from './distribution-plot.js';
import { textTable } from './text-table.js';
import { formatFigure } from './train.js';

/** A built-in problem: a configuration and the strategies that it is trained with in turn. */
interface Demo {
  /** Of `configs/<config>.yaml`. */
  readonly config: string;
  readonly about: string;
  /** Assignments `strategy.…=…` for each strategy, the one of the plot last. */
  readonly strategies: Readonly<Record<string, readonly string[]>>;
}

const DEMOS: readonly Demo[] = [
  {
    config: 'demo',
    about: `Five regression tasks share one linear model. The labels of task "main" are noisy, those of "clean" are the
same without the noise, those of the others are wrong. The best a scheduler can do is to choose "clean".`,
    strategies: {
      fixed: ['strategy.name=fixed'],
      mtl: ['strategy.name=mtl'],
      curriculum: ['strategy.name=curriculum'],
      learned: [],
    },
  },
  {
    config: 'market',
    about: `A made-up stock market: forecast tomorrow's returns, with the days after tomorrow as further tasks. All
three have the same best forecast up to scale, under noise of their own; no forecast can have a RankIC above .25.`,
    strategies: {
      fixed: ['strategy.name=fixed'],
      mtl: ['strategy.name=mtl'],
      learned: [],
    },
  },
];

interface DemoOptions {
  readonly out: string;
  readonly seed: string;
  readonly json: boolean;
}

export function registerDemo(program: Command): void {
  program
    .command('demo')
    .description('Train a small built-in problem with several strategies and compare them.')
    .argument('[problem]', `one of ${DEMOS.map(({ config }) => config).join(', ')}`, DEMOS[0].config)
    .option('--out <folder>', 'folder in which the run folders are made', 'runs')
    .option('--seed <number>', 'seed of all random numbers', '1')
    .option('--json', 'print the results as JSON', false)
    .addHelpText('after', '\nExamples:\n  tcts demo --seed 2\n  tcts demo market')
    .action(demoCommand);
}

async function demoCommand(name: string, options: DemoOptions): Promise<void> {
  const demo = DEMOS.find(({ config }) => config === name);
  if (demo === undefined) {
    const known = DEMOS.map(({ config }) => config).join(', ');
    throw new InputError(`there is no demo ${JSON.stringify(name)}, expected one of ${known}`);
  }
  await runDemo(demo, options);
}

async function runDemo({ config: name, about, strategies }: Demo, { out, seed, json }: DemoOptions): Promise<void> {
  const { loadConfig } = await import('../run/index.js');
  const { trainConfigSchema } = await import('./problems.js');
  const { trainingRun } = await import('./training-run.js');

  const file = fileURLToPath(new URL(`../../configs/${name}.yaml`, import.meta.url));
  // Not runs/demo: that is where `tcts train configs/demo.yaml` puts its run.
  const folder = freeFolder(join(out, `${name}-strategies`));
  const say = (text: string) => !json && process.stdout.write(text);
  say(`${about}\n\n`);

  const rows: { strategy: string; performance: number; test: Record<string, number>; seconds: number }[] = [];
  let episodes: EpisodeRecord[] = [];
  let tasks: readonly string[] = [];
  for (const [strategy, assignments] of Object.entries(strategies)) {
    const config = loadConfig(trainConfigSchema, file, { set: [`seed=${seed}`, ...assignments] });
    const started = performance.now();
    episodes = [];
    const run = await trainingRun(config, {
      folder: join(folder, strategy),
      quiet: json || !process.stderr.isTTY,
      onEpisode: (record) => episodes.push(record),
    });
    if (run.result === undefined) {
      process.exitCode = INTERRUPTED;
      return;
    }
    tasks = run.tasks;
    const seconds = (performance.now() - started) / 1000;
    rows.push({ strategy, performance: run.result.best!.performance, test: { ...run.result.test }, seconds });
  }

  if (json) {
    process.stdout.write(`${JSON.stringify({ folder, rows })}\n`);
    return;
  }
  const figures = Object.keys(rows[0].test);
  const head = ['strategy', 'validation', ...figures.map((figure) => `test ${figure}`), 'seconds'];
  const body = rows.map(({ strategy, performance: validation, test, seconds }) => [
    strategy,
    formatFigure(validation),
    ...figures.map((figure) => formatFigure(test[figure])),
    seconds.toFixed(1),
  ]);
  say(`${textTable(head, body)}\n\n`);
  say(`What the scheduler chose, from the first to the last of ${episodes.length} episodes (darker: more often):\n`);
  say(`${distributionPlot(tasks, episodes)}\n\nrun folders: ${folder}\n`);
}

/** The path, or the first of `path-2`, `path-3`, … that is not there yet. */
function freeFolder(path: string): string {
  for (let n = 1; ; n++) {
    const candidate = n === 1 ? path : `${path}-${n}`;
    if (!existsSync(candidate)) return candidate;
  }
}
