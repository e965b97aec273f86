import { InputError } from '../../errors.js';
import { firstDayFrom, lastDayUntil, parseDay } from './dates.js';
import type { Panel } from './panel.js';
import { type Samples, samplesBetween } from './samples.js';

/** First and last date, inclusive. */
export type DateRange = readonly [from: string, to: string];

/** The dates of the three parts, in this order in time. */
export interface SplitDates {
  readonly train: DateRange;
  readonly validation: DateRange;
  readonly test: DateRange;
}

/** The paper's split (section 4.3). */
export const PAPER_SPLIT: SplitDates = {
  train: ['2008-01-01', '2013-12-31'],
  validation: ['2014-01-01', '2015-12-31'],
  test: ['2016-01-01', '2020-08-01'],
};

export interface Splits {
  readonly train: Samples;
  readonly validation: Samples;
  readonly test: Samples;
}

const NAMES = ['train', 'validation', 'test'] as const;

/**
 * The samples of each part. Training and validation are purged: a sample of day t is kept only if day t + reach, the last
 * day its labels look at, still lies within its own part; so no price after a part's end has any influence on it. Nothing
 * follows the test part, so it is not purged: its last labels are prices after its end, or missing where the data ends.
 *
 * @param reach how many days ahead the labels look (`labelReach`); 0 keeps every sample
 */
export function splitSamples(panel: Panel, dates: SplitDates, reach: number): Splits {
  checkDates(dates);
  if (!Number.isInteger(reach) || reach < 0)
    throw new InputError(`cannot look ${reach} days ahead`, { key: 'horizons' });
  const part = (name: (typeof NAMES)[number]): Samples => {
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
  };
  return { train: part('train'), validation: part('validation'), test: part('test') };
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
      throw new InputError(`it begins on ${from}, expected a day after ${before}, the end of the part before`, {
        key: `split.${name}`,
      });
    }
    before = to;
  }
}
