import { InputError } from '../../errors.js';
import { saveDataSummary } from '../../run/index.js';
import { rowsAt } from '../../schedule/index.js';
import { datesOf, type ForecastConfig, horizonsOf } from '../config.js';
import type { Note } from '../formats/format.js';
import { openPanel } from '../formats/index.js';
import { parseDay, type SplitDates, splitSamples } from './calendar.js';
import { type FeatureSpec, gatherFeatures, type Layout, prepareWindows } from './features.js';
import { type LabelSpec, labelledSamples, labelReach, labelTable } from './labels.js';
import { fitNormaliser, type Normaliser } from './normaliser.js';
import { chunks, dayChunks, fieldOffset, filterSamples, type PricePanel, type Samples, summarise } from './panel.js';

/** Samples and the labels of all their tasks. */
export interface Part {
  readonly samples: Samples;
  /** [samples, K], as used in training; NaN if unknown. */
  readonly labels: Float32Array;
}

/** Everything a problem needs from its data. */
export interface ForecastData {
  /** Original prices, for scores and backtests. */
  readonly panel: PricePanel;
  /** What the model sees and is trained on: the same, or a copy without moves beyond `data.maxMove`. */
  readonly cleaned: PricePanel;
  /** Notes from reading the data. */
  readonly notes: readonly Note[];
  readonly horizons: readonly number[];
  /** Index of the main task among the horizons. */
  readonly main: number;
  readonly features: FeatureSpec;
  /** Fitted on the training part. */
  readonly normaliser: Normaliser;
  /** Every sample has all labels. */
  readonly train: Part;
  readonly validation: Part;
  /** The part of the validation data reserved for schedulers; undefined: none. */
  readonly reward?: Part;
  readonly test: Part;
  /** Stocks whose main labels are stale in training; undefined: none. */
  readonly stale?: StaleStocks;
  /** Caches the data in a run folder, if reading takes long. */
  keep(run: string): void;
}

/** Reads the data that a configuration names and cuts them into parts, features and labels. */
export async function openForecastData(config: ForecastConfig): Promise<ForecastData> {
  const horizons = horizonsOf(config);
  const main = horizons.indexOf(config.main);
  if (main < 0) {
    throw new InputError(`${config.main} is not among the tasks ${horizons.join(', ')}`, { key: 'problem.main' });
  }
  const dates = datesOf(config);
  const { panel, cleaned, notes, keep } = await openPanel(
    config.data,
    config.features,
    {},
    { group: config.neutralise?.group },
  );
  prepareWindows(cleaned);
  const spec = labelSpec(config);
  const { train, validation, test } = splitSamples(panel, dates, labelReach(spec));
  const short = shortHistory(panel, train, config.features.window, 'training');
  const part = (samples: Samples): Part => ({ samples, labels: labelTable(cleaned, samples, spec) });
  const stale = staleStocks(cleaned, train, config.corruption.stale);
  const ageing = { main, tasks: horizons.length, days: config.corruption.days, stocks: panel.symbols.length };
  const all = stale === undefined ? part(train) : withStaleLabels(part(train), stale, ageing);
  const training = labelledSamples(all.samples, all.labels, horizons.length);
  if (training.samples.length === 0) {
    throw new InputError('no sample has the labels of all tasks', { key: 'problem.split.train' });
  }
  const lone = loneStocks(panel, train, config.labels);
  if (config.validation.measure !== 'loss') requirePairs(validation);
  return {
    panel,
    cleaned,
    notes: [...notes.list(), ...uncovered(panel, dates), ...short, ...lone],
    horizons,
    main,
    features: config.features,
    normaliser: fitNormaliser(cleaned, config.features, train),
    train: training,
    ...validationParts(everyDays(validation, config.validation.everyDays), config.validation.reward, spec, part),
    // Needed last, and the largest: its labels are computed on demand.
    test: lazyPart(test, () => labelTable(cleaned, test, spec)),
    stale,
    keep,
  };
}

function lazyPart(samples: Samples, labelsOf: () => Float32Array): Part {
  let known: Float32Array | undefined;
  return {
    samples,
    get labels() {
      known ??= labelsOf();
      return known;
    },
  };
}

/**
 * The given share of the validation part, its first days, is for schedulers; the rest is for validation, from the first
 * day that none of the schedulers' labels reach.
 */
function validationParts(
  samples: Samples,
  share: number,
  spec: LabelSpec,
  part: (samples: Samples) => Part,
): Pick<ForecastData, 'validation' | 'reward'> {
  if (share === 0) return { validation: part(samples) };
  const days = samples.dayStarts.length - 1;
  const border = samples.day[samples.dayStarts[Math.floor(share * days)]];
  const reward = filterSamples(samples, (i) => samples.day[i] + labelReach(spec) < border);
  if (reward.length === 0) {
    throw new InputError(`a share of ${share} of ${days} validation days leaves none to learn from`, {
      key: 'problem.validation.reward',
    });
  }
  return { reward: part(reward), validation: part(filterSamples(samples, (i) => samples.day[i] >= border)) };
}

export function labelSpec(config: ForecastConfig): LabelSpec {
  return { ...config.labels, horizons: horizonsOf(config) };
}

/** Notes about parts that begin before the data or end after them. */
function uncovered({ calendar }: PricePanel, split: SplitDates): Note[] {
  const [begin, end] = [calendar[0].slice(0, 10), calendar[calendar.length - 1].slice(0, 10)];
  const found = Object.entries(split).flatMap(([part, [from, to]]) => [
    ...(isWellBefore(from, begin) ? [`${part} is from ${from} on, the data begins on ${begin}`] : []),
    ...(isWellBefore(end, to) ? [`${part} is until ${to}, the data ends on ${end}`] : []),
  ]);
  if (found.length === 0) return [];
  return [{ kind: 'end of a part of the split that the data does not cover', count: found.length, first: found[0] }];
}

/** More than holidays can explain. */
function isWellBefore(date: string, other: string): boolean {
  const [day, otherDay] = [parseDay(date), parseDay(other)];
  return day !== undefined && otherDay !== undefined && otherDay - day > HOLIDAYS;
}

const HOLIDAYS = 14;

/** Rejects a validation part without two stocks on any day, of which no correlation can be measured. */
function requirePairs({ dayStarts }: Samples): void {
  if (dayStarts.some((start, d) => start - dayStarts[d - 1] > 1)) return;
  throw new InputError('no day has two stocks, which a correlation needs: expected loss', {
    key: 'problem.validation.measure',
  });
}

/** Notes about days with one stock, which cannot be ranked. */
function loneStocks(panel: PricePanel, { dayStarts, day }: Samples, { transform }: { transform: string }): Note[] {
  const lone = [...dayStarts.subarray(0, -1)].filter((start, d) => dayStarts[d + 1] - start === 1);
  if (lone.length === 0) return [];
  if (lone.length === dayStarts.length - 1 && transform === 'rank') {
    throw new InputError(
      'the market has one stock a day, so its rank within the day says nothing: expected two stocks or more, ' +
        'labels: {transform: raw}, or a problem of the kind series',
      { key: 'problem.data' },
    );
  }
  const kind = 'day of the training part with a single stock: no rank, no correlation';
  return [{ kind, count: lone.length, first: panel.calendar[day[lone[0]]] }];
}

/**
 * Notes about windows that begin before the data, whose first days are 0 to the model: none if the part
 * begins late enough, one if some of its days do not. A part without a single full window is rejected.
 */
export function shortHistory({ calendar }: PricePanel, samples: Samples, window: number, part: string): Note[] {
  const first = samples.day[0];
  const last = samples.day[samples.length - 1];
  if (last < window - 1) {
    throw new InputError(
      `a window of ${window} days is longer than the history: the ${part} part ends on ${calendar[last]}, and the data ` +
        `begins ${last} days before, on ${calendar[0]}`,
      { key: 'problem.features.window' },
    );
  }
  if (first >= window - 1) return [];
  const kind = `day of the ${part} part with fewer than the ${window - 1} days before it that a window needs: zeros there`;
  const count = samples.dayStarts.subarray(0, -1).filter((at) => samples.day[at] < window - 1).length;
  return [{ kind, count, first: `${calendar[first]} has ${first}` }];
}

/** The samples of a part in order, in pieces that fit into memory; whole days if samples of a day interact. */
export function* piecesOf(samples: Samples, wholeDays: boolean): Generator<Int32Array> {
  yield* wholeDays ? dayChunks(samples) : chunks(samples, PIECE);
}

/** Samples of one part with their features and labels: what an update, a gradient or a forecast is computed on. */
export interface ForecastBatch {
  readonly samples: Samples;
  /** Indices of the batch's B samples among them. */
  readonly positions: Int32Array;
  /** Features in the layout of the network. */
  readonly x: Float32Array;
  /** Labels of all their tasks, [B, K]; NaN if unknown. Empty if not needed. */
  readonly labels: Float32Array;
}

/** What features are computed from. */
export type FeatureSource = Pick<ForecastData, 'cleaned' | 'features' | 'normaliser'>;

/** The batch of some samples of a part. */
export function batchAt(
  { cleaned, features, normaliser }: FeatureSource,
  { samples, labels }: Part,
  positions: Int32Array,
  layout: Layout,
): ForecastBatch {
  const x = new Float32Array(positions.length * normaliser.centre.length);
  gatherFeatures(cleaned, features, samples, positions, x, layout, normaliser);
  return { samples, positions, x, labels: rowsAt(labels, positions, labels.length / samples.length) };
}

/** Samples at a time: with twice as many, forecasting everything is 7 % faster, but each thread needs 25 MB more. */
const PIECE = 500;

function everyDays(samples: Samples, step: number): Samples {
  if (step === 1) return samples;
  const kept = new Set<number>();
  for (let d = 0; d + 1 < samples.dayStarts.length; d += step) kept.add(samples.day[samples.dayStarts[d]]);
  return filterSamples(samples, (i) => kept.has(samples.day[i]));
}

/** Which stocks have stale labels in training, and the feature `instrument` that shows it. */
export interface StaleStocks {
  /** [stock]; 1 if the main label is some days old. */
  readonly isStale: Uint8Array;
  /** [stock]; rank by volatility in the training part, from 0, the calmest, to 1. */
  readonly volatility: Float32Array;
}

/** The given share of the most volatile stocks of the training part; undefined: none. */
export function staleStocks(panel: PricePanel, train: Samples, share: number): StaleStocks | undefined {
  if (share === 0) return undefined;
  const stocks = [...new Set(train.stock)];
  const [first, last] = [train.day[0], train.day[train.length - 1]];
  const deviation = new Map(stocks.map((stock) => [stock, volatilityOf(panel, stock, first, last)]));
  stocks.sort((a, b) => deviation.get(a)! - deviation.get(b)! || a - b);
  const volatility = new Float32Array(panel.symbols.length);
  const isStale = new Uint8Array(panel.symbols.length);
  const fresh = stocks.length - Math.round(share * stocks.length);
  for (const [place, stock] of stocks.entries()) {
    volatility[stock] = place / Math.max(1, stocks.length - 1);
    if (place >= fresh) isStale[stock] = 1;
  }
  return { isStale, volatility };
}

/**
 * The part with the main label of each stale sample replaced by the one that its stock had `days` trading days before;
 * NaN if it had none. Labels of the other tasks are unchanged.
 */
export function withStaleLabels(
  { samples, labels }: Part,
  { isStale }: StaleStocks,
  options: { readonly main: number; readonly tasks: number; readonly days: number; readonly stocks: number },
): Part {
  const { main, tasks: K, days, stocks } = options;
  if (K === 1) {
    throw new InputError('expected a second task, because the labels of the main one are corrupted', {
      key: 'problem.tasks',
    });
  }
  const places = new Map(Array.from(samples.day, (day, i) => [day * stocks + samples.stock[i], i]));
  const stale = labels.slice();
  for (let i = 0; i < samples.length; i++) {
    if (isStale[samples.stock[i]] === 0) continue;
    const before = places.get((samples.day[i] - days) * stocks + samples.stock[i]);
    stale[i * K + main] = before === undefined ? Number.NaN : labels[before * K + main];
  }
  return { samples, labels: stale };
}

/** Standard deviation of the daily returns; 0 if fewer than two are known. */
function volatilityOf(panel: PricePanel, stock: number, first: number, last: number): number {
  const { values, fields, symbols } = panel;
  const close = fieldOffset(panel, 'close');
  const closeAt = (day: number) => values[(day * symbols.length + stock) * fields.length + close];
  let [count, sum, squares] = [0, 0, 0];
  for (let day = first + 1; day <= last; day++) {
    const move = closeAt(day) / closeAt(day - 1) - 1;
    if (!Number.isFinite(move)) continue;
    count++;
    sum += move;
    squares += move * move;
  }
  return count < 2 ? 0 : Math.sqrt(Math.max(0, squares / count - (sum / count) ** 2));
}

/**
 * Writes a summary of a run's data and the notes from reading it to `data.json` in its folder, and the data
 * to a cache, so that the run's forecasts need not read them again.
 */
export function writeDataSummary(folder: string, data: ForecastData): void {
  const { panel, notes, horizons, main, features, train, validation, test } = data;
  const summary = {
    panel: summarise(panel),
    features,
    horizons,
    main: horizons[main],
    parts: {
      train: extent(panel, train.samples),
      validation: extent(panel, validation.samples),
      test: extent(panel, test.samples),
    },
    notes,
    symbols: panel.symbols,
  };
  saveDataSummary(folder, summary);
  data.keep(folder);
}

function extent({ calendar }: PricePanel, { length, day, dayStarts }: Samples) {
  return { samples: length, days: dayStarts.length - 1, first: calendar[day[0]], last: calendar[day[length - 1]] };
}
