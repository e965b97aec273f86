import { z } from 'zod';
import { InputError } from '../../errors.js';
import { readText } from '../../files.js';
import { parseConfig } from '../../run/index.js';
import { firstDayFrom, formatDay, lastDayUntil, parseDay } from '../data/calendar.js';
import { isPrice, type PricePanel } from '../data/panel.js';

/**
 * Describes a data format: the `data` of configurations, command-line help, `configs/reference.yaml` and
 * the JSON Schema read it. A format is one file that exports a description, and a line in the list of `index.ts`.
 */
export interface DataFormat<S extends FormatSchema = FormatSchema> {
  /** Its keys in a configuration, with their defaults, which are defined nowhere else. */
  readonly schema: S;
  /** For display, as in "prices as a CSV file". */
  readonly title: string;
  /** The name of its data if it generates them. Default: it reads them. */
  readonly madeUp?: string;
  /** Whether a path given without a format is one of these. Default: never. */
  recognises?(path: string, isFolder: boolean): boolean;
  /** Reads the data. */
  read(source: z.output<S>, options: ReadOptions): Reading | Promise<Reading>;
  /**
   * All files that a reading depends on, for formats that are worth caching in a run folder.
   * `cleaned` must be the panel with at most different values. Default: readings are not cached.
   */
  files?(source: z.output<S>): readonly string[];
}

/** What a run needs besides prices. */
export interface ReadOptions {
  /** Columns of numbers that are features of the model. Default: none. */
  readonly factors?: readonly string[];
  /** A column with groups of stocks: in the panel, a number for each group. Default: none. */
  readonly group?: string;
  /** Names of these columns in the data, if they differ. Default: the same. */
  readonly named?: Readonly<Record<string, string>>;
  /** Whether the index may be missing from the data, as from data other than a run's own. Default: that is an error. */
  readonly indexIsOptional?: boolean;
}

/** Columns that a reading has besides prices, in the order of the panel. */
export function extraColumns({ factors = [], group }: ReadOptions): readonly string[] {
  return group === undefined || factors.includes(group) ? factors : [...factors, group];
}

/** Numbers for the names of groups, from 0, in order of first occurrence. */
export class GroupNumbers {
  private readonly numbers = new Map<string, number>();

  of(name: string): number {
    const number = this.numbers.get(name) ?? this.numbers.size;
    this.numbers.set(name, number);
    return number;
  }
}

export type FormatSchema = z.ZodObject<{ format: z.ZodLiteral<string> }, z.core.$strict>;

/** Options of a reader: the keys of its schema without the name of the format. */
export type ReaderOptions<S extends FormatSchema> = Omit<z.input<S>, 'format'>;

/** Checks a description against its schema's type; the list holds descriptions of any schema. */
export function dataFormat<S extends FormatSchema>(format: DataFormat<S>): DataFormat<S> & DataFormat {
  return format as DataFormat<S> & DataFormat;
}

/** The options with the schema's defaults filled in; keys that another format has and this one does not are left out. */
export function fillSource<S extends FormatSchema>({ schema }: { readonly schema: S }, given: object): z.output<S> {
  const known = Object.entries(given).filter(([key, value]) => key in schema.shape && value !== undefined);
  const values = { ...Object.fromEntries(known), format: schema.shape.format.value };
  const result = schema.safeParse(values);
  if (result.success) return result.data;
  return parseConfig(schema, values, (given as { path?: string }).path ?? 'data');
}

/** The prices, and what was noticed, dropped or clipped while reading. */
export interface Reading {
  /** Original prices, for scores and backtests. */
  readonly panel: PricePanel;
  /** What a model sees: the same panel, or a copy without moves beyond `maxMove`. */
  readonly cleaned: PricePanel;
  readonly notes: Notes;
}

export const dateKey = z.string().regex(/^\d{4}-\d{2}-\d{2}$/);

/** Keys of every format that is read from files. */
export const fileKeys = {
  path: z
    .string()
    .min(1)
    .meta({ examples: ['data/cn_data'] })
    .describe('The file or folder.'),
  index: z
    .string()
    .optional()
    .describe('Code of the index that a backtest is compared with. Default: the mean of all members.'),
  start: dateKey.optional().describe('First day to read; include a window of days before the training part.'),
  end: dateKey.optional().describe('Last day to read.'),
  nonPositive: z
    .enum(['refuse', 'missing'])
    .default('refuse')
    .describe('A price of zero or less is an error, or a day without trading.'),
  maxMove: z
    .number()
    .positive()
    .lt(1)
    .nullable()
    .default(null)
    .describe(
      'Largest daily price move that the model sees, as a fraction; larger ones are clipped in its inputs and in training and validation labels, never in scores and backtests. null: any.',
    ),
};

const columnName = z.string().min(1).optional();

/** Keys of every format whose prices come in rows (date, symbol, values). */
export const tableKeys = {
  ...fileKeys,
  members: z
    .string()
    .optional()
    .describe('File of memberships with lines "CODE<tab>start<tab>end". Default: all stocks, always.'),
  columns: z
    .strictObject({
      date: columnName,
      symbol: columnName,
      open: columnName,
      high: columnName,
      low: columnName,
      close: columnName,
      adjusted: columnName.describe(
        'A close adjusted for splits and dividends, if the other prices are not: they are all rescaled to it, and the volume inversely.',
      ),
      volume: columnName.nullable().describe('null: the data has no volume.'),
      vwap: columnName,
    })
    .optional()
    .describe('Names of the columns in the data, if they differ from ours.'),
  dateOrder: z
    .enum(['ymd', 'dmy', 'mdy'])
    .default('ymd')
    .describe('How dates are written: 2020-12-31, 31/12/2020 or 12/31/2020. It is never guessed.'),
  intraday: z.boolean().default(false).describe('Bars within the day: dates have a time, 2020-12-31 10:30.'),
};

/** What the readers of files have in common. */
export type FileSource = z.output<z.ZodObject<typeof fileKeys>>;
/** What the readers of rows have in common. */
export type TableSource = z.output<z.ZodObject<typeof tableKeys>>;
/** Columns of a row of prices. */
export type ColumnName = keyof NonNullable<TableSource['columns']>;

/** The requested dates as `YYYY-MM-DD` strings that compare like dates; open ends are the extremes. */
export function dateBounds(source: Pick<FileSource, 'start' | 'end'>): { start: string; end: string } {
  for (const key of ['start', 'end'] as const) {
    const text = source[key];
    if (text !== undefined && parseDay(text) === undefined) {
      throw new InputError(`"${text}" is not a date, expected YYYY-MM-DD`, { key });
    }
  }
  const bounds = { start: source.start ?? '0000-00-00', end: source.end ?? '9999-99-99' };
  if (bounds.start > bounds.end)
    throw new InputError(`the start ${bounds.start} is after the end ${bounds.end}`, { key: 'start' });
  return bounds;
}

/**
 * Checks the values of one stock on one day in place. `cell` is in the order of `fields`. Returns false when the row
 * was treated as missing.
 * @param place called only for an error or a note, so that a good row costs no string
 */
export function acceptRow(
  cell: Float32Array,
  fields: readonly string[],
  rule: 'refuse' | 'missing',
  notes: Notes,
  place: () => { file: string; line?: number; what: string },
): boolean {
  for (let f = 0; f < fields.length; f++) {
    const x = cell[f];
    if (x >= LEAST && x <= (fields[f] === 'volume' ? MOST_VOLUME : MOST_PRICE)) continue;
    if (Number.isNaN(x) || (isFactor(fields[f]) && Number.isFinite(x))) continue;
    const { file, line, what } = place();
    const where = { file, line };
    if (x > 1 || isFactor(fields[f])) throw new InputError(`${fields[f]} of ${what} is infinite or too large`, where);
    if (fields[f] === 'volume') {
      if (x === 0) continue;
      throw new InputError(
        `volume of ${what} is ${x}, expected ${x < 0 ? 'zero' : `zero, or ${LEAST}`} or more`,
        where,
      );
    }
    if (rule === 'refuse') {
      const least = x > 0 ? `${LEAST} or more` : 'more than zero';
      const advice = `expected ${least} (nonPositive: missing takes such days as suspensions)`;
      throw new InputError(`${fields[f]} of ${what} is ${Number(x.toPrecision(3))}, ${advice}`, where);
    }
    notes.add(
      'row with a price of zero or less treated as a suspension',
      `${fields[f]} of ${what} is ${x} in ${file}${line === undefined ? '' : `:${line}`}`,
    );
    cell.fill(Number.NaN);
    return false;
  }
  return true;
}

function isFactor(field: string): boolean {
  return !isPrice(field) && field !== 'volume' && field !== 'adjusted';
}

/**
 * Plausible ranges of prices and volumes. Far beyond any market, and such that a ratio of two is a float32: smaller
 * prices lose their digits, and a move between the extremes would be infinite.
 */
const LEAST = 1e-15;
const MOST_PRICE = 1e15;
const MOST_VOLUME = 1e22;

/** A kind of note, how often it occurred, and the first one in full. */
export interface Note {
  readonly kind: string;
  readonly count: number;
  readonly first: string;
}

export function noteInWords({ kind, count, first }: Note): string {
  return `data: ${count} × ${kind} (first: ${first})`;
}

/**
 * What a reader noticed without stopping: counted by kind, with the first of each as an example, so that a
 * million odd rows are one line.
 */
export class Notes {
  private readonly found = new Map<string, { count: number; first: string }>();

  /** Counts something noticed; the first of each kind is kept as its example. */
  add(kind: string, first: string, count = 1): void {
    const note = this.found.get(kind);
    if (note === undefined) this.found.set(kind, { count, first });
    else note.count += count;
  }

  /** A note for each kind, in the order of first notice. */
  list(): Note[] {
    return [...this.found].map(([kind, note]) => ({ kind, ...note }));
  }

  /** How often this kind was noticed. */
  count(kind: string): number {
    return this.found.get(kind)?.count ?? 0;
  }

  /** One line per kind: `7 × member without prices (first: …)`. */
  summary(): string[] {
    return this.list().map(({ kind, count, first }) => `${count} × ${kind} (first: ${first})`);
  }
}

/** A stretch of days, ends included, during which a stock belongs to the market. A stock may have several. */
export interface Spell {
  readonly symbol: string;
  readonly start: string;
  readonly end: string;
  readonly line: number;
}

/** Reads a membership file in qlib's form: lines `CODE<tab>start<tab>end`. */
export function readMembership(file: string): Spell[] {
  const spells: Spell[] = [];
  const lines = readText(file).split('\n');
  for (let i = 0; i < lines.length; i++) {
    const text = lines[i].trim();
    if (text === '') continue;
    const where = { file, line: i + 1 };
    const cells = text.split('\t');
    if (cells.length !== 3 || cells[0] === '') {
      throw new InputError(`expected CODE, start and end separated by tabs, found "${text.slice(0, 80)}"`, where);
    }
    const [symbol, from, to] = cells as [string, string, string];
    const start = parseDay(from);
    const end = parseDay(to);
    if (start === undefined || end === undefined) {
      throw new InputError(`"${start === undefined ? from : to}" is not a date, expected YYYY-MM-DD`, where);
    }
    if (start > end) throw new InputError(`the spell of ${symbol} starts on ${from}, after its end ${to}`, where);
    spells.push({ symbol, start: formatDay(start), end: formatDay(end), line: i + 1 });
  }
  if (spells.length === 0) throw new InputError('the membership file names no stock', { file });
  return spells;
}

/**
 * The stocks that belong to the market on at least one day of the calendar and that the source knows, ascending, and
 * their membership mask [day][stock]. A code the source does not know is noted; it is an error when none is known.
 */
export function membersOf(
  spells: readonly Spell[],
  calendar: readonly string[],
  known: (symbol: string) => boolean,
  file: string,
  notes: Notes,
): { symbols: string[]; members: Uint8Array } {
  const unknown = new Set<string>();
  const bounds: { symbol: string; first: number; last: number }[] = [];
  for (const spell of spells) {
    if (unknown.has(spell.symbol)) continue;
    if (!known(spell.symbol)) {
      unknown.add(spell.symbol);
      notes.add('member without any prices', `${file}:${spell.line}: there is no data for ${spell.symbol}`);
      continue;
    }
    const first = firstDayFrom(calendar, spell.start);
    const last = lastDayUntil(calendar, spell.end);
    if (first <= last) bounds.push({ symbol: spell.symbol, first, last });
  }
  if (bounds.length === 0) {
    const sentence =
      unknown.size > 0
        ? `none of the stocks it names has data within the calendar; the first unknown code is ${[...unknown][0]}`
        : 'no spell meets the calendar of the data';
    throw new InputError(sentence, { file });
  }
  const symbols = [...new Set(bounds.map(({ symbol }) => symbol))].sort();
  const column = new Map(symbols.map((symbol, i) => [symbol, i]));
  const members = new Uint8Array(calendar.length * symbols.length);
  for (const { symbol, first, last } of bounds) {
    for (let day = first; day <= last; day++) members[day * symbols.length + column.get(symbol)!] = 1;
  }
  return { symbols, members };
}

/** The membership of a panel as lines of a membership file; the inverse of reading it over the panel's calendar. */
export function formatMembership(panel: PricePanel): string {
  const lines: string[] = [];
  const stocks = panel.symbols.length;
  panel.symbols.forEach((symbol, stock) => {
    for (let day = 0; day < panel.calendar.length; day++) {
      if (panel.members[day * stocks + stock] === 0) continue;
      const first = day;
      while (day + 1 < panel.calendar.length && panel.members[(day + 1) * stocks + stock] !== 0) day++;
      lines.push(`${symbol}\t${panel.calendar[first]}\t${panel.calendar[day]}\n`);
    }
  });
  return lines.join('');
}
