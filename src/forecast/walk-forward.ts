import { z } from 'zod';
import { InputError } from '../errors.js';
import { firstDayFrom, formatDay, lastDayUntil, parseDay, type SplitDates } from './data/calendar.js';
import { dateKey } from './formats/format.js';

/** A length of time: whole months, and days. */
interface Length {
  readonly months: number;
  readonly days: number;
}

const UNITS: Readonly<Record<string, Length>> = {
  y: { months: 12, days: 0 },
  m: { months: 1, days: 0 },
  w: { months: 0, days: 7 },
  d: { months: 0, days: 1 },
};

const UNIT_NAMES = 'y (years), m (months), w (weeks) or d (days)';

const length = (example: string) =>
  z
    .string()
    .refine((text) => parseLength(text) !== undefined, {
      error: ({ input }) =>
        `expected a whole number above 0 and a unit, ${UNIT_NAMES}, such as ${example}, found ${JSON.stringify(input)}`,
    })
    .meta({ examples: [example] });

/** `problem.split.walkForward` of a configuration. */
export const walkForwardSchema = z
  .strictObject({
    train: length('4y').describe(`Length of a training part: a number and ${UNIT_NAMES}.`),
    validation: length('1y').describe('Length of the validation part behind it.'),
    step: length('6m').describe('Length of the test part behind that, and by how much the next window is later.'),
    from: dateKey
      .optional()
      .describe(
        'First day of the first training part. If left out: that of split.train, or the first day with a whole window of features before it.',
      ),
    to: dateKey
      .optional()
      .describe('Last day of the last test part. If left out: that of split.test, or the end of the data.'),
    expanding: z.boolean().default(false).describe('Let every training part begin with the first: it grows.'),
    warmStart: z
      .boolean()
      .default(false)
      .describe('Start each window from the best parameters of the one before, so that they are trained in turn.'),
  })
  .describe('Train a run for each of many windows, and put the forecasts of their test parts together.');

export type WalkForward = z.output<typeof walkForwardSchema>;

/** `4y`, `6m`, `2w` or `30d`; undefined for anything else, and for nothing at all. */
export function parseLength(text: string): Length | undefined {
  const [, count, unit] = /^(\d{1,5})([a-z])$/.exec(text) ?? [];
  const one = unit === undefined ? undefined : UNITS[unit];
  return one === undefined || Number(count) === 0 ? undefined : times(one, Number(count));
}

/** What windows are laid over. */
export interface Extent {
  readonly calendar: readonly string[];
  /** First and last day that a window may touch. */
  readonly from: string;
  readonly to: string;
  /** Days that labels look ahead. */
  readonly reach: number;
}

/**
 * The dates of every window. Window i begins i steps after the first, and its test part ends where that of the next begins:
 * the test parts follow each other without gap or overlap, and nothing in a window depends on how far the data go on. The
 * last one is the last with a label in its test part.
 */
export function windowsOf(walkForward: WalkForward, { calendar, from, to, reach }: Extent): SplitDates[] {
  const [train, validation, step] = (['train', 'validation', 'step'] as const).map((key) => {
    const parsed = parseLength(walkForward[key]);
    if (parsed !== undefined) return parsed;
    throw new InputError(`it is no length of time: ${walkForward[key]}`, { key: `${KEY}.${key}` });
  });
  const windows: SplitDates[] = [];
  for (let i = 0; windows.length <= MOST_WINDOWS; i++) {
    const begin = times(step, i);
    const [a, b, c, d] = [
      begin,
      sum(begin, train),
      sum(begin, train, validation),
      sum(begin, train, validation, step),
    ].map((offset) => later(from, offset));
    const first = firstDayFrom(calendar, c);
    if (c > to || first + reach >= calendar.length) break;
    const end = dayBefore(d);
    const test = [c, end < to ? end : to] as const;
    // A weekend, with a step of a day, or a gap in the data.
    if (lastDayUntil(calendar, test[1]) < first) continue;
    windows.push({
      train: [walkForward.expanding ? from : a, dayBefore(b)],
      validation: [b, dayBefore(c)],
      test,
    });
  }
  if (windows.length > MOST_WINDOWS) {
    throw new InputError(
      `a step of ${walkForward.step} makes more than ${MOST_WINDOWS} windows from ${from} to ${to}`,
      {
        key: `${KEY}.step`,
      },
    );
  }
  if (windows.length > 0) return windows;
  throw new InputError(
    `${walkForward.train} of training and ${walkForward.validation} of validation from ${from} on leave no day to test: ` +
      `the data holds ${calendar[0]} to ${calendar.at(-1)}${to < calendar[calendar.length - 1] ? `, of which nothing after ${to} is used` : ''}`,
    { key: KEY },
  );
}

export const KEY = 'problem.split.walkForward';

const MOST_WINDOWS = 1000;

function times({ months, days }: Length, count: number): Length {
  return { months: months * count, days: days * count };
}

function sum(...lengths: readonly Length[]): Length {
  return lengths.reduce((a, b) => ({ months: a.months + b.months, days: a.days + b.days }));
}

/** The date some months later, on the last day of a month that is too short, and then some days. */
function later(date: string, { months, days }: Length): string {
  const [year, month, day] = date.split('-').map(Number);
  const count = year * 12 + (month - 1) + months;
  const [y, m] = [Math.floor(count / 12), count % 12];
  if (y > LAST_YEAR) return `${LAST_YEAR}-12-31`;
  const last = new Date(Date.UTC(y, m + 1, 0)).getUTCDate();
  return formatDay(Date.UTC(y, m, Math.min(day, last)) / DAY_MS + days);
}

function dayBefore(date: string): string {
  return formatDay((parseDay(date) ?? 0) - 1);
}

/** Dates have four digits for the year. */
const LAST_YEAR = 9000;

const DAY_MS = 86_400_000;
