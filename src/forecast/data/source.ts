import { InputError } from '../../errors.js';
import { parseDay } from './dates.js';
import type { Notes } from './notes.js';
import type { Field, Panel } from './panel.js';

/** Where daily prices come from, and how they are to be taken. One description for every format. */
export interface DataSource {
  /** A qlib data folder, a CSV file, a folder of CSV files (one a stock), or a Parquet file. */
  readonly path: string;
  /** Default: told from the path (`*.csv`, `*.parquet`, a folder with `calendars/` is qlib's, any other folder CSV). */
  readonly format?: 'qlib' | 'csv' | 'parquet';
  /** qlib: the membership list `instruments/<market>.txt`. Default: the only one there, else `all`. */
  readonly market?: string;
  /** CSV, Parquet: a membership file in qlib's form, `CODE<tab>start<tab>end` a line. Default: all stocks, always. */
  readonly members?: string;
  /** Code of the benchmark index within the data. Default: none (equal-weight members serve as benchmark). */
  readonly index?: string;
  /**
   * CSV, Parquet: the source's name of each column where it differs from ours; case does not matter. `adjusted`: a close
   * adjusted for splits and dividends, beside prices that are not. All prices of a row are then multiplied by
   * adjusted / close, and the volume is divided by it.
   */
  readonly columns?: Partial<Record<ColumnName, string>>;
  /** CSV: the character between two cells. Default `,`. */
  readonly delimiter?: string;
  /** First and last day to keep, inclusive. Leave a window of days before the first training day. Default: all. */
  readonly start?: string;
  readonly end?: string;
  /**
   * A price of zero or less: `refuse` stops with an error, `missing` takes the stock as suspended on that day (some
   * vendors write zeros for that). Default `refuse`.
   */
  readonly nonPositive?: 'refuse' | 'missing';
  /** Largest move of a price within a day that a model is to believe, as a fraction; see `clipMoves`. Default null: any. */
  readonly maxMove?: number | null;
}

export type ColumnName = Field | 'date' | 'symbol' | 'adjusted';

/** A panel, and what was noticed, dropped or clipped on the way to it. */
export interface Reading {
  /** Prices as they were: for scores and backtests. */
  readonly panel: Panel;
  /** What a model is to see of them: the same panel, or a copy without moves beyond `maxMove`. */
  readonly cleaned: Panel;
  readonly notes: Notes;
}

/** The wanted dates as `YYYY-MM-DD` strings that compare like dates; open ends are the extremes. */
export function dateBounds(source: DataSource): { start: string; end: string } {
  for (const key of ['start', 'end'] as const) {
    const text = source[key];
    if (text !== undefined && (!/^\d{4}-\d{2}-\d{2}$/.test(text) || parseDay(text) === undefined)) {
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
 * was taken as missing.
 * @param place called only for an error or a note, so that a good row costs no string
 */
export function acceptRow(
  cell: Float32Array,
  fields: readonly (Field | 'adjusted')[],
  rule: 'refuse' | 'missing',
  notes: Notes,
  place: () => { file: string; line?: number; what: string },
): boolean {
  for (let f = 0; f < fields.length; f++) {
    const x = cell[f]!;
    if (x >= LEAST && x <= (fields[f] === 'volume' ? MOST_VOLUME : MOST_PRICE)) continue;
    if (Number.isNaN(x)) continue;
    const { file, line, what } = place();
    const where = { file, line };
    if (x > 1) throw new InputError(`${fields[f]} of ${what} is infinite or too large`, where);
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
      'row with a price of zero or less taken as a suspension',
      `${fields[f]} of ${what} is ${x} in ${file}${line === undefined ? '' : `:${line}`}`,
    );
    cell.fill(Number.NaN);
    return false;
  }
  return true;
}

/**
 * What is believed of a price and a volume. Far beyond any market, and so that a ratio of two of them is a float32: smaller
 * prices lose their digits, and a move between the extremes would be infinite.
 */
const LEAST = 1e-15;
const MOST_PRICE = 1e15;
const MOST_VOLUME = 1e22;
