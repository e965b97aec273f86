import { isDeepStrictEqual } from 'node:util';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { InputError } from '../errors.js';
import { writeFileAtomic } from '../files.js';
import type { ForecastConfig } from './config.js';
import { firstDayFrom, lastDayUntil, samplesBetween } from './data/index.js';
import { forecastsOf, openForecaster } from './forecaster.js';
import type { Note } from './formats/format.js';
import { type OtherData, openPanel } from './formats/index.js';
import { neutralForecasts, neutralisation } from './neutralise.js';
import { requireFinite } from './scores.js';

/** Which days to forecast, with which data. */
export interface ForecastOptions extends OtherData {
  /** The day to forecast. Default: the last day of the data. */
  readonly date?: string;
  /** First and last of many days to forecast, instead of `date`. Default: the ends of the data. */
  readonly from?: string;
  readonly to?: string;
  /** What to take out of the forecasts, instead of what `problem.neutralise` of the run says. */
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
  /** What was missing to neutralise them. */
  readonly notes: readonly Note[];
}

/** Forecasts the members of the market that traded on some days, which may lie after all that the run has seen. */
export async function forecastDays(run: string, options: ForecastOptions = {}): Promise<Forecasts> {
  const forecaster = await openForecaster(run, options.threads);
  const { config } = forecaster;
  try {
    // The index serves backtests alone; new prices need not hold it.
    const data = options.data === undefined ? config.data : { ...config.data, index: undefined };
    const neutral = neutralisation(config.neutralise, options.neutralise);
    const isOwn = isDeepStrictEqual(neutral, config.neutralise);
    const reading = { run: isOwn ? run : undefined, group: neutral?.group };
    const { panel, cleaned } = await openPanel(data, config.features, options, reading);
    const [first, last] = wantedDays(panel.calendar, options, config.features.window);
    const samples = samplesBetween(panel, first, last);
    if (samples.length === 0) throw new InputError(`no stock of the market traded on ${panel.calendar[last]}`);
    const started = performance.now();
    const { forecasts: predicted, spread } = await forecastsOf(forecaster, cleaned, samples);
    const milliseconds = performance.now() - started;
    requireFinite(predicted);
    const { forecasts, notes } =
      neutral === null ? { forecasts: predicted, notes: [] } : neutralForecasts(panel, samples, predicted, neutral);
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
  if (many && date !== undefined) throw new InputError('means nothing beside --from or --to', { key: '--date' });
  if (!many) {
    const day = date === undefined ? calendar.length - 1 : calendar.indexOf(date);
    if (day < 0) throw new InputError(`${date} is not a trading day of ${held}`, { key: '--date' });
    requireHistory(calendar, day, window, '--date');
    return [day, day];
  }
  const first = from === undefined ? window - 1 : firstDayFrom(calendar, from);
  const last = to === undefined ? calendar.length - 1 : lastDayUntil(calendar, to);
  if (first > last) throw new InputError(`there is no trading day between them in ${held}`, { key: '--from, --to' });
  requireHistory(calendar, first, window, '--from');
  return [first, last];
}

function requireHistory(calendar: readonly string[], day: number, window: number, key: string): void {
  if (day + 1 >= window) return;
  throw new InputError(`${calendar[day]} has ${day} days before it, expected ${window - 1} or more`, { key });
}

/** Writes forecasts, a row a stock and day, as CSV or Parquet, as the name says; with their spread where there is one. */
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
 * cell or a null. A column `date` is one of timestamps in Parquet.
 */
export function writeTable(path: string, columns: Readonly<Record<string, Column>>): void {
  if (/\.(parquet|pq)$/i.test(path)) writeFileAtomic(path, parquetBytes(columns));
  else if (/\.csv$/i.test(path)) writeFileAtomic(path, csvLines(columns));
  else throw new InputError('the name tells no format: expected *.csv or *.parquet', { file: path });
}

function parquetBytes(columns: Readonly<Record<string, Column>>): Uint8Array {
  const columnData = Object.entries(columns).map(([name, column]) => {
    const data = Array.from<string | number>(column as ArrayLike<string | number>);
    if (name === 'date')
      return { name, data: data.map((date) => new Date(utc(String(date)))), type: 'TIMESTAMP' as const };
    if (typeof data[0] === 'string') return { name, data, type: 'STRING' as const };
    const known = data.map((x) => (Number.isNaN(x) ? null : x));
    const isWhole = name === 'rank';
    return { name, data: known, type: isWhole ? ('INT32' as const) : ('DOUBLE' as const) };
  });
  return new Uint8Array(parquetWriteBuffer({ columnData }));
}

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
