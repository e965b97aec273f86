import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  firstDayFrom,
  formatDay,
  lastDayUntil,
  parseDay,
  type SplitDates,
  splitSamples,
} from '../../src/forecast/data/calendar.js';
import { clean } from '../../src/forecast/data/clean.js';
import { columnCount, gatherFeatures } from '../../src/forecast/data/features.js';
import { labelReach, labelTable } from '../../src/forecast/data/labels.js';
import { fitNormaliser } from '../../src/forecast/data/normaliser.js';
import type { PricePanel, Samples } from '../../src/forecast/data/panel.js';
import { Notes } from '../../src/forecast/formats/format.js';
import { syntheticMarket } from '../../src/forecast/formats/synthetic.js';

const panel = syntheticMarket({ stocks: 6, days: 60, seed: 3 });
const day = (i: number): string => panel.calendar[i]!;
const dates: SplitDates = { train: [day(10), day(29)], validation: [day(30), day(44)], test: [day(45), day(57)] };
const daysOf = (samples: Samples): number[] => [...new Set(samples.day)];

describe('splits', () => {
  it('end so early that no label of training or validation looks beyond its own part', () => {
    const { train, validation, test } = splitSamples(panel, dates, 3);
    expect([daysOf(train)[0], daysOf(train).at(-1)]).toEqual([10, 26]);
    expect([daysOf(validation)[0], daysOf(validation).at(-1)]).toEqual([30, 41]);
    expect([daysOf(test)[0], daysOf(test).at(-1)]).toEqual([45, 57]);
  });

  it.each(['train', 'validation'] as const)(
    'changing any price after the end of %s leaves its samples unchanged',
    (part) => {
      const spec = { kind: 'ohlcv', window: 8 } as const;
      const everything = (market: PricePanel): unknown => {
        const { cleaned } = clean(
          { ...market, values: market.values.slice(), members: market.members.slice() },
          0.3,
          new Notes(),
        );
        const label = { kind: 'daily', horizons: [1, 2, 5], transform: 'rank', shift: 1 } as const;
        const splits = splitSamples(cleaned, dates, labelReach(label));
        const samples = splits[part];
        const normaliser = fitNormaliser(cleaned, spec, splits.train);
        const features = new Float32Array(samples.length * columnCount(spec));
        gatherFeatures(cleaned, spec, samples, Int32Array.from(samples.day.keys()), features, 'flat', normaliser);
        return { samples, features, labels: labelTable(cleaned, samples, label) };
      };
      const before = everything(panel);
      const end = lastDayUntil(panel.calendar, dates[part][1]);
      const width = panel.fields.length;
      // All prices of a day alike: prices that cross each other are rejected.
      const change = fc.tuple(
        fc.integer({ min: (end + 1) * panel.symbols.length, max: panel.values.length / width - 1 }),
        fc.oneof(fc.constant(NaN), fc.double({ min: 0.01, max: 100, noNaN: true })),
      );
      fc.assert(
        fc.property(fc.array(change, { minLength: 1, maxLength: 400 }), (changes) => {
          const values = panel.values.slice();
          for (const [cell, factor] of changes) {
            for (let at = cell * width; at < (cell + 1) * width; at++) values[at] = factor * panel.values[at];
          }
          // Stock 0 keeps its prices, so that no day is emptied and dropped.
          for (let d = 0; d < panel.calendar.length; d++) {
            const at = d * panel.symbols.length * panel.fields.length;
            values.set(panel.values.subarray(at, at + panel.fields.length), at);
          }
          expect(everything({ ...panel, values })).toEqual(before);
        }),
        { numRuns: 25 },
      );
    },
  );

  it('without purging would look ahead: the test above can fail', () => {
    const { train } = splitSamples(panel, dates, 0);
    const label = { kind: 'daily', horizons: [1], transform: 'raw' } as const;
    const values = panel.values.map((x, i) => (i >= 30 * 6 * 5 ? x * 2 : x));
    expect(labelTable({ ...panel, values }, train, label)).not.toEqual(labelTable(panel, train, label));
  });

  it.each<[string, Partial<SplitDates>, number, RegExp]>([
    [
      'a part without samples',
      { train: ['2001-01-01', '2001-12-31'] },
      1,
      /split\.train: there is no sample between 2001-01-01/,
    ],
    [
      'a part shorter than the horizon',
      { train: [day(10), day(12)] },
      3,
      /split\.train: .* whose labels, up to 3 days ahead/,
    ],
    ['a part backwards', { validation: [day(44), day(30)] }, 1, /split\.validation: it begins on .*, after its end/],
    [
      'parts that overlap',
      { validation: [day(29), day(40)] },
      1,
      /split\.validation: it begins on .*, expected a day after/,
    ],
    ['a date that is none', { test: ['2020-1-1', '2020-02-01'] }, 1, /split\.test: "2020-1-1" is not a date/],
    [
      'a horizon beyond the data',
      { test: [day(58), day(59)] },
      5,
      /horizons: a horizon of 5 days lies beyond the data/,
    ],
  ])('refuse %s', (_, changes, reach, message) => {
    expect(() => splitSamples(panel, { ...dates, ...changes }, reach)).toThrow(message);
  });
});

describe('dates', () => {
  it('are read in three notations and only where the day exists', () => {
    const leap = 18321; // 2020-02-29: 50 years of 365 days, 12 leap days from 1972 to 2016, and 59 days.
    expect(
      ['2020-02-29', '20200229', '2020/02/29', '2020-02-29T00:00:00.000Z', '2020-02-29 00:00:00-05:00'].map(parseDay),
    ).toEqual(Array(5).fill(leap));
    expect(['2021-02-29', '2020-00-01', '2020-1-1', '2020-02/29', '2020-02-29 09:30', 'x', ''].map(parseDay)).toEqual(
      Array(7).fill(undefined),
    );
    expect(formatDay(leap)).toBe('2020-02-29');
  });

  it('find the days around a date', () => {
    const calendar = ['2020-01-02', '2020-01-03', '2020-01-06'];
    expect(['2020-01-01', '2020-01-03', '2020-01-04', '2020-01-07'].map((d) => firstDayFrom(calendar, d))).toEqual([
      0, 1, 2, 3,
    ]);
    expect(['2020-01-01', '2020-01-03', '2020-01-04', '2020-01-07'].map((d) => lastDayUntil(calendar, d))).toEqual([
      -1, 1, 1, 2,
    ]);
  });
});
