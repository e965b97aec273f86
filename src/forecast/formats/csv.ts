import { readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { csvNumber, isCsvName, readCsvRows } from '../../csv.js';
import { InputError } from '../../errors.js';
import { fileError, writeFileAtomic } from '../../files.js';
import { FIELDS, type PricePanel } from '../data/panel.js';
import {
  dataFormat,
  fillSource,
  formatMembership,
  GroupNumbers,
  Notes,
  type ReaderOptions,
  type Reading,
  type ReadOptions,
  tableKeys,
} from './format.js';
import { type Columns, findColumns, RowTable } from './rows.js';

const schema = z.strictObject({
  format: z.literal('csv').describe('A CSV file, or a folder with a file per stock; also .csv.gz.'),
  ...tableKeys,
  delimiter: z.string().length(1).default(',').describe('Character between two cells.'),
});

type CsvSource = z.output<typeof schema>;

export const csv = dataFormat({
  schema,
  title: 'CSV',
  recognises: (path, isFolder) => isFolder || isCsvName(path),
  read,
  files: (source) => [...csvFiles(source.path), ...(source.members === undefined ? [] : [source.members])],
});

/** Reads prices from a CSV file or a folder of them. */
export function readCsv(source: ReaderOptions<typeof schema>, options: ReadOptions = {}): Promise<Reading> {
  return read(fillSource(csv, source), options);
}

/**
 * Reads prices from CSV: one long file with the columns date, symbol, open, high, low, close, volume (and vwap) in any
 * order, or a folder with a file for each stock, named after it if no column `symbol` or `name` has its code. Files
 * may be gzipped. An empty cell, `NaN`, `null`, `None`, `NA`, `N/A` or `.` is a missing value; an empty file of a folder is
 * noted and left out.
 */
async function read(source: CsvSource, options: ReadOptions): Promise<Reading> {
  const table = new TableInput(source, options);
  const isOne = !isFolder(source.path);
  for (const file of csvFiles(source.path)) {
    await table.read(file, isOne ? undefined : basename(file).replace(/\.csv(\.gz)?$/i, ''));
  }
  return table.finish();
}

/** The CSV file itself, or the files of a folder. */
export function csvFiles(path: string): readonly string[] {
  if (!isFolder(path)) return [path];
  const names = readdirSync(path).filter(isCsvName).sort();
  if (names.length === 0) throw new InputError('there is no CSV file in this folder', { file: path });
  return names.map((name) => join(path, name));
}

/**
 * Writes a panel as one long CSV file that reads back to the same panel, bit for bit (the index, when there is one, as
 * rows with only a close), and its membership as a file in qlib's form.
 */
export function writeCsv(panel: PricePanel, file: string, membersFile: string): void {
  writeFileAtomic(file, csvLines(panel));
  writeFileAtomic(membersFile, formatMembership(panel));
}

/** The shortest decimal that reads back to the same float32; empty for NaN. */
export function formatFloat32(x: number): string {
  if (Number.isNaN(x)) return '';
  if (Number.isInteger(x)) return String(x);
  // 9 significant digits always identify a float32. Both m and 10^e are exact, so m / 10^e is the double nearest to the
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

function* csvLines(panel: PricePanel): Generator<string> {
  const { calendar, symbols, fields, values, index } = panel;
  yield `date,symbol,${fields.join(',')}\n`;
  for (let day = 0; day < calendar.length; day++) {
    const lines: string[] = [];
    if (index !== undefined && !Number.isNaN(index.close[day])) {
      const cells = fields.map((field) => (field === 'close' ? formatFloat32(index.close[day]) : ''));
      lines.push(`${calendar[day]},${quoted(index.symbol)},${cells.join(',')}\n`);
    }
    for (let stock = 0; stock < symbols.length; stock++) {
      const at = (day * symbols.length + stock) * fields.length;
      const cells = Array.from(values.subarray(at, at + fields.length), formatFloat32);
      if (cells.some((cell) => cell !== ''))
        lines.push(`${calendar[day]},${quoted(symbols[stock])},${cells.join(',')}\n`);
    }
    yield lines.join('');
  }
}

function quoted(symbol: string): string {
  return /[",\r\n]|^\s|\s$/.test(symbol) ? `"${symbol.replaceAll('"', '""')}"` : symbol;
}

/** Feeds CSV files into one table of rows. */
class TableInput {
  private readonly notes = new Notes();
  private readonly groups = new GroupNumbers();
  private table: RowTable | undefined;
  private fields: readonly string[] = FIELDS;

  constructor(
    private readonly source: CsvSource,
    private readonly options: ReadOptions,
  ) {}

  finish(): Reading {
    if (this.table === undefined)
      throw new InputError('the file is empty, expected a header line', { file: this.source.path });
    return this.table.finish();
  }

  /** @param stock the symbol of every row of a file in a folder, if the file has no column for it */
  async read(file: string, stock: string | undefined): Promise<void> {
    let columns: Columns | undefined;
    let row: readonly string[] = [];
    let [line, rows] = [0, 0];
    const value = (f: number): number => {
      const cell = row[columns!.at[f]];
      const x = csvNumber(cell);
      const isGroup = this.options.group !== undefined && columns!.fields[f] === this.options.group;
      if (isGroup) return Number.isNaN(x) ? Number.NaN : this.groups.of(cell.trim());
      if (x !== undefined) return x;
      throw new InputError(`"${cell.slice(0, 80)}" is not a number`, { file, line, key: columns!.fields[f] });
    };
    await readCsvRows(file, this.source.delimiter, (cells, at) => {
      row = cells;
      line = at;
      if (columns === undefined) {
        const header = { names: cells, needsSymbol: stock === undefined, file, line };
        columns = findColumns(header, this.source, this.options, this.notes);
        this.open(columns, file);
        return;
      }
      rows++;
      const symbol = columns.symbol < 0 ? stock! : row[columns.symbol].trim();
      this.table!.add(row[columns.date], symbol, value, file, line);
    });
    if (stock !== undefined && rows === 0) this.notes.add('file of the folder without any row left out', file);
    else if (columns === undefined) throw new InputError('the file is empty, expected a header line', { file });
  }

  private open(columns: Columns, file: string): void {
    if (this.table === undefined) {
      this.fields = columns.fields;
      this.table = new RowTable(this.source, columns.fields, this.notes, this.options);
    } else if (columns.fields.length !== this.fields.length) {
      throw new InputError('some files of the folder have a vwap column and some have none', { file, line: 1 });
    }
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (error) {
    throw fileError(error, 'read', path);
  }
}
