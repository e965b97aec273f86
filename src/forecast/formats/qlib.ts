import { closeSync, existsSync, fstatSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { InputError } from '../../errors.js';
import { fileError, readText } from '../../files.js';
import { firstDayFrom, formatDay, lastDayUntil, parseDay } from '../data/calendar.js';
import { clean } from '../data/clean.js';
import { FIELDS, type IndexSeries } from '../data/panel.js';
import {
  acceptRow,
  dataFormat,
  dateBounds,
  extraColumns,
  fileKeys,
  fillSource,
  membersOf,
  Notes,
  type ReaderOptions,
  type Reading,
  type ReadOptions,
  readMembership,
} from './format.js';

const schema = z.strictObject({
  format: z.literal('qlib').describe("qlib's folder with calendars/, instruments/ and features/."),
  ...fileKeys,
  market: z.string().optional().describe('Name of the list in instruments/. Default: the only one, otherwise "all".'),
});

export const qlib = dataFormat({
  schema,
  title: "qlib's data folder",
  recognises: (path, isFolder) => isFolder && existsSync(join(path, 'calendars')),
  read,
});

/** Reads prices from a qlib data folder. */
export function readQlib(options: ReaderOptions<typeof schema>): Reading {
  return read(fillSource(qlib, options));
}

/**
 * Reads a qlib data folder:
 * - `calendars/day.txt`: one date per line, ascending;
 * - `instruments/<market>.txt`: membership spells;
 * - `features/<code>/<field>.day.bin`: little-endian float32; element 0 is the calendar index of element 1.
 *
 * A series that does not exist is all NaN. The series of one stock must cover the same days: one that is shorter than the
 * others has been truncated.
 */
function read(source: z.output<typeof schema>, options: ReadOptions = {}): Reading {
  const factors = extraColumns(options);
  const folder = source.path;
  const notes = new Notes();
  const whole = readCalendar(join(folder, 'calendars', 'day.txt'));
  const { start, end } = dateBounds(source);
  const first = firstDayFrom(whole, start);
  const last = lastDayUntil(whole, end);
  if (first > last) {
    const span = `${whole[0]} to ${whole.at(-1)}`;
    throw new InputError(`no trading day between ${source.start} and ${source.end}; the calendar holds ${span}`, {
      file: folder,
    });
  }
  const calendar = whole.slice(first, last + 1);

  const file = marketFile(folder, source.market);
  const folders = new Set(readFolder(join(folder, 'features')));
  const spells = readMembership(file).filter(({ symbol }) => symbol !== source.index);
  const { symbols, members } = membersOf(spells, calendar, (symbol) => folders.has(folderName(symbol)), file, notes);

  const path = (symbol: string, field: string): string =>
    join(folder, 'features', folderName(symbol), `${options.named?.[field] ?? field}.day.bin`);
  const isThere = (field: string) => symbols.some((symbol) => existsSync(path(symbol, field)));
  const fields = [...FIELDS, ...(isThere('vwap') ? ['vwap'] : []), ...factors];
  const absent = factors.find((factor) => !isThere(factor));
  if (absent !== undefined) {
    const key = absent === options.group ? 'problem.neutralise.group' : 'problem.features.columns';
    throw new InputError(`no stock has a series ${options.named?.[absent] ?? absent}.day.bin`, { file: folder, key });
  }
  const values = new Float32Array(calendar.length * symbols.length * fields.length).fill(Number.NaN);
  const reader = new SeriesReader(whole.length);
  const cell = new Float32Array(fields.length);

  symbols.forEach((symbol, stock) => {
    let span: { start: number; length: number; file: string } | undefined;
    fields.forEach((field, f) => {
      const file = path(symbol, field);
      const series = reader.read(file);
      if (series === undefined) {
        if (field !== 'vwap' && !factors.includes(field)) notes.add('missing series', `there is no ${file}`);
        return;
      }
      if (span === undefined) span = { start: series.start, length: series.data.length, file };
      else if (series.start !== span.start || series.data.length !== span.length) {
        const days = (s: { start: number }, length: number): string => `${length} days from day ${s.start}`;
        const found = days(series, series.data.length);
        throw new InputError(`holds ${found}, but ${span.file} ${days(span, span.length)}: one of them is truncated`, {
          file,
        });
      }
      const from = Math.max(series.start, first);
      const to = Math.min(series.start + series.data.length - 1, last);
      for (let day = from; day <= to; day++) {
        values[((day - first) * symbols.length + stock) * fields.length + f] = series.data[day - series.start];
      }
    });
    for (let day = 0; day < calendar.length; day++) {
      const at = (day * symbols.length + stock) * fields.length;
      for (let f = 0; f < fields.length; f++) cell[f] = values[at + f];
      const kept = acceptRow(cell, fields, source.nonPositive, notes, () => ({
        file: join(folder, 'features', folderName(symbol)),
        what: `${symbol} on ${calendar[day]}`,
      }));
      if (!kept) values.set(cell, at);
    }
  });

  const index =
    source.index === undefined
      ? undefined
      : readIndex(source.index, path(source.index, 'close'), reader, first, calendar, options);
  const draft = { calendar, symbols, fields, values, members, ...(index === undefined ? {} : { index }) };
  return { ...clean(draft, source.maxMove, notes, folder), notes };
}

/** One `YYYY-MM-DD` per line, strictly ascending; a line number is a calendar index, so only the last line may be blank. */
function readCalendar(file: string): string[] {
  const lines = readText(file).trimEnd().split('\n');
  const calendar: string[] = [];
  for (let i = 0; i < lines.length; i++) {
    const text = lines[i].trim();
    const day = parseDay(text);
    const where = { file, line: i + 1 };
    if (day === undefined) throw new InputError(`"${text.slice(0, 80)}" is not a date, expected YYYY-MM-DD`, where);
    const date = formatDay(day);
    if (i > 0 && date <= calendar[i - 1]) {
      throw new InputError(`${date} follows ${calendar[i - 1]}, expected each date once and ascending`, where);
    }
    calendar.push(date);
  }
  return calendar;
}

function marketFile(folder: string, market: string | undefined): string {
  const home = join(folder, 'instruments');
  const markets = readFolder(home)
    .filter((name) => name.endsWith('.txt'))
    .map((name) => name.slice(0, -'.txt'.length));
  const chosen = market ?? (markets.length === 1 ? markets[0] : markets.includes('all') ? 'all' : undefined);
  if (chosen === undefined || !markets.includes(chosen)) {
    const choice = `one of ${markets.sort().join(', ') || '(none there)'}`;
    const sentence =
      market === undefined ? `which market is meant: ${choice}?` : `there is no market "${market}", expected ${choice}`;
    throw new InputError(sentence, { file: home, key: 'market' });
  }
  return join(home, `${chosen}.txt`);
}

function readFolder(folder: string): string[] {
  if (!existsSync(folder) || !statSync(folder).isDirectory()) {
    throw new InputError('there is no such folder; a qlib data folder has calendars, instruments and features', {
      file: folder,
    });
  }
  return readdirSync(folder);
}

/** Device names reserved by Windows; qlib prefixes the folders of stocks with such names. */
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)$/;

function folderName(symbol: string): string {
  const lower = symbol.toLowerCase();
  return DEVICE.test(lower) ? `_qlib_${lower}` : lower;
}

function readIndex(
  symbol: string,
  file: string,
  reader: SeriesReader,
  first: number,
  calendar: readonly string[],
  { indexIsOptional = false }: ReadOptions,
): IndexSeries | undefined {
  const series = reader.read(file);
  if (series === undefined && indexIsOptional) return undefined;
  if (series === undefined)
    throw new InputError(`there is no such file, so no index ${symbol}`, { file, key: 'index' });
  const close = new Float32Array(calendar.length).fill(Number.NaN);
  for (let day = 0; day < calendar.length; day++) {
    const x = series.data[first + day - series.start] ?? Number.NaN;
    if (x <= 0 || x === Number.POSITIVE_INFINITY) {
      throw new InputError(`the index is ${x} on ${calendar[day]}, expected more than zero`, { file });
    }
    close[day] = x;
  }
  return { symbol, close };
}

/** Reads series into the same memory; a series is valid until the next one is read. */
class SeriesReader {
  private readonly days: number;
  private readonly floats: Float32Array;

  constructor(days: number) {
    this.days = days;
    this.floats = new Float32Array(days + 1);
  }

  /** `undefined` when there is no such file. */
  read(file: string): { start: number; data: Float32Array } | undefined {
    let descriptor: number;
    try {
      descriptor = openSync(file, 'r');
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
      throw fileError(error, 'read', file);
    }
    try {
      const bytes = fstatSync(descriptor).size;
      if (bytes < 4 || bytes % 4 !== 0) {
        throw new InputError(`is ${bytes} bytes long, expected a multiple of 4 (float32): it is truncated`, { file });
      }
      const length = bytes / 4 - 1;
      if (length > this.days) throw new InputError(`holds ${length} days, the calendar only ${this.days}`, { file });
      let got = 0;
      while (got < bytes) {
        const n = readSync(descriptor, this.floats, got, bytes - got, got);
        if (n === 0) throw new InputError(`ends after ${got} of ${bytes} bytes`, { file });
        got += n;
      }
      const start = this.floats[0];
      if (!Number.isInteger(start) || start < 0 || start + length > this.days) {
        throw new InputError(
          `starts at calendar index ${start} with ${length} days, expected an index within the ${this.days} days of the calendar`,
          { file },
        );
      }
      return { start, data: this.floats.subarray(1, length + 1) };
    } finally {
      closeSync(descriptor);
    }
  }
}
