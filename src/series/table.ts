import { z } from 'zod';
import { csvNumber, readCsvTable } from '../csv.js';
import { InputError } from '../errors.js';
import { Random } from '../random.js';

/** A series of several columns, in the order of time. */
export interface SeriesTable {
  /** Names of the columns, the date left out. */
  readonly names: readonly string[];
  /** [column][row] */
  readonly columns: readonly Float64Array[];
  /** The dates as written in the file. */
  readonly dates: readonly string[];
  /** Missing cells, filled with the value of the previous row. */
  readonly filled: number;
}

/**
 * Describes a source of series data: configurations, `configs/reference.yaml` and the JSON Schema read it.
 * To add your own, write a description and a line in `tableFormats`.
 */
export interface TableFormat<S extends TableSchema = TableSchema> {
  /** Its keys in a configuration, with their defaults. */
  readonly schema: S;
  /** The name of its data if it generates them. Default: it reads them. */
  readonly madeUp?: string;
  /** Reads the table. */
  read(source: z.output<S>): SeriesTable;
}

export type TableSchema = z.ZodObject<{ format: z.ZodLiteral<string> }, z.core.$strict>;

/** Checks a description against its schema's type; the list holds descriptions of any schema. */
export function tableFormat<S extends TableSchema>(format: TableFormat<S>): TableFormat<S> & TableFormat {
  return format as TableFormat<S> & TableFormat;
}

const csvSchema = z.strictObject({
  format: z.literal('csv').describe('A CSV file: a header line, then a row for each time, with a date in one column.'),
  path: z
    .string()
    .min(1)
    .meta({ examples: ['data/ETTh1.csv'] })
    .describe('The file.'),
  target: z.string().min(1).optional().describe('Column to forecast. Default: the last.'),
  missing: z
    .number()
    .optional()
    .describe(
      'Number that marks a missing value; it, empty cells and NaN, null, None, NA, N/A or a dot are filled with the previous value.',
    ),
});

const syntheticSchema = z.strictObject({
  format: z.literal('synthetic').describe('A synthetic series: a daily cycle, a slow swing and bursts of noise.'),
  rows: z.int().min(1).max(10_000_000).default(4000).describe('Number of rows.'),
  seed: z.int().min(0).default(1).describe("Seed of the series, independent of the run's."),
});

/** Every source of series data, in the order shown to users. */
export const tableFormats: TableFormat[] = [
  tableFormat({ schema: csvSchema, read: (source) => readTable(source) }),
  tableFormat({ schema: syntheticSchema, madeUp: 'synthetic series', read: (source) => syntheticSeries(source) }),
];

/** The `data` of a configuration: the format, and the keys that its schema knows. */
export interface SeriesDataConfig {
  readonly format: string;
  /** Column to forecast. Default: the last. */
  readonly target?: string;
  readonly [key: string]: unknown;
}

/** The name of a generated series. */
export function madeUpSeries({ format }: { readonly format?: unknown }): string | undefined {
  return tableFormats.find(({ schema }) => schema.shape.format.value === format)?.madeUp;
}

export function seriesDataSchema(): z.ZodType<SeriesDataConfig> {
  const schemas = tableFormats.map(({ schema }) => schema) as [TableSchema, ...TableSchema[]];
  return z.discriminatedUnion('format', schemas).describe('Where the series comes from.');
}

export function openTable(config: SeriesDataConfig): SeriesTable {
  const format = tableFormats.find(({ schema }) => schema.shape.format.value === config.format);
  if (format === undefined) throw new InputError(`there is no format ${config.format}`, { key: 'problem.data.format' });
  return format.read(config);
}

/**
 * Reads a CSV file with a header line. The date is in the first column whose first cell is one; it must not decrease
 * from one row to the next.
 */
export function readTable({ path: file, missing }: Pick<z.output<typeof csvSchema>, 'path' | 'missing'>): SeriesTable {
  const [{ cells: header } = { cells: [] }, ...rows] = readCsvTable(file);
  if (rows.length === 0) throw new InputError('expected a header line and rows of numbers below it', { file });
  const date = rows[0].cells.findIndex((cell) => momentOf(cell) !== undefined);
  if (date < 0) throw new InputError('expected a column of dates such as 2016-07-01 00:00', { file, line: 2 });
  const others = [...header.keys()].filter((column) => column !== date);
  if (others.length === 0)
    throw new InputError('expected a column of numbers in addition to the date', { file, line: 1 });

  const columns = others.map(() => new Float64Array(rows.length));
  let [before, filled] = [Number.NEGATIVE_INFINITY, 0];
  for (const [row, { cells, line }] of rows.entries()) {
    if (cells.length !== header.length) {
      throw new InputError(`expected ${header.length} cells, found ${cells.length}`, { file, line });
    }
    const moment = momentOf(cells[date]);
    if (moment === undefined || moment < before) {
      const found = JSON.stringify(cells[date]);
      throw new InputError(`expected a date not before that of the previous row, found ${found}`, {
        file,
        line,
        key: header[date],
      });
    }
    before = moment;
    for (const [c, column] of others.entries()) {
      const value = csvNumber(cells[column]);
      if (value !== undefined && Number.isFinite(value) && value !== missing) {
        columns[c][row] = value;
        continue;
      }
      if (row === 0 || value === undefined || (!Number.isNaN(value) && value !== missing)) {
        const found = JSON.stringify(cells[column]);
        throw new InputError(`expected a number, found ${found}`, { file, line, key: header[column] });
      }
      columns[c][row] = columns[c][row - 1];
      filled++;
    }
  }
  return {
    names: others.map((column) => header[column]),
    columns,
    dates: rows.map(({ cells }) => cells[date]),
    filled,
  };
}

const DATE = /^(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?Z?)?$/;

/** Milliseconds, without a time zone; undefined if it is not a date. */
function momentOf(text: string): number | undefined {
  const [found, year, month, day, hour = 0, minute = 0, second = 0] = DATE.exec(text) ?? [];
  if (found === undefined) return undefined;
  return Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second));
}

/**
 * A synthetic hourly series with known laws; every ε is an independent standard normal number:
 *
 *     load     u_t = sin(2πt/24) + ½ sin(2πt/168) + a_t,   a_t = .9 a_{t−1} + .2 ε
 *     weather  v_t = .99 v_{t−1} + .1 ε
 *     target   y_t = .8 y_{t−1} + .2 (u_{t−6} + v_{t−12}) + σ_t ε,   σ_t = .2 in one day of four, else .05
 *
 * The target follows the load of six and the weather of twelve hours ago: the window determines what it will be, for every
 * horizon by a different mix of the same values.
 */
export function syntheticSeries(options: { readonly rows: number; readonly seed: number }): SeriesTable {
  const { rows, seed } = options;
  const random = new Random(seed).fork('series');
  const [load, weather, target] = [0, 0, 0].map(() => new Float64Array(rows));
  let drift = 0;
  for (let t = 0; t < rows; t++) {
    drift = 0.9 * drift + 0.2 * random.normal();
    load[t] = Math.sin((2 * Math.PI * t) / 24) + 0.5 * Math.sin((2 * Math.PI * t) / 168) + drift;
    weather[t] = 0.99 * (weather[t - 1] ?? 0) + 0.1 * random.normal();
    const pull = (load[t - 6] ?? 0) + (weather[t - 12] ?? 0);
    const noise = Math.floor(t / 24) % 4 === 0 ? 0.2 : 0.05;
    target[t] = 0.8 * (target[t - 1] ?? 0) + 0.2 * pull + noise * random.normal();
  }
  const begin = Date.UTC(2016, 6, 1);
  const dates = Array.from({ length: rows }, (_, t) => new Date(begin + t * 3_600_000).toISOString());
  return {
    names: ['load', 'weather', 'OT'],
    columns: [load, weather, target],
    dates: dates.map((date) => date.slice(0, 16).replace('T', ' ')),
    filled: 0,
  };
}
