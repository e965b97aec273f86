const DAY_MS = 86_400_000;
const FORM = /^(\d{4})([-/]?)(\d{2})\2(\d{2})(?:[T ]00:00(?::00(?:\.0+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/;

/**
 * The day number (days since 1970-01-01) of a calendar date written `YYYY-MM-DD`, `YYYY/MM/DD` or `YYYYMMDD`,
 * a midnight time behind it allowed; `undefined` when the text is no such date (2021-02-30, 10:35 o'clock).
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
    if (calendar[middle]! < date) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Index of the last calendar day on or before `date`; −1 when there is none. */
export function lastDayUntil(calendar: readonly string[], date: string): number {
  const index = firstDayFrom(calendar, date);
  return calendar[index] === date ? index : index - 1;
}
