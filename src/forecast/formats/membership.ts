import { InputError } from '../../errors.js';
import { readText } from '../../files.js';
import { firstDayFrom, formatDay, lastDayUntil, parseDay } from '../data/calendar.js';
import type { PricePanel } from '../data/panel.js';
import type { Notes } from './format.js';

/** A stretch of days, ends included, during which a stock belongs to the market. A stock may have several. */
export interface Spell {
  readonly symbol: string;
  readonly start: string;
  readonly end: string;
  readonly line: number;
}

/** Reads a membership file in qlib's form: `CODE<tab>start<tab>end` a line. */
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
