import { isDeepStrictEqual } from 'node:util';
import type { SchemaElement } from 'hyparquet';
import { parquetWriteBuffer, schemaFromColumnData } from 'hyparquet-writer';
import { InputError } from '../errors.js';
import { writeFileAtomic } from '../files.js';
import { neutralised } from '../metrics/index.js';
import { type ForecastConfig, neutraliseSchema } from './config.js';
import { firstDayFrom, givenDate, lastDayUntil } from './data/calendar.js';
import { fieldOffset, type PricePanel, type Samples, samplesBetween } from './data/panel.js';
import { marketReturns } from './evaluation/backtest.js';
import { forecastsOf, openForecaster } from './forecaster.js';
import type { Note } from './formats/format.js';
import { type OtherData, openPanel } from './formats/index.js';
import { requireFinite } from './scores.js';

/** Which days to forecast, with which data. */
export interface ForecastOptions extends OtherData {
  /** The day to forecast. Default: the last day of the data. */
  readonly date?: string;
  /** First and last of many days to forecast, instead of `date`. Default: the ends of the data. */
  readonly from?: string;
  readonly to?: string;
  /** What to remove from the forecasts, instead of the run's `problem.neutralise`. */
  readonly neutralise?: ForecastConfig['neutralise'];
  /** Default 1. */
  readonly threads?: number;
}

/** The stocks of a day, the highest forecast first. */
export interface DayForecast {
  /** The last day that was seen. */
  readonly date: string;
  /** The forecast is for the return of this many days ahead. */
  readonly horizon: number;
  readonly stocks: readonly StockForecast[];
}

/** The forecast of one stock. */
export interface StockForecast {
  readonly instrument: string;
  readonly prediction: number;
  /** Of a run with several seeds: the standard deviation of their ranks, on the scale of the prediction. */
  readonly spread?: number;
}

/** The forecasts of one or many days. */
export interface Forecasts {
  readonly days: readonly DayForecast[];
  /** Time of the forecasts themselves, without reading. */
  readonly milliseconds: number;
  /** Oddities in data other than the run's own, and what was missing to neutralise the forecasts. */
  readonly notes: readonly Note[];
}

/** Forecasts the members of the market that traded on some days, which may lie after all that the run has seen. */
export async function forecastDays(run: string, options: ForecastOptions = {}): Promise<Forecasts> {
  const forecaster = await openForecaster(run, options);
  const { config } = forecaster;
  try {
    const neutral = neutralisation(config.neutralise, options.neutralise);
    const isOwn = isDeepStrictEqual(neutral, config.neutralise);
    const reading = { run: isOwn ? run : undefined, group: neutral?.group };
    const { panel, cleaned, notes: read } = await openPanel(config.data, config.features, options, reading);
    const [first, last] = wantedDays(panel.calendar, options, config.features.window);
    const samples = samplesBetween(panel, first, last);
    if (samples.length === 0) throw new InputError(`no stock of the market traded on ${panel.calendar[last]}`);
    const started = performance.now();
    const { forecasts: predicted, spread } = await forecastsOf(forecaster, cleaned, samples);
    const milliseconds = performance.now() - started;
    requireFinite(predicted);
    const { forecasts, notes: missing } =
      neutral === null ? { forecasts: predicted, notes: [] } : neutralForecasts(panel, samples, predicted, neutral);
    const notes = [
      // Those of the run's own data were reported when it was trained.
      ...(options.data === undefined ? [] : read.list()),
      ...(typeof neutral?.beta === 'number' ? absentIndex(config, panel) : []),
      ...missing,
    ];
    const { dayStarts, day, stock } = samples;
    const days = [...dayStarts.subarray(0, -1)].map((from, d) => {
      const stocks = Array.from(forecasts.subarray(from, dayStarts[d + 1]), (prediction, i) => ({
        instrument: panel.symbols[stock[from + i]],
        prediction,
        ...(spread === undefined ? {} : { spread: spread[from + i] }),
      })).sort((a, b) => b.prediction - a.prediction);
      return { date: panel.calendar[day[from]], horizon: config.main, stocks };
    });
    return { days, milliseconds, notes };
  } finally {
    await forecaster.close();
  }
}

/** Forecasts one day. */
export async function forecastDay(
  run: string,
  options: Omit<ForecastOptions, 'from' | 'to'> = {},
): Promise<DayForecast & Pick<Forecasts, 'milliseconds'>> {
  const { days, milliseconds } = await forecastDays(run, options);
  return { ...days[0], milliseconds };
}

function wantedDays(
  calendar: readonly string[],
  { date, from, to }: ForecastOptions,
  window: number,
): [number, number] {
  const held = `the data, which holds ${calendar[0]} to ${calendar.at(-1)}`;
  const many = from !== undefined || to !== undefined;
  if (many && date !== undefined) throw new InputError('has no effect with --from or --to', { key: '--date' });
  if (!many) {
    const day = date === undefined ? calendar.length - 1 : calendar.indexOf(givenDate(date, calendar, '--date'));
    if (day < 0) throw new InputError(`${date} is not a trading day of ${held}`, { key: '--date' });
    requireHistory(calendar, day, window, '--date');
    return [day, day];
  }
  const first = from === undefined ? window - 1 : firstDayFrom(calendar, givenDate(from, calendar, '--from'));
  const last = to === undefined ? calendar.length - 1 : lastDayUntil(calendar, givenDate(to, calendar, '--to'));
  if (first > last) throw new InputError(`there is no trading day between them in ${held}`, { key: '--from, --to' });
  requireHistory(calendar, first, window, '--from');
  return [first, last];
}

function requireHistory(calendar: readonly string[], day: number, window: number, key: string): void {
  if (day + 1 >= window) return;
  throw new InputError(`${calendar[day]} has ${day} days before it, expected ${window - 1} or more`, { key });
}

/** Writes forecasts, one row per stock and day, as CSV or Parquet, as the name says; with their spread if there is one. */
export function writeForecasts(path: string, days: readonly DayForecast[]): void {
  const rows = days.flatMap(({ date, stocks }) => stocks.map((stock, i) => ({ date, ...stock, rank: i + 1 })));
  writeTable(path, {
    date: rows.map(({ date }) => date),
    instrument: rows.map(({ instrument }) => instrument),
    prediction: rows.map(({ prediction }) => prediction),
    rank: rows.map(({ rank }) => rank),
    ...(rows[0].spread === undefined ? {} : { spread: rows.map(({ spread = Number.NaN }) => spread) }),
  });
}

type Column = ArrayLike<string> | ArrayLike<number>;

/**
 * Writes columns of the same length as CSV or, where the name ends in `.parquet`, as Parquet; an unknown number is an empty
 * cell or a null. The first column, `date`, has timestamps in Parquet.
 */
export function writeTable(path: string, columns: Readonly<Record<string, Column>>): void {
  if (/\.(parquet|pq)$/i.test(path)) writeFileAtomic(path, parquetBytes(columns));
  else if (/\.csv$/i.test(path)) writeFileAtomic(path, csvLines(columns));
  else throw new InputError('the name does not show the format: expected *.csv or *.parquet', { file: path });
}

function parquetBytes(columns: Readonly<Record<string, Column>>): Uint8Array {
  const columnData = Object.entries(columns).map(([name, column]) => {
    const data = Array.from<string | number>(column as ArrayLike<string | number>);
    if (name === 'date') return { name, data: data.map((date) => new Date(utc(String(date)))) };
    if (typeof data[0] === 'string') return { name, data, type: 'STRING' as const };
    const known = data.map((x) => (Number.isNaN(x) ? null : x));
    const isWhole = name === 'rank';
    return { name, data: known, type: isWhole ? ('INT32' as const) : ('DOUBLE' as const) };
  });
  const schema = schemaFromColumnData({ columnData, schemaOverrides: { date: TIMES } });
  const untyped = columnData.map(({ name, data }) => ({ name, data }));
  return new Uint8Array(parquetWriteBuffer({ columnData: untyped, schema }));
}

/** Times without a zone, as in the data: pandas joins them with its own only if they have none. */
const TIMES: SchemaElement = {
  name: 'date',
  type: 'INT64',
  repetition_type: 'REQUIRED',
  logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: false, unit: 'MILLIS' },
};

function utc(date: string): string {
  return date.length === 10 ? `${date}T00:00Z` : `${date}Z`;
}

function* csvLines(columns: Readonly<Record<string, Column>>): Generator<string> {
  const list = Object.values(columns);
  const rows = list[0].length;
  yield `${Object.keys(columns).join(',')}\n`;
  for (let from = 0; from < rows; from += BLOCK) {
    let text = '';
    for (let i = from; i < Math.min(rows, from + BLOCK); i++) {
      text += `${list.map((column) => csvCell(column[i])).join(',')}\n`;
    }
    yield text;
  }
}

function csvCell(value: string | number): string | number {
  if (typeof value === 'number') return Number.isNaN(value) ? '' : value;
  return /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
}

/** Rows that are written at once. */
const BLOCK = 4096;

type Neutralise = ForecastConfig['neutralise'];

/** The value of a flag or option; undefined: as configured; null or an empty text: nothing. */
export function neutralisation(configured: Neutralise, given: unknown): Neutralise {
  if (given === undefined) return configured;
  const parsed = neutraliseSchema.safeParse(given === '' ? null : given);
  if (parsed.success) return parsed.data;
  const [{ message, path }] = parsed.error.issues;
  throw new InputError(message, { key: ['--neutralise', ...path].join('.') });
}

/** Note about the index of a run that other data do not have, where it would be the market. */
export function absentIndex({ data }: Pick<ForecastConfig, 'data'>, { index }: PricePanel): Note[] {
  const { index: symbol } = data as { index?: string };
  if (symbol === undefined || index !== undefined) return [];
  const kind = 'index of the run that the data do not have: the mean of all members takes its place';
  return [{ kind, count: 1, first: symbol }];
}

/** For names of folders: `sector`, `beta-60`, `sector-beta-60`. */
export function neutralName({ group, beta }: NonNullable<Neutralise>): string {
  const slug = group?.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
  return [slug, beta && `beta-${beta}`].filter(Boolean).join('-');
}

/** Forecasts without what the groups and betas of their stocks explain, day by day, and what was missing for that. */
export function neutralForecasts(
  panel: PricePanel,
  samples: Samples,
  forecasts: Float32Array,
  wanted: NonNullable<Neutralise>,
): { readonly forecasts: Float32Array; readonly notes: readonly Note[] } {
  const { group, beta } = wanted;
  const groups = group === undefined ? undefined : columnOf(panel, samples, group);
  const betas = beta === undefined ? undefined : betasOf(panel, samples, beta);
  const out = new Float32Array(forecasts.length);
  const { dayStarts } = samples;
  for (let d = 0; d + 1 < dayStarts.length; d++) {
    const [from, to] = [dayStarts[d], dayStarts[d + 1]];
    const exposures = { groups: groups?.subarray(from, to), betas: betas?.subarray(from, to) };
    out.set(neutralised(forecasts.subarray(from, to), exposures), from);
  }
  const missing = (values: Float32Array | undefined, kind: string): Note[] => {
    const places = [...(values ?? []).keys()].filter((i) => Number.isNaN(values![i]));
    if (places.length === 0) return [];
    const [first] = places.map((i) => `${panel.symbols[samples.stock[i]]} on ${panel.calendar[samples.day[i]]}`);
    return [{ kind, count: places.length, first }];
  };
  return {
    forecasts: out,
    notes: [
      ...missing(groups, `forecast of a stock without a ${group}: those of a day are a group of their own`),
      ...missing(betas, 'forecast of a stock without a beta, for want of returns: taken as the mean'),
    ],
  };
}

function columnOf(panel: PricePanel, { length, day, stock }: Samples, column: string): Float32Array {
  const offset = fieldOffset(panel, column);
  if (offset < 0) {
    throw new InputError(`the data has no column ${JSON.stringify(column)} to group stocks by`, {
      key: 'problem.neutralise.group',
    });
  }
  const { symbols, fields, values } = panel;
  return Float32Array.from({ length }, (_, i) => values[(day[i] * symbols.length + stock[i]) * fields.length + offset]);
}

/**
 * β of each sample: the slope of the daily returns of its stock on those of the market (the index, or the mean of the
 * members), over the days t − n + 1 … t on which both are known; NaN if they are fewer than half.
 *
 *     β = Σ (rᵢ − r̄)(mᵢ − m̄) ∕ Σ (mᵢ − m̄)²
 */
export function betasOf(panel: PricePanel, samples: Samples, days: number): Float32Array {
  const { symbols, fields, values, calendar } = panel;
  const close = fieldOffset(panel, 'close');
  const market = marketReturns(panel, 1, calendar.length - 1);
  const priceAt = (day: number, stock: number) => values[(day * symbols.length + stock) * fields.length + close];
  return Float32Array.from({ length: samples.length }, (_, i) => {
    const [t, stock] = [samples.day[i], samples.stock[i]];
    let [n, sumR, sumM, sumRM, sumMM] = [0, 0, 0, 0, 0];
    for (let day = Math.max(1, t - days + 1); day <= t; day++) {
      const r = priceAt(day, stock) / priceAt(day - 1, stock) - 1;
      if (Number.isNaN(r)) continue;
      const m = market[day - 1];
      n++;
      sumR += r;
      sumM += m;
      sumRM += r * m;
      sumMM += m * m;
    }
    const spread = sumMM - (sumM * sumM) / n;
    return n < days / 2 || !(spread > 0) ? Number.NaN : (sumRM - (sumR * sumM) / n) / spread;
  });
}
