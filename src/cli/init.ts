import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import type { Command } from 'commander';
import { InputError } from '../errors.js';
import { writeFileAtomic } from '../files.js';
import type { PriceSource } from '../forecast/formats/describe.js';
import type { Extent } from '../schedule/index.js';
import { wrapped } from '../text-table.js';
import { positiveNumber, wholeNumber } from './flags.js';
import { nextLines } from './terminal.js';

interface InitFlags {
  readonly data?: string;
  readonly main?: number;
  readonly minutes?: number;
}

export function registerInit(program: Command): void {
  program
    .command('init')
    .description('Write a commented configuration for your data, from three questions or flags.')
    .argument('[file]', 'file to write', 'tcts.yaml')
    .option('--data <path>', `the data: ${WHAT}`)
    .option('--main <m>', 'the main task: words to wait, days or steps ahead', wholeNumber('--main', 1, 1000))
    .option('--minutes <n>', 'how long a training may take on this machine', positiveNumber('--minutes'))
    .addHelpText(
      'after',
      `
Missing flags are asked for. A few updates are timed to fit the training into the given time.

Examples:
  tcts init
  tcts init translator.yaml --data verb-final --main 3 --minutes 1
  tcts init stocks.yaml --data prices.csv --main 1 --minutes 30`,
    )
    .action(initCommand);
}

const WHAT = `a CSV or Parquet file, a qlib folder, a folder made by tcts prepare translate,
or built in: verb-final, market, series`;

async function initCommand(file: string, flags: InitFlags): Promise<void> {
  if (existsSync(file)) throw new InputError('it already exists: choose another name', { file });
  const ask = questions(flags);
  try {
    const data = flags.data ?? (await ask('What data', WHAT, 'verb-final'));
    const draft = await draftOf(data);
    const main =
      flags.main ?? wholeNumber('--main', 1, 1000)(await ask('Which task is main', draft.question, String(draft.main)));
    const minutes =
      flags.minutes ?? positiveNumber('--minutes')(await ask('How many minutes may it take', 'on this machine', '5'));
    const { problem, training } = await sizesFor(draft.text(main), minutes);
    writeFileAtomic(file, `${HEADING}\n${draft.text(main, problem)}${trainingText(training, minutes)}`);
    const updates = training.episodes * training.steps;
    process.stdout.write(`written: ${file} (${updates} updates)\n${nextLines([`tcts train ${file}`])}\n`);
  } finally {
    ask.close();
  }
}

const HEADING = '# Written by tcts init. Every other key, with its default: configs/reference.yaml of the package.';

/** Asks on the terminal; without one, what is missing has to be given as a flag. */
function questions(flags: InitFlags) {
  const terminal = process.stdin.isTTY ? createInterface({ input: process.stdin, output: process.stderr }) : undefined;
  const ask = async (question: string, about: string, suggestion: string): Promise<string> => {
    if (terminal === undefined) {
      const missing = (['data', 'main', 'minutes'] as const).filter((name) => flags[name] === undefined);
      throw new InputError(`there is no terminal to ask on: give ${missing.map((name) => `--${name}`).join(', ')}`);
    }
    process.stderr.write(`${wrapped(`${question}? (${about.replaceAll('\n', ' ')})`)}\n`);
    return (await terminal.question(`[${suggestion}] `)).trim() || suggestion;
  };
  return Object.assign(ask, { close: () => terminal?.close() });
}

/** A configuration that lacks its main task and its length. */
interface Draft {
  /** What a main task is here. */
  readonly question: string;
  readonly main: number;
  /** Sizes are `auto` until a problem with sizes is given. */
  text(main: number, problem?: object): string;
}

async function draftOf(data: string): Promise<Draft> {
  if (data === 'verb-final' || data === 'toy') return translationDraft(`{from: ${data}}`);
  if (data === 'market') {
    const split = { train: ['2015-03-02', '2016-06-30'], validation: ['2016-07-01', '2016-12-31'] } as const;
    return forecastDraft('{format: synthetic}', { ...split, test: ['2017-01-01', '2017-11-30'] });
  }
  if (data === 'series') return seriesDraft('{format: synthetic}');
  if (!existsSync(data))
    throw new InputError(`there is no such file, expected ${WHAT.replace('\n', ' ')}`, { file: data });
  const quoted = JSON.stringify(data);
  if (existsSync(join(data, 'corpus.json'))) return translationDraft(`{from: corpus, folder: ${quoted}}`);
  const { describePrices } = await import('../forecast/formats/describe.js');
  const prices = await describePrices(data);
  return prices === undefined ? seriesDraft(`{format: csv, path: ${quoted}}`) : pricesDraft(prices);
}

function translationDraft(data: string): Draft {
  return {
    question: 'wait-k: words to read before the first one is written',
    main: 3,
    text: (main, problem) => {
      const { model, batch, learning } = (problem ?? AUTO) as typeof AUTO;
      const { preset, encoderLayers, decoderLayers, width, ffn, sharedEmbeddings } = model;
      const sizes = Object.entries({ preset, encoderLayers, decoderLayers, width, ffn, sharedEmbeddings });
      const keys = sizes.flatMap(([key, value]) => (value === undefined ? [] : [`${key}: ${value}`]));
      return `problem:
  kind: translation
  data: ${data}
  waits: ${Math.max(7, main + 4)}                 # the tasks are wait-1 to wait-${Math.max(7, main + 4)}
  main: ${main}                  # the one that counts: wait-${main}
  model: {${keys.join(', ')}}    # tiny, small, iwslt or big, and what differs from it
  batch: {tokens: ${batch.tokens}}
  learning: {peak: ${learning.peak}, warmup: ${learning.warmup}}
`;
    },
  };
}

/** The chosen settings of a translation problem. */
const AUTO: {
  readonly model: Readonly<Record<string, unknown>>;
  readonly batch: { readonly tokens: unknown };
  readonly learning: { readonly peak: unknown; readonly warmup: unknown };
} = { model: { preset: 'auto' }, batch: { tokens: 'auto' }, learning: { peak: 'auto', warmup: 'auto' } };

type Split = Readonly<Record<'train' | 'validation' | 'test', readonly [string, string]>>;

function forecastDraft(data: string, split: Split, small = true): Draft {
  const range = ([from, to]: readonly [string, string]) => `['${from}', '${to}']`;
  return {
    question: 'days ahead',
    main: 1,
    text: (main) => `problem:
  kind: forecast
  data: ${data}
  split:                   # first and last day of each part
    train: ${range(split.train)}
    validation: ${range(split.validation)}
    test: ${range(split.test)}
  tasks: ${Math.max(3, main + 1)}                 # returns of 1 to ${Math.max(3, main + 1)} days ahead
  main: ${main}                  # the one that counts
  features: {window: ${small ? 10 : 60}}     # days that the model sees
  model: {name: gru, hidden: ${small ? 16 : 32}, layers: ${small ? 1 : 2}}
  learningRate: ${small ? 0.003 : 0.001}
`,
  };
}

/** The user's prices: the first 60 % of the days for training, 20 % for validation, 20 % for testing. */
async function pricesDraft(source: PriceSource): Promise<Draft> {
  const { dataSchema, openPanel } = await import('../forecast/formats/index.js');
  const { stringify } = await import('yaml');
  const { panel } = await openPanel(dataSchema().parse(source), { kind: 'ohlcv', window: 1 });
  const { calendar } = panel;
  if (calendar.length < 100) {
    throw new InputError(`it has ${calendar.length} days or bars, expected 100 or more`, { file: source.path });
  }
  const window = calendar.length < 500 ? 10 : 60;
  const dayOf = (bar: number) => calendar[bar].slice(0, 'YYYY-MM-DD'.length);
  /** Where each day begins in the calendar, which within a day has several bars. */
  const begins = [...calendar.keys()].filter((bar) => bar === 0 || dayOf(bar) !== dayOf(bar - 1));
  const border = (share: number) => Math.floor(share * begins.length);
  const borders = [begins.findIndex((bar) => bar >= window), border(0.6), border(0.8), begins.length];
  const part = (i: number) => [dayOf(begins[borders[i]]), dayOf(begins[borders[i + 1] - 1])] as const;
  if (borders[0] < 0 || borders.some((day, i) => i > 0 && day <= borders[i - 1])) {
    throw new InputError(`it has bars of ${begins.length} days, too few to split them`, { file: source.path });
  }
  const split = { train: part(0), validation: part(1), test: part(2) };
  const text = stringify(source, { collectionStyle: 'flow', flowCollectionPadding: false, lineWidth: 0 }).trimEnd();
  return forecastDraft(text, split, window === 10);
}

function seriesDraft(data: string): Draft {
  return {
    question: 'rows ahead',
    main: 12,
    text: (main) => {
      const tasks = [...new Set([1, Math.ceil(main / 2), main, 2 * main])].sort((a, b) => a - b);
      return `problem:
  kind: series
  data: ${data}            # target: NAME chooses the column to forecast; when left out, the last
  tasks: [${tasks.join(', ')}]      # rows ahead
  main: ${main}                 # the one that counts
  window: ${Math.max(24, 2 * main)}               # rows that the model sees
`;
    },
  };
}

function trainingText({ episodes, steps }: Extent, minutes: number): string {
  return `strategy:
  name: learned            # fixed, mtl, influence, …: docs/strategies.md; tcts probe FILE says which pays
training:                  # ${episodes} × ${steps} updates: about ${Number(minutes.toPrecision(2))} minutes on the machine this was written on
  episodes: ${episodes}             # the scheduler learns after each
  steps: ${steps}
`;
}

/** The problem with its sizes and a training length that fits the time. */
async function sizesFor(problem: string, minutes: number): Promise<{ problem: object; training: Extent }> {
  const { parse } = await import('yaml');
  const { loadTrainConfig, resolveSizes } = await import('./sizing.js');
  const values = { ...parse(problem), strategy: { name: 'learned' }, training: { budget: `${seconds(minutes)}s` } };
  process.stderr.write('timing a few updates …\n');
  return resolveSizes(await loadTrainConfig(values, []), { say: (line) => process.stderr.write(`${line}\n`) });
}

/** Without an exponent. */
function seconds(minutes: number): string {
  return String(Number((60 * minutes).toFixed(3)));
}
