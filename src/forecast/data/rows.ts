import { InputError } from '../../errors.js';
import { clean } from './clean.js';
import { formatDay, parseDay } from './dates.js';
import { membersOf, readMembership } from './membership.js';
import type { Notes } from './notes.js';
import { FIELDS, type Field, type IndexSeries } from './panel.js';
import { acceptRow, type ColumnName, type DataSource, dateBounds, type Reading } from './source.js';

/** Where each column of ours stands in a row of the source; `symbol` is −1 when the file is the stock. */
export interface Columns {
  readonly date: number;
  readonly symbol: number;
  readonly fields: readonly Field[];
  /** Position of each of `fields`, and behind them that of the adjusted close if one is named. */
  readonly at: readonly number[];
}

/** Finds our columns among the source's names. */
export function findColumns(
  names: readonly string[],
  source: DataSource,
  needsSymbol: boolean,
  file: string,
  line?: number,
): Columns {
  const lower = names.map((name) => name.trim().toLowerCase());
  const where = { file, line };
  const find = (column: ColumnName, required: boolean): number => {
    const wanted = source.columns?.[column] ?? column;
    const at = lower.indexOf(wanted.trim().toLowerCase());
    if (at !== lower.lastIndexOf(wanted.trim().toLowerCase())) {
      throw new InputError(`there are two columns "${wanted}"`, where);
    }
    if (at < 0 && (required || source.columns?.[column] !== undefined)) {
      const meant = wanted === column ? '' : ` for ${column}`;
      throw new InputError(`there is no column "${wanted}"${meant} among ${names.join(', ')}`, where);
    }
    return at;
  };
  const vwap = find('vwap', false);
  const fields: Field[] = vwap < 0 ? [...FIELDS] : [...FIELDS, 'vwap'];
  return {
    date: find('date', true),
    symbol: find('symbol', needsSymbol),
    fields,
    at: [...fields, ...(source.columns?.adjusted === undefined ? [] : ['adjusted' as const])].map((name) =>
      find(name, true),
    ),
  };
}

/**
 * Rows (date, symbol, values) in the order they come, in growing typed arrays, until all are there and the calendar is
 * known. The rows of one stock must come in ascending order of dates, each date once; stocks may come in any order.
 */
export class RowTable {
  readonly #source: DataSource;
  readonly #notes: Notes;
  readonly #fields: readonly Field[];
  readonly #rule: 'refuse' | 'missing';
  readonly #first: number;
  readonly #last: number;
  readonly #dayOf = new Map<string, number>();
  readonly #stockOf = new Map<string, number>();
  /** Last day number seen of each stock. */
  readonly #latest: number[] = [];
  readonly #cell: Float32Array;
  #days = new Int32Array(1024);
  #stocks = new Int32Array(1024);
  #values: Float32Array;
  #length = 0;

  constructor(source: DataSource, fields: readonly Field[], notes: Notes) {
    this.#source = source;
    this.#notes = notes;
    this.#fields = fields;
    this.#rule = source.nonPositive ?? 'refuse';
    this.#first = source.start === undefined ? Number.NEGATIVE_INFINITY : parseDay(dateBounds(source).start)!;
    this.#last = source.end === undefined ? Number.POSITIVE_INFINITY : parseDay(dateBounds(source).end)!;
    this.#cell = new Float32Array(fields.length);
    this.#values = new Float32Array(1024 * fields.length);
  }

  /**
   * @param value the value of field `f` of this row, NaN where the source has none; where an adjusted close is named, the
   *   field behind the last
   */
  add(date: string, symbol: string, value: (f: number) => number, file: string, line: number | undefined): void {
    const day = this.#day(date, file, line);
    if (symbol === '') throw new InputError('the symbol is empty', { file, line });
    let stock = this.#stockOf.get(symbol);
    if (stock === undefined) {
      stock = this.#stockOf.size;
      this.#stockOf.set(symbol, stock);
      this.#latest.push(Number.NEGATIVE_INFINITY);
    }
    const latest = this.#latest[stock]!;
    if (day <= latest) {
      const found = day === latest ? `${date} a second time` : `${date} after ${formatDay(latest)}`;
      throw new InputError(`${symbol} has ${found}, expected the dates of a stock once each and ascending`, {
        file,
        line,
      });
    }
    this.#latest[stock] = day;

    const cell = this.#cell;
    for (let f = 0; f < cell.length; f++) cell[f] = value(f);
    const place = () => ({ file, line, what: `${symbol} on ${formatDay(day)}` });
    const accepted = acceptRow(cell, this.#fields, this.#rule, this.#notes, place);
    if (accepted && this.#source.columns?.adjusted !== undefined) this.#adjust(value, place);
    if (day < this.#first || day > this.#last) return;
    if (this.#length === this.#days.length) this.#grow();
    this.#days[this.#length] = day;
    this.#stocks[this.#length] = stock;
    this.#values.set(cell, this.#length * cell.length);
    this.#length++;
  }

  /** Rescales the row in hand to its adjusted close; the volume inversely, so that the money traded stays what it was. */
  #adjust(value: (f: number) => number, place: () => { file: string; line?: number; what: string }): void {
    const fields = this.#fields;
    const cell = this.#cell;
    const adjusted = value(fields.length);
    if (!acceptRow(Float32Array.of(adjusted), ['adjusted'], this.#rule, this.#notes, place)) {
      cell.fill(Number.NaN);
      return;
    }
    const close = value(fields.indexOf('close'));
    if (Number.isNaN(adjusted) && !Number.isNaN(close)) {
      this.#notes.add('row without an adjusted close taken as a suspension', place().what);
    }
    for (let f = 0; f < cell.length; f++) {
      cell[f] = fields[f] === 'volume' ? value(f) * (close / adjusted) : value(f) * (adjusted / close);
    }
    acceptRow(cell, fields, this.#rule, this.#notes, place);
  }

  /** The panel of all rows; the table must not be used afterwards. */
  finish(): Reading {
    const { path: file, index: indexSymbol } = this.#source;
    if (this.#length === 0) throw new InputError('there is no row of prices within the wanted dates', { file });
    if (indexSymbol !== undefined && !this.#stockOf.has(indexSymbol)) {
      throw new InputError(`there is no symbol "${indexSymbol}" to serve as the index`, { file, key: 'index' });
    }
    const numbers = [...new Set(this.#days.subarray(0, this.#length))].sort((a, b) => a - b);
    const calendar = numbers.map(formatDay);
    const { symbols, members } = this.#members(calendar);

    const dayIndex = new Map(numbers.map((day, i) => [day, i]));
    const column = new Int32Array(this.#stockOf.size).fill(-1);
    symbols.forEach((symbol, i) => {
      column[this.#stockOf.get(symbol)!] = i;
    });
    const width = this.#fields.length;
    const close = this.#fields.indexOf('close');
    const values = new Float32Array(calendar.length * symbols.length * width).fill(Number.NaN);
    const index: IndexSeries | undefined =
      indexSymbol === undefined
        ? undefined
        : { symbol: indexSymbol, close: new Float32Array(calendar.length).fill(Number.NaN) };
    const indexStock = indexSymbol === undefined ? -1 : this.#stockOf.get(indexSymbol)!;
    for (let row = 0; row < this.#length; row++) {
      const day = dayIndex.get(this.#days[row]!)!;
      const stock = this.#stocks[row]!;
      if (stock === indexStock) index!.close[day] = this.#values[row * width + close]!;
      const to = column[stock]!;
      if (to < 0) continue;
      for (let f = 0; f < width; f++) values[(day * symbols.length + to) * width + f] = this.#values[row * width + f]!;
    }
    const draft = {
      calendar,
      symbols,
      fields: this.#fields,
      values,
      members,
      ...(index === undefined ? {} : { index }),
    };
    return { ...clean(draft, this.#source.maxMove ?? null, this.#notes, file), notes: this.#notes };
  }

  #day(date: string, file: string, line: number | undefined): number {
    let day = this.#dayOf.get(date);
    if (day === undefined) {
      day = parseDay(date.trim());
      if (day === undefined)
        throw new InputError(`"${date.slice(0, 80)}" is not a date, expected YYYY-MM-DD`, { file, line });
      this.#dayOf.set(date, day);
    }
    return day;
  }

  #members(calendar: readonly string[]): { symbols: string[]; members: Uint8Array } {
    const all = [...this.#stockOf.keys()].filter((symbol) => symbol !== this.#source.index).sort();
    const file = this.#source.members;
    if (file === undefined) {
      return { symbols: all, members: new Uint8Array(calendar.length * all.length).fill(1) };
    }
    const known = new Set(all);
    const found = membersOf(readMembership(file), calendar, (symbol) => known.has(symbol), file, this.#notes);
    const kept = new Set(found.symbols);
    for (const symbol of all)
      if (!kept.has(symbol)) this.#notes.add('stock that never belongs to the market left out', symbol);
    return found;
  }

  #grow(): void {
    const size = this.#days.length * 2;
    const grown = <A extends Int32Array | Float32Array>(to: A, from: A): A => {
      to.set(from);
      return to;
    };
    this.#days = grown(new Int32Array(size), this.#days);
    this.#stocks = grown(new Int32Array(size), this.#stocks);
    this.#values = grown(new Float32Array(size * this.#fields.length), this.#values);
  }
}
