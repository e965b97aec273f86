import type { Command } from 'commander';
import { CsvError, parse } from 'csv-parse/sync';
import { z } from 'zod';
import { csvNumber } from '../csv.js';
import { InputError } from '../errors.js';
import { dailyScores, type ForecastDay, forecastScores, neutralised } from '../metrics/index.js';
import { neutraliseOption } from './flags.js';
import { readInput, type ScoreInput } from './score-input.js';
import { print } from './terminal.js';

interface ForecastFlags extends ForecastColumns {
  neutralise?: unknown;
  perDay?: boolean;
  json?: boolean;
}

/** `tcts score forecast`. */
export function registerScoreForecast(score: Command): void {
  score
    .command('forecast')
    .description('IC, ICIR, RankIC, RankICIR, MSE and z-scored MSE of a forecast')
    .argument('<file.csv>', 'a row for each date and instrument (- for standard input; also .gz)')
    .option('--date <column>', 'column of the date', 'date')
    .option('--instrument <column>', 'column of the instrument', 'instrument')
    .option('--prediction <column>', 'column of the prediction', 'prediction')
    .option('--label <column>', 'column of the label', 'label')
    .addOption(neutraliseOption("columns to neutralise the predictions of each day by: '{group: sector, beta: beta}'"))
    .option('--per-day', 'also the daily series')
    .option('--json', 'print one JSON object')
    .addHelpText(
      'after',
      `
Example:
  tcts score forecast predictions.csv --prediction score --label return --json

IC is the mean daily Pearson correlation, RankIC Spearman's, ICIR and RankICIR mean / standard deviation over days, MSE
is taken over all pairs, zMSE over per-day z-scores. An empty cell, NaN, null, None, NA, N/A or . is a missing value: its
pair is left out. days counts the days with a defined IC.`,
    )
    .action(async (path: string, flags: ForecastFlags) => {
      const days = parseForecast(await readInput(path), { ...flags, ...neutralColumns(flags.neutralise) });
      const scores = forecastScores(days);
      const daily = flags.perDay ? dailyScores(days) : undefined;
      if (flags.json) {
        print(JSON.stringify({ ...scores, daily }));
        return;
      }
      if (daily !== undefined) print(['date', 'IC', 'RankIC', 'zMSE'].join('\t'));
      for (const day of daily ?? []) print([day.date, figure(day.IC), figure(day.RankIC), figure(day.zMSE)].join('\t'));
      const { days: defined, ...figures } = scores;
      for (const [name, value] of Object.entries(figures)) print(`${name.padEnd(8)}  ${figure(value)}`);
      print(`${'days'.padEnd(8)}  ${defined}${defined === days.length ? '' : ` of ${days.length}`}`);
    });
}

function neutralColumns(given: unknown): { group?: string; beta?: string } {
  if (given === undefined || given === null) return {};
  const known = z.strictObject({ group: z.string().min(1).optional(), beta: z.string().min(1).optional() });
  const { success, data } = known.safeParse(given);
  if (success && Object.keys(data).length > 0) return data;
  throw new InputError("expected names of columns as in '{group: sector, beta: beta}'", { key: '--neutralise' });
}

function figure(value: number): string {
  return Number.isNaN(value) ? 'undefined' : value.toPrecision(6);
}

/** Which column holds what. */
export interface ForecastColumns {
  readonly date: string;
  readonly instrument: string;
  readonly prediction: string;
  readonly label: string;
  /** Group of each row, for neutral predictions. Default: none. */
  readonly group?: string;
  /** Beta of each row, for neutral predictions. Default: none. */
  readonly beta?: string;
}

/** Reads a table of predictions and labels into days, in the order of their first row. A missing value is NaN. */
export function parseForecast({ name, bytes }: ScoreInput, columns: ForecastColumns): ForecastDay[] {
  const days = new Map<string, Rows>();
  let header: string[] | undefined;
  let at: Places = { date: 0, instrument: 0, prediction: 0, label: 0 };

  const readRow = (cells: string[], line: number) => {
    const where = { file: name, line };
    if (header === undefined) {
      header = cells;
      at = findColumns(cells, columns, name);
      return;
    }
    if (cells.length !== header.length) {
      throw new InputError(`expected ${header.length} cells as in the header, found ${cells.length}`, where);
    }
    const [date, instrument] = [cells[at.date], cells[at.instrument]];
    if (date === '') throw new InputError('expected a date, found an empty cell', { ...where, key: columns.date });
    let day = days.get(date);
    if (day === undefined) {
      day = { predictions: [], labels: [], groups: [], betas: [], rows: new Map() };
      days.set(date, day);
    }
    const earlier = day.rows.get(instrument);
    if (earlier !== undefined) {
      throw new InputError(`${instrument} on ${date} is already in line ${earlier}: expected one row for each`, where);
    }
    day.rows.set(instrument, line);
    day.predictions.push(readNumber(cells[at.prediction], { ...where, key: columns.prediction }));
    day.labels.push(readNumber(cells[at.label], { ...where, key: columns.label }));
    if (at.group !== undefined) day.groups.push(cells[at.group]);
    if (at.beta !== undefined) day.betas.push(readNumber(cells[at.beta], { ...where, key: columns.beta! }));
  };

  readRows(name, bytes, readRow);
  if (days.size === 0) throw new InputError('the file has a header but no rows', { file: name });
  const { group, beta } = at;
  return Array.from(days, ([date, { predictions, labels, groups, betas }]) => {
    if (group === undefined && beta === undefined) return { date, predictions, labels };
    const exposures = {
      groups: group === undefined ? undefined : groups,
      betas: beta === undefined ? undefined : betas,
    };
    return { date, predictions: neutralised(predictions, exposures), labels };
  });
}

/** The rows of a day. */
interface Rows {
  readonly predictions: number[];
  readonly labels: number[];
  readonly groups: string[];
  readonly betas: number[];
  /** Line of each instrument. */
  readonly rows: Map<string, number>;
}

/** Where each column stands. */
type Places = Record<'date' | 'instrument' | 'prediction' | 'label', number> &
  Partial<Record<'group' | 'beta', number>>;

function readRows(name: string, bytes: Uint8Array, readRow: (cells: string[], line: number) => void): void {
  try {
    parse(decode(name, bytes), {
      skip_empty_lines: true,
      relax_column_count: true,
      trim: true,
      // The record is used here and not kept: null drops it.
      on_record: (cells: string[], { lines }) => {
        readRow(cells, lines);
        return null;
      },
    });
  } catch (error) {
    if (error instanceof CsvError) throw new InputError(`the file is not CSV: ${error.message}`, { file: name });
    throw error;
  }
}

function decode(name: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new InputError('the file is not UTF-8 text', { file: name });
  }
}

function findColumns(header: readonly string[], columns: ForecastColumns, file: string): Places {
  const find = (column: string) => {
    const place = header.indexOf(column);
    if (place === -1)
      throw new InputError(`column ${column} is missing: found ${header.join(', ')}`, { file, line: 1 });
    if (header.indexOf(column, place + 1) !== -1) {
      throw new InputError(`column ${column} appears twice in the header`, { file, line: 1 });
    }
    return place;
  };
  return {
    date: find(columns.date),
    instrument: find(columns.instrument),
    prediction: find(columns.prediction),
    label: find(columns.label),
    ...(columns.group === undefined ? {} : { group: find(columns.group) }),
    ...(columns.beta === undefined ? {} : { beta: find(columns.beta) }),
  };
}

/** Squares of larger values, and their sums, are infinite. */
const LARGEST = 1e150;

function readNumber(text: string, where: { file: string; line: number; key: string }): number {
  const value = csvNumber(text);
  if (value === undefined) throw new InputError(`expected a number or an empty cell, found ${text}`, where);
  if (Math.abs(value) > LARGEST)
    throw new InputError(`${text} is too large, expected at most ${LARGEST} in size`, where);
  return value;
}
