import type { DecodedArray } from 'hyparquet';
import { InputError } from '../../errors.js';
import { Notes } from './notes.js';
import { ParquetDecoder } from './parquet-decoder.js';
import { findColumns, RowTable } from './rows.js';
import type { DataSource, Reading } from './source.js';

/**
 * Reads prices from one long Parquet file: a row a stock and day, with the columns date (a DATE, a TIMESTAMP at midnight,
 * or text), symbol (text), open, high, low, close, volume (and vwap). A null is a missing value. The line of an error is
 * the number of the row, from 1.
 *
 * @param patience milliseconds the decoder may take for an answer, and a second more for each megabyte: decoding is some
 *   hundred times faster, but damaged bytes can keep it busy for ever
 */
export async function readParquet(source: DataSource, patience = 10_000): Promise<Reading> {
  const decoder = new ParquetDecoder(source.path, patience);
  try {
    return await readRows(source, decoder);
  } finally {
    await decoder.close();
  }
}

async function readRows(source: DataSource, decoder: ParquetDecoder): Promise<Reading> {
  const file = source.path;
  const { columns: names, ranges } = await decoder.outline();
  const columns = findColumns(names, source, true, file);
  const table = new RowTable(source, columns.fields, new Notes());
  for (const { rowStart, rowEnd } of ranges) {
    const read = async (at: number): Promise<DecodedArray> => {
      const data = await decoder.column(names[at]!, rowStart, rowEnd);
      if (data.length !== rowEnd - rowStart) {
        throw new InputError(`holds ${data.length} values for ${rowEnd - rowStart} rows`, { file, key: names[at]! });
      }
      return data;
    };
    const dates = await read(columns.date);
    const symbols = await read(columns.symbol);
    const values: DecodedArray[] = [];
    for (const at of columns.at) values.push(await read(at));
    for (let i = 0; i < rowEnd - rowStart; i++) {
      const row = rowStart + i + 1;
      const value = (f: number): number => toNumber(values[f]![i], columns.fields[f]!, file, row);
      table.add(toDate(dates[i], file, row), toSymbol(symbols[i], file, row), value, file, row);
    }
  }
  return table.finish();
}

function toNumber(x: unknown, key: string, file: string, row: number): number {
  if (typeof x === 'number') return x;
  if (typeof x === 'bigint') return Number(x);
  if (x === null || x === undefined) return Number.NaN;
  throw new InputError(`${describe(x)} is not a number`, { file, line: row, key });
}

function toDate(x: unknown, file: string, row: number): string {
  if (typeof x === 'string') return x;
  if (x instanceof Date && !Number.isNaN(x.getTime())) return x.toISOString();
  throw new InputError(`${describe(x)} is not a date`, { file, line: row, key: 'date' });
}

function toSymbol(x: unknown, file: string, row: number): string {
  if (typeof x === 'string') return x;
  if (typeof x === 'number' || typeof x === 'bigint') return String(x);
  throw new InputError(`${describe(x)} is not the code of a stock`, { file, line: row, key: 'symbol' });
}

function describe(x: unknown): string {
  return x === null || x === undefined ? 'no value' : `${JSON.stringify(x) ?? typeof x}`.slice(0, 80);
}
