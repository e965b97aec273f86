import { InputError } from '../errors.js';
import { mean } from '../metrics/index.js';
import { Random } from '../random.js';
import { type SeriesConfig, seriesHorizons } from './config.js';
import { openTable, type SeriesDataConfig, type SeriesTable } from './table.js';

/** A series split into parts, scaled by the rows and samples of the training part only. */
export interface SeriesData extends Corrupted {
  readonly names: readonly string[];
  /** Index of the column that is forecast. */
  readonly target: number;
  /** First and last date. */
  readonly dates: readonly [string, string];
  readonly filled: number;
  readonly horizons: readonly number[];
  /** Index of the main task among the horizons. */
  readonly main: number;
  readonly window: number;
  readonly step: number;
  /** Mean and deviation of each column in the training rows. */
  readonly normaliser: { readonly centre: readonly number[]; readonly scale: readonly number[] };
  /** Root mean square of y_{t+h} − y_t over the training samples, for each horizon; in units of the column. */
  readonly labelScales: readonly number[];
  /** [row][column], each column scaled to mean 0 and standard deviation 1 in training. */
  readonly rows: Float32Array;
  /** (y_{t+h} − y_t) over its scale, [row][horizon], as it is trained on; NaN if the series has ended. */
  readonly labels: Float32Array;
  /** Deviation of the target over the window that ends at the row; NaN if the window is not whole. */
  readonly spread: Float32Array;
  /** A sample is the row t at which its window ends. */
  readonly parts: Readonly<Record<PartName, Int32Array>>;
}

/** A part of the data; `reward` is the share of the validation part that rewards a scheduler. */
export type PartName = 'train' | 'reward' | 'validation' | 'test';

/** Reads the table that a configuration names and cuts it into samples. */
export function openSeries(config: SeriesConfig): SeriesData {
  return seriesData(config, openTable(config.data));
}

/** Cuts a table into the samples of all parts. */
export function seriesData(config: SeriesConfig, table: SeriesTable): SeriesData {
  const { window, step } = config;
  const horizons = seriesHorizons(config);
  const main = horizons.indexOf(config.main);
  if (main < 0) {
    throw new InputError(`${config.main} is not among the tasks ${horizons.join(', ')}`, { key: 'problem.main' });
  }
  if (config.corruption.noise > 0 && horizons.length === 1) {
    throw new InputError('expected a second task, because the labels of the main one are corrupted', {
      key: 'problem.tasks',
    });
  }
  const count = table.dates.length;
  const blocks = blocksOf(config, count);
  const parts = partsOf(config, blocks, Math.max(...horizons) * step);
  const target = targetOf(config.data, table.names);

  const inTraining = (_: number, t: number) => blocks.some(({ train, reward }) => t >= train && t < reward);
  const scaled = table.columns.map((column) => standardised(column, column.filter(inTraining)));
  const D = scaled.length;
  const rows = new Float32Array(count * D);
  for (const [c, { values }] of scaled.entries()) for (let t = 0; t < count; t++) rows[t * D + c] = values[t];

  const y = table.columns[target];
  const K = horizons.length;
  const labelScales = horizons.map((h) =>
    rootMeanSquare(Float64Array.from(parts.train, (t) => y[t + h * step] - y[t])),
  );
  const labels = new Float32Array(count * K).fill(Number.NaN);
  for (const [k, h] of horizons.entries()) {
    for (let t = 0; t + h * step < count; t++) labels[t * K + k] = (y[t + h * step] - y[t]) / labelScales[k];
  }
  const spread = Float32Array.from({ length: count }, (_, t) => {
    if (t < (window - 1) * step) return Number.NaN;
    return deviationOf(Float64Array.from({ length: window }, (_unused, n) => scaled[target].values[t - n * step]));
  });
  const data = {
    names: table.names,
    target,
    dates: [table.dates[0], table.dates[count - 1]] as const,
    filled: table.filled,
    horizons,
    main,
    window,
    step,
    normaliser: { centre: scaled.map(({ centre }) => centre), scale: scaled.map(({ scale }) => scale) },
    labelScales,
    rows,
    spread,
    parts,
  };
  return { ...data, ...corrupted(data, labels, config) };
}

/** The windows that end at the given rows, time-major [T, B, D]. */
export function windowsAt({ rows, names, window, step }: SeriesData, ends: Int32Array): Float32Array {
  const [B, D] = [ends.length, names.length];
  const x = new Float32Array(window * B * D);
  for (let i = 0; i < B; i++) {
    for (let n = 0; n < window; n++) {
      const from = (ends[i] - (window - 1 - n) * step) * D;
      x.set(rows.subarray(from, from + D), (n * B + i) * D);
    }
  }
  return x;
}

/** First row of each part of a block, and the end of the block. */
type Borders = Readonly<Record<PartName | 'end', number>>;

function blocksOf({ split, validation: { reward } }: SeriesConfig, count: number): Borders[] {
  const total = split.train + split.validation + split.test;
  if (Math.abs(total - 1) > 1e-9) {
    throw new InputError(`expected shares that sum to 1, found ${total}`, { key: 'problem.split' });
  }
  return Array.from({ length: split.blocks }, (_, block) => {
    const at = (share: number) => Math.round(((block + share) * count) / split.blocks);
    const [first, second] = [at(split.train), at(split.train + split.validation)];
    return {
      train: at(0),
      reward: first,
      validation: first + Math.round(reward * (second - first)),
      test: second,
      end: at(1),
    };
  });
}

/**
 * The samples of each part: those whose time and furthest label lie in it. The window may reach back into the part
 * before it, as it would in use, except that training windows do not reach into the test rows of the previous block.
 */
function partsOf(config: SeriesConfig, blocks: readonly Borders[], reach: number): SeriesData['parts'] {
  const back = (config.window - 1) * config.step;
  const samples = (part: PartName, from: (block: Borders) => number, to: keyof Borders, every = 1): Int32Array => {
    const ends: number[] = [];
    for (const block of blocks) for (let t = from(block); t + reach < block[to]; t += every) ends.push(t);
    if (ends.length > 0 || blocks.every((block) => block[part] === block[to])) return Int32Array.from(ends);
    throw new InputError(
      `rows ${blocks[0][part] + 1} to ${blocks[0][to]} have no sample with a window of ${back + 1} rows and labels up to ${reach} rows ahead`,
      { key: part === 'reward' ? 'problem.validation.reward' : `problem.split.${part}` },
    );
  };
  return {
    train: samples('train', ({ train }) => train + back, 'reward'),
    reward: samples('reward', ({ reward }) => Math.max(reward, back), 'validation'),
    validation: samples('validation', ({ validation }) => Math.max(validation, back), 'test', config.validation.every),
    test: samples('test', ({ test }) => Math.max(test, back), 'end'),
  };
}

function targetOf(data: SeriesDataConfig, names: readonly string[]): number {
  if (data.target === undefined) return names.length - 1;
  const index = names.indexOf(data.target);
  if (index >= 0) return index;
  throw new InputError(`there is no column ${JSON.stringify(data.target)}, expected one of ${names.join(', ')}`, {
    file: data.path as string | undefined,
    key: 'problem.data.target',
  });
}

/** A column in units of the deviation of the known values, around their mean. */
function standardised(column: Float64Array, known: Float64Array) {
  const centre = mean(known);
  const scale = deviationOf(known) || 1;
  return { centre, scale, values: column.map((value) => (value - centre) / scale) };
}

/** √ of the mean squared distance from the mean. */
function deviationOf(values: Float64Array): number {
  const centre = mean(values);
  return Math.sqrt(mean(values.map((value) => (value - centre) ** 2)));
}

/** 1 if everything is 0, since there is nothing to scale. */
function rootMeanSquare(values: Float64Array): number {
  return Math.sqrt(mean(values.map((value) => value ** 2))) || 1;
}

/** Training labels, some of them corrupted, and which: what a scheduler should find. */
export interface Corrupted {
  /** [row][horizon] */
  readonly labels: Float32Array;
  /** [row]; 1 for the samples whose main label is corrupted. */
  readonly spoilt: Uint8Array;
}

/**
 * Adds noise N(0, σ²) to the main task's labels of those training samples whose target moved most within the window:
 * the feature `spread` shows which. Labels of other tasks and of validation and test data are unchanged.
 */
function corrupted(data: Omit<SeriesData, keyof Corrupted>, labels: Float32Array, config: SeriesConfig): Corrupted {
  const { noise, share, seed } = config.corruption;
  const spoilt = new Uint8Array(data.spread.length);
  if (noise === 0) return { labels, spoilt };
  const { train } = data.parts;
  const order = [...train].sort((a, b) => data.spread[b] - data.spread[a]);
  const random = new Random(seed).fork('corruption');
  const noisy = labels.slice();
  const K = data.horizons.length;
  for (const row of order.slice(0, Math.round(share * train.length))) spoilt[row] = 1;
  for (const row of train) if (spoilt[row] === 1) noisy[row * K + data.main] += noise * random.normal();
  return { labels: noisy, spoilt };
}
