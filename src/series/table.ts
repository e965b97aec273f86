import { CsvError, parse } from 'csv-parse/sync';
import { InputError } from '../errors.js';
import { readBytes } from '../files.js';

/** A series of several columns, in the order of time. */
export interface Table {
  /** Names of the columns, the date left out. */
  readonly names: readonly string[];
  /** [column][row] */
  readonly columns: readonly Float64Array[];
  /** The dates as they stand in the file. */
  readonly dates: readonly string[];
  /** Missing cells, filled with the value of the row before. */
  readonly filled: number;
}

export interface TableSource {
  readonly path: string;
  /** Number that stands for a missing value. Default: none does. */
  readonly missing?: number;
}

/**
 * Reads a CSV file with a line of names. The date is in the first column whose first cell is one; it must not go back
 * from one row to the next.
 */
export function readTable({ path: file, missing }: TableSource): Table {
  const [header = [], ...rows] = cellsOf(file);
  if (rows.length === 0) throw new InputError('expected a line of names and rows of numbers below it', { file });
  const date = rows[0].findIndex((cell) => momentOf(cell) !== undefined);
  if (date < 0) throw new InputError('expected a column of dates such as 2016-07-01 00:00', { file, line: 2 });
  const others = [...header.keys()].filter((column) => column !== date);
  if (others.length === 0) throw new InputError('expected a column of numbers beside the date', { file, line: 1 });

  const columns = others.map(() => new Float64Array(rows.length));
  let [before, filled] = [Number.NEGATIVE_INFINITY, 0];
  for (const [row, cells] of rows.entries()) {
    const line = row + 2;
    if (cells.length !== header.length) {
      throw new InputError(`expected ${header.length} cells, found ${cells.length}`, { file, line });
    }
    const moment = momentOf(cells[date]);
    if (moment === undefined || moment < before) {
      const found = JSON.stringify(cells[date]);
      throw new InputError(`expected a date that is not before that of the row above, found ${found}`, {
        file,
        line,
        key: header[date],
      });
    }
    before = moment;
    for (const [c, column] of others.entries()) {
      const value = cells[column] === '' ? Number.NaN : Number(cells[column]);
      if (Number.isFinite(value) && value !== missing) {
        columns[c][row] = value;
        continue;
      }
      if (row === 0 || (cells[column] !== '' && value !== missing)) {
        const found = JSON.stringify(cells[column]);
        throw new InputError(`expected a number, found ${found}`, { file, line, key: header[column] });
      }
      columns[c][row] = columns[c][row - 1];
      filled++;
    }
  }
  return { names: others.map((column) => header[column]), columns, dates: rows.map((cells) => cells[date]), filled };
}

function cellsOf(file: string): string[][] {
  const bytes = readBytes(file);
  try {
    return parse(decoded(bytes), { bom: true, trim: true, skip_empty_lines: true, relax_column_count: true });
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    throw new InputError(`this is not CSV: ${error.message}`, { file, line: error.lines as number | undefined });
  }
}

/** UTF-8, or else Latin-1: names of columns have units in them, such as °C. */
function decoded(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return Buffer.from(bytes).toString('latin1');
  }
}

const DATE = /^(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?Z?)?$/;

/** Milliseconds, without a time zone; undefined if it is no date. */
function momentOf(text: string): number | undefined {
  const [found, year, month, day, hour = 0, minute = 0, second = 0] = DATE.exec(text) ?? [];
  if (found === undefined) return undefined;
  return Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second));
}
