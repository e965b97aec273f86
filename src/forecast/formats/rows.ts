import { InputError } from '../../errors.js';
import { formatMoment, parseDay, parseMoment } from '../data/calendar.js';
import { clean } from '../data/clean.js';
import { FIELDS, type Field, type IndexSeries, isPrice } from '../data/panel.js';
import {
  acceptRow,
  type ColumnName,
  dateBounds,
  extraColumns,
  membersOf,
  type Notes,
  type Reading,
  type ReadOptions,
  readMembership,
  type TableSource,
} from './format.js';

/** Index of each of our columns in a row of the source; `symbol` is −1 if the file is the stock. */
export interface Columns {
  readonly date: number;
  readonly symbol: number;
  readonly fields: readonly string[];
  /** Position of each of `fields`, followed by that of the adjusted close if one is named. */
  readonly at: readonly number[];
}

/** What vendors call a close adjusted for splits and dividends, next to prices as quoted. */
export const ADJUSTED = /^adj(usted|\.)?[ _]?close$/i;

/** The names of a source's columns. */
export interface Header {
  readonly names: readonly string[];
  /** Whether a column has to say which stock a row is about. */
  readonly needsSymbol: boolean;
  readonly file: string;
  readonly line?: number;
}

/** Finds our columns among the source's. */
export function findColumns(
  { names, needsSymbol, file, line }: Header,
  source: TableSource,
  options: ReadOptions,
  notes: Notes,
): Columns {
  const lower = names.map((name) => name.trim().toLowerCase());
  const where = { file, line };
  const place = (wanted: string): number => {
    const at = lower.indexOf(wanted.trim().toLowerCase());
    if (at === lower.lastIndexOf(wanted.trim().toLowerCase())) return at;
    throw new InputError(`there are two columns "${wanted}"`, where);
  };
  const find = (column: ColumnName | string, required: boolean): number => {
    const mapped = source.columns?.[column as ColumnName] ?? options.named?.[column] ?? undefined;
    const wanted = mapped ?? column;
    const at = place(wanted);
    if (at >= 0 || !(required || mapped !== undefined)) return at;
    const meant = wanted === column ? '' : ` for ${column}`;
    const [mark] = names.length === 1 ? (/[;\t|]/.exec(names[0]) ?? []) : [];
    const none =
      mark !== undefined
        ? `; delimiter: ${JSON.stringify(mark)} would divide it`
        : wanted === 'volume'
          ? '; columns: {volume: null} says that the data has none'
          : '';
    throw new InputError(`there is no column "${wanted}"${meant} among ${names.join(', ')}${none}`, where);
  };
  const known: Field[] = FIELDS.filter((field) => field !== 'volume' || source.columns?.volume !== null);
  const fields = [...known, ...(find('vwap', false) < 0 ? [] : ['vwap']), ...extraColumns(options)];
  const twice = fields.find((field, i) => fields.indexOf(field) !== i);
  if (twice !== undefined) {
    const key = twice === options.group ? 'problem.neutralise.group' : 'problem.features.columns';
    throw new InputError(`"${twice}" is a column of prices already`, { key });
  }
  const used = [...fields, ...Object.values(source.columns ?? {}), ...Object.values(options.named ?? {})];
  const isUsed = (name: string) => used.some((one) => one?.trim().toLowerCase() === name.trim().toLowerCase());
  const ignored = names.find((name) => ADJUSTED.test(name.trim()) && !isUsed(name));
  if (ignored !== undefined) {
    notes.add(
      `file whose column "${ignored}" is not used (columns: {adjusted: ${ignored}} adjusts prices by it)`,
      file,
    );
  }
  const named = find('symbol', false);
  return {
    date: find('date', true),
    symbol: named >= 0 ? named : place('name') >= 0 ? place('name') : find('symbol', needsSymbol),
    fields,
    at: [...fields, ...(source.columns?.adjusted === undefined ? [] : ['adjusted'])].map((name) => find(name, true)),
  };
}

/**
 * Rows (date, symbol, values) in the order they come, in growing typed arrays, until all are there and the calendar is
 * known. They may come in any order; a duplicate row is dropped if its values are the same, otherwise rejected.
 */
export class RowTable {
  private readonly first: number;
  private readonly last: number;
  private readonly momentOf = new Map<string, number>();
  private readonly stockOf = new Map<string, number>();
  /** Last moment seen of each stock. */
  private readonly latest: number[] = [];
  private readonly files: string[] = [];
  private readonly cell: Float32Array;
  private moments = new Int32Array(1024);
  private stocks = new Int32Array(1024);
  /** File and line of each row, for duplicates. */
  private fileOf = new Int32Array(1024);
  private lineOf = new Int32Array(1024);
  private values: Float32Array;
  private length = 0;

  constructor(
    private readonly source: TableSource,
    private readonly fields: readonly string[],
    private readonly notes: Notes,
    private readonly options: Pick<ReadOptions, 'indexIsOptional'> = {},
  ) {
    const { start, end } = dateBounds(source);
    this.first = source.start === undefined ? Number.NEGATIVE_INFINITY : parseDay(start)! * MINUTES;
    this.last = source.end === undefined ? Number.POSITIVE_INFINITY : (parseDay(end)! + 1) * MINUTES - 1;
    this.cell = new Float32Array(fields.length);
    this.values = new Float32Array(1024 * fields.length);
  }

  /**
   * @param value the value of field `f` of this row, NaN if the source has none; where an adjusted close is named, the
   *   field after the last
   */
  add(date: string, symbol: string, value: (f: number) => number, file: string, line: number): void {
    const moment = this.moment(date, file, line);
    if (symbol === '') throw new InputError('the symbol is empty', { file, line });
    let stock = this.stockOf.get(symbol);
    if (stock === undefined) {
      stock = this.stockOf.size;
      this.stockOf.set(symbol, stock);
      this.latest.push(Number.NEGATIVE_INFINITY);
    }
    if (moment < this.latest[stock]) {
      this.notes.add('row before an earlier date of its stock: sorted', `${symbol} on ${date} in ${file}:${line}`);
    }
    this.latest[stock] = Math.max(this.latest[stock], moment);

    const { cell } = this;
    for (let f = 0; f < cell.length; f++) cell[f] = value(f);
    const place = () => ({ file, line, what: `${symbol} on ${this.shown(moment)}` });
    const accepted = acceptRow(cell, this.fields, this.source.nonPositive, this.notes, place);
    if (accepted && this.source.columns?.adjusted !== undefined) this.adjust(value, place);
    if (moment < this.first || moment > this.last) return;
    if (this.length === this.moments.length) this.grow();
    if (this.files.at(-1) !== file) this.files.push(file);
    this.moments[this.length] = moment;
    this.stocks[this.length] = stock;
    this.fileOf[this.length] = this.files.length - 1;
    this.lineOf[this.length] = line;
    this.values.set(cell, this.length * cell.length);
    this.length++;
  }

  /** Rescales the current row to its adjusted close; the volume inversely, so that the traded value is unchanged. */
  private adjust(value: (f: number) => number, place: () => { file: string; line?: number; what: string }): void {
    const { fields, cell, notes } = this;
    const rule = this.source.nonPositive;
    const adjusted = value(fields.length);
    if (!acceptRow(Float32Array.of(adjusted), ['adjusted'], rule, notes, place)) {
      cell.fill(Number.NaN);
      return;
    }
    const close = value(fields.indexOf('close'));
    if (Number.isNaN(adjusted) && !Number.isNaN(close)) {
      notes.add('row without an adjusted close taken as a suspension', place().what);
    }
    for (let f = 0; f < cell.length; f++) {
      if (fields[f] === 'volume') cell[f] = value(f) * (close / adjusted);
      else if (isPrice(fields[f])) cell[f] = value(f) * (adjusted / close);
    }
    acceptRow(cell, fields, rule, notes, place);
  }

  /** The panel of all rows; the table must not be used afterwards. */
  finish(): Reading {
    const { path: file } = this.source;
    if (this.length === 0) throw new InputError('there is no row of prices between these dates', { file });
    const indexSymbol = this.indexSymbol();
    const numbers = [...new Set(this.moments.subarray(0, this.length))].sort((a, b) => a - b);
    const calendar = numbers.map((moment) => this.shown(moment));
    const { symbols, members } = this.members(calendar);

    const dayIndex = new Map(numbers.map((moment, i) => [moment, i]));
    const column = new Int32Array(this.stockOf.size).fill(-1);
    symbols.forEach((symbol, i) => {
      column[this.stockOf.get(symbol)!] = i;
    });
    const width = this.fields.length;
    const close = this.fields.indexOf('close');
    const values = new Float32Array(calendar.length * symbols.length * width).fill(Number.NaN);
    const index: IndexSeries | undefined =
      indexSymbol === undefined
        ? undefined
        : { symbol: indexSymbol, close: new Float32Array(calendar.length).fill(Number.NaN) };
    const indexStock = indexSymbol === undefined ? -1 : this.stockOf.get(indexSymbol)!;
    /** Number of the row, from 1, that each stock has on each day. */
    const rowOf = new Int32Array(calendar.length * this.stockOf.size);
    for (let row = 0; row < this.length; row++) {
      const day = dayIndex.get(this.moments[row])!;
      const stock = this.stocks[row];
      const earlier = rowOf[day * this.stockOf.size + stock] - 1;
      if (earlier >= 0) {
        this.checkDuplicate(earlier, row);
        continue;
      }
      rowOf[day * this.stockOf.size + stock] = row + 1;
      if (stock === indexStock) index!.close[day] = this.values[row * width + close];
      const to = column[stock];
      if (to < 0) continue;
      for (let f = 0; f < width; f++) values[(day * symbols.length + to) * width + f] = this.values[row * width + f];
    }
    const draft = {
      calendar,
      symbols,
      fields: this.fields,
      values,
      members,
      ...(index === undefined ? {} : { index }),
    };
    return { ...clean(draft, this.source.maxMove, this.notes, file), notes: this.notes };
  }

  /** The symbol of the index, if the data have one. */
  private indexSymbol(): string | undefined {
    const { path: file, index } = this.source;
    if (index === undefined || this.stockOf.has(index)) return index;
    if (this.options.indexIsOptional === true) return undefined;
    throw new InputError(`there is no symbol "${index}" to serve as the index`, { file, key: 'index' });
  }

  private checkDuplicate(earlier: number, row: number): void {
    const width = this.fields.length;
    const at = (r: number): Float32Array => this.values.subarray(r * width, (r + 1) * width);
    const [one, other] = [at(earlier), at(row)];
    const what = `${[...this.stockOf.keys()][this.stocks[row]]} on ${this.shown(this.moments[row])}`;
    const [file, line] = [this.files[this.fileOf[row]], this.lineOf[row]];
    const [firstFile, firstLine] = [this.files[this.fileOf[earlier]], this.lineOf[earlier]];
    const first = firstFile === file ? `line ${firstLine}` : `${firstFile}:${firstLine}`;
    if (!one.every((x, f) => Object.is(x, other[f]))) {
      throw new InputError(`${what} has different values than in ${first}, expected one row for each`, { file, line });
    }
    this.notes.add('duplicate row with the same values dropped', `${what} in ${file}:${line}`);
  }

  private moment(date: string, file: string, line: number): number {
    let moment = this.momentOf.get(date);
    if (moment === undefined) {
      const { dateOrder } = this.source;
      moment = parseMoment(date.trim(), this.source);
      if (moment === undefined) {
        const form = { ymd: 'YYYY-MM-DD', dmy: 'DD/MM/YYYY', mdy: 'MM/DD/YYYY' }[dateOrder];
        throw new InputError(`"${date.slice(0, 80)}" is not a date, expected ${form}${this.advice(date)}`, {
          file,
          line,
        });
      }
      this.momentOf.set(date, moment);
    }
    return moment;
  }

  /** Says which key would read a date that is rejected. */
  private advice(date: string): string {
    const text = date.trim();
    const { dateOrder, intraday } = this.source;
    if (!intraday && parseMoment(text, { dateOrder, intraday: true }) !== undefined) {
      const zone = ZONE.test(text) ? '; if this is a day in another time zone, leave out the zone' : '';
      return ` (intraday: true reads times of the day${zone})`;
    }
    if (dateOrder !== 'ymd') return '';
    const orders = (['dmy', 'mdy'] as const).filter(
      (order) => parseMoment(text, { dateOrder: order, intraday }) !== undefined,
    );
    return orders.length === 0 ? '' : ` (dateOrder: ${orders.join(' or ')} reads it)`;
  }

  private shown(moment: number): string {
    return formatMoment(moment, this.source.intraday);
  }

  private members(calendar: readonly string[]): { symbols: string[]; members: Uint8Array } {
    const all = [...this.stockOf.keys()].filter((symbol) => symbol !== this.source.index).sort();
    const file = this.source.members;
    if (file === undefined) {
      return { symbols: all, members: new Uint8Array(calendar.length * all.length).fill(1) };
    }
    const known = new Set(all);
    const found = membersOf(readMembership(file), calendar, (symbol) => known.has(symbol), file, this.notes);
    const kept = new Set(found.symbols);
    for (const symbol of all)
      if (!kept.has(symbol)) this.notes.add('stock that never belongs to the market left out', symbol);
    return found;
  }

  private grow(): void {
    const size = this.moments.length * 2;
    const grown = <A extends Int32Array | Float32Array>(to: A, from: A): A => {
      to.set(from);
      return to;
    };
    this.moments = grown(new Int32Array(size), this.moments);
    this.stocks = grown(new Int32Array(size), this.stocks);
    this.fileOf = grown(new Int32Array(size), this.fileOf);
    this.lineOf = grown(new Int32Array(size), this.lineOf);
    this.values = grown(new Float32Array(size * this.fields.length), this.values);
  }
}

const MINUTES = 24 * 60;
const ZONE = /(Z|[+-]\d{2}:?\d{2})$/;
