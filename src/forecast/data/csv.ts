import { createReadStream, readdirSync, statSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { CsvError, parse } from 'csv-parse';
import { InputError } from '../../errors.js';
import { fileError, writeFileAtomic } from '../../files.js';
import { formatMembership } from './membership.js';
import { Notes } from './notes.js';
import { FIELDS, type Field, type Panel } from './panel.js';
import { type Columns, findColumns, RowTable } from './rows.js';
import type { DataSource, Reading } from './source.js';

/**
 * Reads prices from CSV: one long file with the columns date, symbol, open, high, low, close, volume (and vwap) in any
 * order, or a folder with a file for each stock, named after it. An empty cell or `NaN` is a missing value.
 */
export async function readCsv(source: DataSource): Promise<Reading> {
  const notes = new Notes();
  const table = new TableInput(source, notes);
  if (isFolder(source.path)) {
    const files = readdirSync(source.path)
      .filter((name) => extname(name).toLowerCase() === '.csv')
      .sort();
    if (files.length === 0) throw new InputError('there is no CSV file in this folder', { file: source.path });
    for (const name of files) await table.read(join(source.path, name), basename(name, extname(name)));
  } else {
    await table.read(source.path, undefined);
  }
  return table.finish();
}

/**
 * Writes a panel as one long CSV file that reads back to the same panel, bit for bit (the index, when there is one, as
 * rows with a close alone), and its membership as a file in qlib's form.
 */
export function writeCsv(panel: Panel, file: string, membersFile: string): void {
  writeFileAtomic(file, csvLines(panel));
  writeFileAtomic(membersFile, formatMembership(panel));
}

/** The shortest decimal that reads back to the same float32; empty for NaN. */
export function formatFloat32(x: number): string {
  if (Number.isNaN(x)) return '';
  if (Number.isInteger(x)) return String(x);
  // 9 significant digits always identify a float32. Both m and 10^e are exact, so m / 10^e is the double next to the
  // decimal m·10⁻ᵉ: what the reader will get, and what String prints as that decimal.
  const magnitude = Math.floor(Math.log10(Math.abs(x)));
  for (let digits = 6; digits <= 9; digits++) {
    const power = POWERS[digits - 1 - magnitude];
    if (power === undefined) break;
    const decimal = Math.round(x * power) / power;
    if (Math.fround(decimal) === x) return String(decimal);
  }
  return String(Number(x.toPrecision(9)));
}

/** The powers of ten that are exact in a double. */
const POWERS = Array.from({ length: 23 }, (_, e) => Number(`1e${e}`));

function* csvLines(panel: Panel): Generator<string> {
  const { calendar, symbols, fields, values, index } = panel;
  yield `date,symbol,${fields.join(',')}\n`;
  for (let day = 0; day < calendar.length; day++) {
    const lines: string[] = [];
    if (index !== undefined && !Number.isNaN(index.close[day]!)) {
      const cells = fields.map((field) => (field === 'close' ? formatFloat32(index.close[day]!) : ''));
      lines.push(`${calendar[day]},${quoted(index.symbol)},${cells.join(',')}\n`);
    }
    for (let stock = 0; stock < symbols.length; stock++) {
      const at = (day * symbols.length + stock) * fields.length;
      const cells = Array.from(values.subarray(at, at + fields.length), formatFloat32);
      if (cells.some((cell) => cell !== ''))
        lines.push(`${calendar[day]},${quoted(symbols[stock]!)},${cells.join(',')}\n`);
    }
    yield lines.join('');
  }
}

function quoted(symbol: string): string {
  return /[",\r\n]|^\s|\s$/.test(symbol) ? `"${symbol.replaceAll('"', '""')}"` : symbol;
}

/** Feeds CSV files into one table of rows. */
class TableInput {
  readonly #source: DataSource;
  readonly #notes: Notes;
  #table: RowTable | undefined;
  #fields: readonly Field[] = FIELDS;

  constructor(source: DataSource, notes: Notes) {
    this.#source = source;
    this.#notes = notes;
  }

  finish(): Reading {
    if (this.#table === undefined)
      throw new InputError('the file is empty, expected a header line', { file: this.#source.path });
    return this.#table.finish();
  }

  /** @param stock the symbol of every row, when the file has no column of its own for it */
  async read(file: string, stock: string | undefined): Promise<void> {
    let columns: Columns | undefined;
    let row: readonly string[] = [];
    let line = 0;
    const value = (f: number): number => number(row[columns!.at[f]!]!, columns!.fields[f]!, file, line);
    const parser = parse({
      bom: true,
      delimiter: this.#source.delimiter ?? ',',
      skip_empty_lines: true,
      on_record: (record: string[], { lines }) => {
        row = record;
        line = lines;
        if (columns === undefined) {
          columns = findColumns(record, this.#source, stock === undefined, file, line);
          this.#open(columns, file);
        } else {
          const symbol = columns.symbol < 0 ? stock! : row[columns.symbol]!.trim();
          this.#table!.add(row[columns.date]!, symbol, value, file, line);
        }
        return null;
      },
    });
    try {
      // Every record is taken by on_record and none is left to read: let the empty output flow, or the end never comes.
      parser.resume();
      await pipeline(createReadStream(file, { highWaterMark: 1 << 18 }), parser);
    } catch (error) {
      throw csvFault(error, file);
    }
    if (columns === undefined) throw new InputError('the file is empty, expected a header line', { file });
  }

  #open(columns: Columns, file: string): void {
    if (this.#table === undefined) {
      this.#fields = columns.fields;
      this.#table = new RowTable(this.#source, columns.fields, this.#notes);
    } else if (columns.fields.length !== this.#fields.length) {
      throw new InputError('some files of the folder have a vwap column and some have none', { file, line: 1 });
    }
  }
}

/** Decimal or scientific notation; what JavaScript would also take (0x1f, 1_000, blanks) is not a number in a table. */
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

function number(text: string, field: Field, file: string, line: number): number {
  const x = Number(text);
  if (x > 0 && x < Number.POSITIVE_INFINITY && NUMBER.test(text)) return x;
  const trimmed = text.trim();
  if (trimmed === '' || /^nan$/i.test(trimmed)) return Number.NaN;
  if (!NUMBER.test(trimmed)) throw new InputError(`"${text.slice(0, 80)}" is not a number`, { file, line, key: field });
  return Number(trimmed);
}

function csvFault(error: unknown, file: string): unknown {
  if (error instanceof InputError) return error;
  if (error instanceof CsvError) {
    const line = typeof error.lines === 'number' ? error.lines : undefined;
    return new InputError(`not a well-formed CSV row: ${error.message}`, { file, line });
  }
  return fileError(error, 'read', file);
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (error) {
    throw fileError(error, 'read', path);
  }
}
