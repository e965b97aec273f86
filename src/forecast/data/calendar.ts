import { InputError } from '../../errors.js';
import { type PricePanel, type Samples, samplesBetween } from './panel.js';

const DAY_MS = 86_400_000;
const FORM = /^(\d{4})([-/]?)(\d{2})\2(\d{2})(?:[T ]00:00(?::00(?:\.0+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/;

/**
 * The day number (days since 1970-01-01) of a calendar date written `YYYY-MM-DD`, `YYYY/MM/DD` or `YYYYMMDD`,
 * optionally followed by a midnight time; `undefined` if the text is not such a date (2021-02-30, 10:35).
 */
export function parseDay(text: string): number | undefined {
  const match = FORM.exec(text);
  if (match === null) return undefined;
  const year = Number(match[1]);
  const month = Number(match[3]);
  const date = Number(match[4]);
  const time = Date.UTC(year, month - 1, date);
  const back = new Date(time);
  // Date.UTC rolls 30 February over into March, and takes the years 0 to 99 for 1900 to 1999.
  const same = back.getUTCFullYear() === year && back.getUTCMonth() === month - 1 && back.getUTCDate() === date;
  return same ? time / DAY_MS : undefined;
}

/** How the dates of a table are written: the order of day, month and year, and whether a time of the day may follow. */
export interface DateStyle {
  readonly dateOrder: 'ymd' | 'dmy' | 'mdy';
  readonly intraday: boolean;
}

const MINUTES = 24 * 60;
const DATED = /^(\d{1,2})([-/.])(\d{1,2})\2(\d{4})(.*)$/;
const TIMED = /^(.*?)[T ](\d{2}):(\d{2})(?::00(?:\.0+)?)?(?:Z|[+-]\d{2}:?\d{2})?$/;

/** Minutes since 1970-01-01 of a date, with a time of day if allowed; undefined for anything else. */
export function parseMoment(text: string, { dateOrder, intraday }: DateStyle): number | undefined {
  const written = dateOrder === 'ymd' ? text : yearFirst(text, dateOrder);
  const midnight = parseDay(written);
  if (midnight !== undefined) return midnight * MINUTES;
  const [, date, hours, minutes] = (intraday && TIMED.exec(written)) || [];
  const day = date === undefined ? undefined : parseDay(date);
  if (day === undefined || Number(hours) > 23 || Number(minutes) > 59) return undefined;
  return day * MINUTES + Number(hours) * 60 + Number(minutes);
}

/** `31/12/2020` or `12/31/2020` as `2020-12-31`; any other form is not a date. */
function yearFirst(text: string, order: 'dmy' | 'mdy'): string {
  const [, first, , second, year, rest] = DATED.exec(text) ?? [];
  if (year === undefined) return '';
  const [day, month] = order === 'dmy' ? [first, second] : [second, first];
  return `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}${rest}`;
}

/** `YYYY-MM-DD`, and `YYYY-MM-DDTHH:MM` where the calendar has times of the day. */
export function formatMoment(minutes: number, intraday: boolean): string {
  const text = new Date(minutes * 60_000).toISOString();
  return text.slice(0, intraday ? 16 : 10);
}

/**
 * A date from a user, written as in the calendar: `YYYY-MM-DD`, which stands for a whole day, or a moment of it if the
 * calendar has times of the day.
 */
export function givenDate(text: string, calendar: readonly string[], key: string): string {
  const intraday = calendar[0].length > 'YYYY-MM-DD'.length;
  const moment = parseMoment(text.trim(), { dateOrder: 'ymd', intraday });
  if (moment !== undefined) return formatMoment(moment, intraday && /[T ]/.test(text.trim()));
  const form = `YYYY-MM-DD${intraday ? ' or YYYY-MM-DDTHH:MM' : ''}`;
  throw new InputError(`"${text}" is not a date, expected ${form}`, { key });
}

/** `YYYY-MM-DD` of a day number. */
export function formatDay(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

/** Index of the first calendar day on or after `date`; the calendar's length when there is none. */
export function firstDayFrom(calendar: readonly string[], date: string): number {
  let low = 0;
  let high = calendar.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (calendar[middle] < date) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Index of the last calendar day on or before `date`; −1 when there is none. */
export function lastDayUntil(calendar: readonly string[], date: string): number {
  // In an intraday calendar a date includes its times: 2020-01-31T15:00 is not after 2020-01-31.
  return firstDayFrom(calendar, `${date}~`) - 1;
}

/** First and last date, inclusive. */
export type DateRange = readonly [from: string, to: string];

/** The dates of the three parts, in this order in time. */
export interface SplitDates {
  readonly train: DateRange;
  readonly validation: DateRange;
  readonly test: DateRange;
}

export interface Splits {
  readonly train: Samples;
  readonly validation: Samples;
  readonly test: Samples;
}

const NAMES = ['train', 'validation', 'test'] as const;

/**
 * The samples of each part. Training and validation are purged: a sample of day t is kept only if day t + reach, the last
 * day of its labels, lies within the same part, so no price after a part's end affects it. Nothing
 * follows the test part, so it is not purged: its last labels are prices after its end, or missing if the data ends.
 *
 * @param reach how many days ahead the labels look (`labelReach`); 0 keeps every sample
 */
export function splitSamples(panel: PricePanel, dates: SplitDates, reach: number): Splits {
  const part = (name: PartName): Samples => partSamples(panel, dates, name, reach);
  return { train: part('train'), validation: part('validation'), test: part('test') };
}

type PartName = (typeof NAMES)[number];

/** The samples of one part, for data that need not contain the others. */
export function partSamples(panel: PricePanel, dates: SplitDates, name: PartName, reach: number): Samples {
  checkDates(dates);
  if (!Number.isInteger(reach) || reach < 0)
    throw new InputError(`cannot look ${reach} days ahead`, { key: 'horizons' });
  const [from, to] = dates[name];
  const first = firstDayFrom(panel.calendar, from);
  const end = lastDayUntil(panel.calendar, to);
  const last = name === 'test' ? end : end - reach;
  const samples = last < first ? undefined : samplesBetween(panel, first, last);
  if (samples === undefined || samples.length === 0) {
    const span = `the data holds ${panel.calendar[0]} to ${panel.calendar.at(-1)}`;
    const ahead = name === 'test' || reach === 0 ? '' : ` whose labels, up to ${reach} days ahead, end within it`;
    throw new InputError(`there is no sample between ${from} and ${to}${ahead}; ${span}`, { key: `split.${name}` });
  }
  if (name === 'test' && first + reach >= panel.calendar.length) {
    throw new InputError(`a horizon of ${reach} days lies beyond the data, which ends on ${panel.calendar.at(-1)}`, {
      key: 'horizons',
    });
  }
  return samples;
}

function checkDates(dates: SplitDates): void {
  let before = '';
  for (const name of NAMES) {
    const [from, to] = dates[name];
    for (const date of [from, to]) {
      if (!/^\d{4}-\d{2}-\d{2}$/.test(date) || parseDay(date) === undefined) {
        throw new InputError(`"${date}" is not a date, expected YYYY-MM-DD`, { key: `split.${name}` });
      }
    }
    if (from > to) throw new InputError(`it begins on ${from}, after its end ${to}`, { key: `split.${name}` });
    if (from <= before) {
      throw new InputError(`it begins on ${from}, expected a day after ${before}, the end of the previous part`, {
        key: `split.${name}`,
      });
    }
    before = to;
  }
}
