import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, Option } from 'commander';
import { InputError } from '../errors.js';
import { nearest } from '../run/config/load.js';
import type { TrainingResult } from '../run/index.js';
import { INTERRUPTED } from '../run/progress.js';
import type { EpisodeRecord } from '../schedule/index.js';
import { formatFigure, textTable, wrapped } from '../text-table.js';
import type { Translator } from '../translate/decode/translator.js';
import type { TranslationScores } from '../translate/evaluate.js';
import type { ToyPair } from '../translate/toy.js';
import { wholeNumber } from './flags.js';
import { shippedConfig } from './names.js';
import { nextLines, saying } from './terminal.js';

/** One part of the demo; returns results for `--json`. Undefined if it was interrupted. */
interface Part {
  readonly title: string;
  readonly about: string;
  run(context: PartContext): Promise<object | undefined>;
  /** Commands to try with the part's results. */
  next(folder: string): readonly string[];
}

interface PartContext {
  /** Where its runs are made. */
  readonly folder: string;
  readonly seed: number;
  readonly say: (text: string) => void;
  readonly quiet: boolean;
}

const PARTS: Readonly<Record<string, Part>> = {
  'known-answer': {
    title: 'Known answer: does the scheduler find the right task?',
    about: `Five regression tasks share one linear model. The labels of task "main" are
noisy, those of "clean" are the same without the noise, those of the others are
wrong. The best a scheduler can do is to choose "clean"; it is not told so.`,
    run: knownAnswer,
    next: () => ['tcts probe demo'],
  },
  translation: {
    title: 'Simultaneous translation: what does waiting buy?',
    about: `English with the verb at the end into plain English, while the words arrive. The
tasks are to wait for 1 to 7 words before writing; wait-3 is the main task.`,
    run: translation,
    next: (folder) => [`tcts translate ${join(folder, 'learned')} --k 3`, `tcts serve ${folder}`],
  },
  market: {
    title: 'Forecasting: 80 made-up stocks, wrong labels for half of them',
    about: `The main task is tomorrow's return; the two days after it are further tasks. In
training the main labels of the more volatile half are two days old, so that for
those stocks the other days teach more. The scheduler knows how volatile a stock
is, not that it matters. Validation and test labels are right. No forecast can
have a RankIC above .25.`,
    run: market,
    next: (folder) => [`tcts evaluate ${join(folder, 'influence')}`],
  },
};

const NAMES = Object.keys(PARTS).join(', ');

interface DemoOptions {
  readonly out: string;
  readonly seed: number;
  readonly json: boolean;
}

export function registerDemo(program: Command): void {
  program
    .command('demo')
    .description('See what it does in about a minute, on built-in data: scheduling, translating, forecasting.')
    .argument('[part]', `one of ${NAMES} (default: all, and a report)`)
    .option('--out <folder>', 'parent folder of the runs', 'runs')
    .addOption(
      new Option('--seed <number>', 'seed of all random numbers').argParser(wholeNumber('--seed', 0)).default(1),
    )
    .option('--json', 'print the results as JSON', false)
    .addHelpText('after', '\nExamples:\n  tcts demo\n  tcts demo translation\n  tcts demo market --seed 2')
    .action(demoCommand);
}

async function demoCommand(wanted: string | undefined, { out, seed, json }: DemoOptions): Promise<void> {
  const names = wanted === undefined ? Object.keys(PARTS) : [partNamed(wanted)];
  const folder = freeFolder(join(out, 'demo-strategies'));
  const say = (text: string): void => void (!json && process.stdout.write(`${text}\n`));
  const quiet = json || !process.stderr.isTTY;
  const results: Record<string, object> = {};
  const next: string[] = [];
  for (const [i, name] of names.entries()) {
    const part = PARTS[name];
    const number = names.length > 1 ? `${i + 1} of ${names.length}  ` : '';
    say(`${i === 0 ? '' : '\n'}${number}${part.title}\n\n${part.about}\n`);
    const result = await part.run({ folder: join(folder, name), seed, say, quiet });
    if (result === undefined) {
      process.exitCode = INTERRUPTED;
      return;
    }
    results[name] = result;
    next.push(...part.next(join(folder, name)));
  }
  const { html } = await saying('writing the report', async () => {
    const { writeReport } = await import('../report/index.js');
    return writeReport(folder, { title: 'The demo' });
  });
  if (json) process.stdout.write(`${JSON.stringify({ folder, report: html, ...results })}\n`);
  say(`\nreport: ${html}\nrun folders: ${folder}\n${nextLines(next)}`);
}

function partNamed(wanted: string): string {
  if (wanted in PARTS) return wanted;
  const near = nearest(wanted, Object.keys(PARTS));
  const hint = near === undefined ? `expected one of ${NAMES}` : `did you mean ${near}?`;
  throw new InputError(`there is no demo ${JSON.stringify(wanted)}, ${hint}`);
}

/** The path, or the first of `path-2`, `path-3`, … that does not exist yet. */
function freeFolder(path: string): string {
  for (let n = 1; ; n++) {
    const candidate = n === 1 ? path : `${path}-${n}`;
    if (!existsSync(candidate)) return candidate;
  }
}

interface Trained {
  readonly strategy: string;
  /** Validation of the main task, as a loss or another measure with its usual sign. */
  readonly validation: number;
  readonly test: NonNullable<TrainingResult['test']>;
  readonly seconds: number;
  readonly tasks: readonly string[];
  readonly episodes: readonly EpisodeRecord[];
}

/** Trains a shipped configuration with a strategy. Undefined if it was interrupted. */
async function trainShipped(
  config: string,
  strategy: string,
  { folder, seed, quiet }: PartContext,
): Promise<Trained | undefined> {
  const { loadConfig } = await import('../run/index.js');
  const { trainConfigSchema, validationOf } = await import('../problems/index.js');
  const { trainingRun } = await import('./training-run.js');
  const file = shippedConfig(config);
  const settings = loadConfig(trainConfigSchema, file, { set: [`seed=${seed}`, `strategy.name=${strategy}`] });
  const started = performance.now();
  const episodes: EpisodeRecord[] = [];
  const { result, tasks } = await saying(`training with ${strategy}`, () =>
    trainingRun(settings, { folder: join(folder, strategy), quiet, onEpisode: (record) => episodes.push(record) }),
  );
  if (result?.best == null) return undefined;
  const validation = validationOf(settings.problem).sign * result.best.performance;
  const seconds = (performance.now() - started) / 1000;
  return { strategy, validation, test: result.test ?? {}, seconds, tasks, episodes };
}

/** Trains with several strategies in turn; the scheduler comes last. */
async function trainAll(config: string, strategies: readonly string[], context: PartContext) {
  const all: Trained[] = [];
  for (const strategy of strategies) {
    const trained = await trainShipped(config, strategy, context);
    if (trained === undefined) return undefined;
    all.push(trained);
  }
  return all;
}

const rowsOf = (all: readonly Trained[]) => all.map(({ tasks: _, episodes: __, ...row }) => row);

async function knownAnswer(context: PartContext): Promise<object | undefined> {
  const all = await trainAll('demo', ['fixed', 'mtl', 'curriculum', 'learned'], context);
  if (all === undefined) return undefined;
  const { say } = context;
  const rows = all.map(({ strategy, validation, test, seconds }) => [
    ...[strategy, formatFigure(validation), formatFigure(test.loss)],
    seconds.toFixed(1),
  ]);
  say(textTable(['strategy', 'validation loss', 'test loss', 'seconds'], rows));
  const [winner, second] = all.toSorted((a, b) => a.test.loss - b.test.loss);
  const figures = `test loss ${formatFigure(winner.test.loss)}, next ${second.strategy} with ${formatFigure(second.test.loss)}`;
  say(`winner: ${winner.strategy} (${figures})\n`);
  const { tasks, episodes } = all[all.length - 1];
  say(`What the scheduler chose, from the first to the last of ${episodes.length} episodes:`);
  say(distributionPlot(tasks, episodes, 44));
  const share = meanShare(lastQuarter(episodes), tasks.indexOf('clean'));
  const percent = `${Math.round(100 * share)} % of its last choices`;
  say(share > 0.5 ? `It found the clean task: ${percent}.` : `It has not settled on the clean task: ${percent}.`);
  return { rows: rowsOf(all) };
}

async function market(context: PartContext): Promise<object | undefined> {
  const { compareForecasts, evaluateForecast } = await import('../forecast/evaluation/evaluation.js');
  const all = await trainAll('known/market-stale', ['fixed', 'mtl', 'influence'], context);
  if (all === undefined) return undefined;
  const { say, folder } = context;
  const run = (strategy: string) => join(folder, strategy);
  await saying('scoring the forecasts', async () => {
    for (const { strategy } of all) await evaluateForecast(run(strategy), { threads: 2 });
  });
  const rows = all.map(({ strategy, test, seconds }) => [
    ...[MARKET_STRATEGIES[strategy], test.RankIC.toFixed(4), test.loss.toFixed(4)],
    seconds.toFixed(1),
  ]);
  say(textTable(['strategy', 'RankIC', 'test loss', 'seconds'], rows));
  const [unscheduled] = all.slice(0, 2).toSorted((a, b) => b.test.RankIC - a.test.RankIC);
  const { mean, interval } = compareForecasts(run('influence'), run(unscheduled.strategy), 'test').RankIC;
  const [low, high] = interval.map((value) => value.toFixed(4));
  const difference = `RankIC of influence − ${unscheduled.strategy}: ${mean.toFixed(4)} (95 % interval ${low} to ${high})`;
  say(wrapped(`${difference}: ${verdict(interval)}. Ten seeds of all strategies: docs/results/scheduling.md`));
  return { rows: rowsOf(all), difference: { against: unscheduled.strategy, mean, interval } };
}

const MARKET_STRATEGIES: Readonly<Record<string, string>> = {
  fixed: 'fixed (main task only)',
  mtl: 'mtl (all tasks alike)',
  influence: 'influence (scheduled)',
};

/** Interprets the interval of a difference over the days. */
function verdict([low, high]: readonly [number, number]): string {
  if (low > 0) return 'scheduling helps, with this seed';
  return high < 0 ? 'scheduling hurts, with this seed' : 'with this seed the days cannot tell them apart';
}

/**
 * The share of each task over the episodes, one row per task and time from left to right: a cell is the mean of the
 * episodes that fall into it, the darker the larger. It is followed by the share in the last quarter.
 */
export function distributionPlot(tasks: readonly string[], episodes: readonly Shares[], width = 60): string {
  const cells = Math.min(width, episodes.length);
  const label = Math.max(...tasks.map((task) => task.length));
  return tasks
    .map((task, i) => {
      const row = Array.from({ length: cells }, (_, cell) => {
        const from = Math.floor((cell * episodes.length) / cells);
        const to = Math.floor(((cell + 1) * episodes.length) / cells);
        return shade(meanShare(episodes.slice(from, to), i));
      });
      const share = Math.round(100 * meanShare(lastQuarter(episodes), i));
      return `${task.padEnd(label)} │${row.join('')}│ ${String(share).padStart(3)} % in the last quarter`;
    })
    .join('\n');
}

interface Shares {
  readonly distribution: readonly number[];
}

function lastQuarter<T>(episodes: readonly T[]): readonly T[] {
  return episodes.slice(Math.floor(0.75 * episodes.length));
}

function meanShare(episodes: readonly Shares[], task: number): number {
  return episodes.reduce((sum, { distribution }) => sum + distribution[task], 0) / episodes.length;
}

/** Blank below 5 %, full above 80 %. */
function shade(share: number): string {
  return SHADES[SHADES_FROM.findLastIndex((from) => share >= from)];
}

const SHADES = [' ', '░', '▒', '▓', '█'];
const SHADES_FROM = [0, 0.05, 0.25, 0.5, 0.8];

const WAITS = [1, 5] as const;

/** Trains a translator with the scheduler, shows a sentence arriving under two waits, and scores both. */
async function translation(context: PartContext): Promise<object | undefined> {
  const { folder, say } = context;
  const trained = await trainShipped('verb-final', 'learned', context);
  if (trained === undefined) return undefined;
  say(`trained in ${trained.seconds.toFixed(0)} s, validation loss ${trained.validation.toFixed(3)} nats per word`);
  const { Translator } = await import('../translate/decode/translator.js');
  const { evaluateTranslation } = await import('../translate/evaluate.js');
  const { verbFinalText } = await import('../translate/toy.js');
  const run = join(folder, 'learned');
  const scores = await saying('translating the test sentences', () =>
    evaluateTranslation(run, { policies: [`wait-k:${WAITS.join(',')}`], beam: 1, threads: 2 }),
  );
  const pair = tellingPair(scores, verbFinalText(1, { train: 0, valid: 0 }).test);
  say(`\n  source     ${pair.source}\n  reference  ${pair.target}`);
  const translator = await Translator.open(run, { beam: 1 });
  try {
    for (const k of WAITS) await stream(translator, k, pair, context);
  } finally {
    await translator.close();
  }
  const rows = scores.map(({ k, bleu, latency }) => [
    `wait-${k}`,
    bleu.toFixed(1),
    latency.stacl?.AL.toFixed(2) ?? '–',
  ]);
  say(`\n${textTable(['', 'BLEU', 'AL (words)'], rows)}`);
  const [early, late] = scores;
  say(`${(late.bleu - early.bleu).toFixed(0)} BLEU for waiting ${(lag(late) - lag(early)).toFixed(1)} words longer.`);
  const results = scores.map(({ k, bleu, latency }) => ({ k, bleu, AL: latency.stacl?.AL ?? null }));
  return { validation: trained.validation, seconds: trained.seconds, results };
}

const lag = ({ latency }: TranslationScores): number => latency.stacl?.AL ?? Number.NaN;

/** A test sentence that only the longer wait gets right, if there is one. */
function tellingPair(scores: readonly TranslationScores[], test: readonly ToyPair[]): ToyPair {
  const outputs = scores.map(({ folder }) => readFileSync(join(folder, 'output.txt'), 'utf8').split('\n'));
  const [early, late] = outputs;
  const telling = test.filter(({ target }, i) => late[i] === target && early[i] !== target);
  const short = telling.filter(({ source }) => source.split(' ').length <= 9);
  return short.toSorted((a, b) => b.source.length - a.source.length)[0] ?? telling[0] ?? test[0];
}

/** Shows every READ and WRITE when it happens; for display, at the speed of a slow reader. */
async function stream(translator: Translator, k: number, pair: ToyPair, { say, quiet }: PartContext): Promise<void> {
  const { tokenName } = await import('../translate/decode/text-stream.js');
  say(`\n  wait-${k}`);
  let written: string[] = [];
  const sentence = translator.stream(translator.policy(`wait-k:${k}`), {
    beam: 1,
    onEvent: ({ action, token }) => {
      if (action === 'WRITE') written.push(tokenName(translator.target, token));
    },
  });
  const said: string[] = [];
  const show = (read: string): void => {
    const words = written.filter((word) => word !== '</s>');
    say(`  READ ${read.padEnd(11)}${words.length === 0 ? '' : `WRITE ${words.join(' ')}`}`.trimEnd());
    said.push(...words);
    written = [];
  };
  for (const word of pair.source.split(' ')) {
    await sentence.push(word);
    show(word);
    if (!quiet) await sleep(PAUSE);
  }
  await sentence.end();
  show('(end)');
  const wrong = said.filter((word) => !pair.target.split(' ').includes(word));
  const verdict = said.join(' ') === pair.target ? 'right' : `wrong: ${wrong.join(', ') || 'another order'}`;
  say(`  → ${said.join(' ')}  (${verdict})`);
}

/** Milliseconds between two words. */
const PAUSE = 150;
