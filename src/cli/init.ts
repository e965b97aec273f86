import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import type { Command } from 'commander';
import { isCsvName } from '../csv.js';
import { InputError } from '../errors.js';
import { fileLines, writeFileAtomic } from '../files.js';
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
  const { recognisedFormat } = await import('../forecast/formats/index.js');
  const format = recognisedFormat(data)?.schema.shape.format.value;
  if (format !== undefined && !isCsvName(data)) return pricesDraft(format, quoted, data);
  // Its columns distinguish prices from other series.
  const columns = columnsOf(data);
  if (!columns.some(({ ours }) => ours === 'close')) return seriesDraft(`{format: csv, path: ${quoted}}`);
  const renamed = columns.filter(({ ours, name }) => ours !== undefined && ours !== name);
  const names = renamed.map(({ ours, name }) => `${ours}: ${JSON.stringify(name)}`).join(', ');
  return pricesDraft('csv', quoted, data, renamed.length === 0 ? '' : `, columns: {${names}}`);
}

/** What else vendors call the columns of prices. */
const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  date: ['day', 'datetime', 'time', 'timestamp'],
  symbol: ['ticker', 'instrument', 'code', 'stock'],
  open: [],
  high: [],
  low: [],
  close: [],
  volume: ['vol'],
};

function columnsOf(file: string): { name: string; ours: string | undefined }[] {
  const [first] = fileLines(file);
  const text = first?.bytes?.toString('utf8') ?? '';
  const named =
    (name: string) =>
    ([ours, others]: [string, readonly string[]]) =>
      [ours, ...others].includes(name.toLowerCase());
  return text.split(',').map((cell) => {
    const name = cell.trim().replace(/^"(.*)"$/, '$1');
    return { name, ours: Object.entries(SYNONYMS).find(named(name))?.[0] };
  });
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
async function pricesDraft(format: string, quoted: string, path: string, columns = ''): Promise<Draft> {
  const { dataSchema, openPanel } = await import('../forecast/formats/index.js');
  const { parse } = await import('yaml');
  const text = `{format: ${format}, path: ${quoted}${columns}}`;
  const { calendar } = (await openPanel(dataSchema().parse(parse(text)), { kind: 'ohlcv', window: 1 })).panel;
  const border = (share: number) => Math.floor(share * calendar.length);
  const [validation, test] = [border(0.6), border(0.8)];
  if (calendar.length < 100) {
    throw new InputError(`it has ${calendar.length} days, expected 100 or more`, { file: path });
  }
  const days = (first: number, end: number) => [calendar[first], calendar[end - 1]] as const;
  const window = calendar.length < 500 ? 10 : 60;
  const split = {
    train: days(window, validation),
    validation: days(validation, test),
    test: days(test, calendar.length),
  };
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
