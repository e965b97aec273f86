import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseLength, type WalkForward } from '../../src/forecast/config.js';
import { meanRanks, windowAt } from '../../src/forecast/forecaster.js';
import { planMembers, windowsOf } from '../../src/forecast/members.js';
import { trainConfigSchema } from '../../src/problems/index.js';
import { loadValues } from '../../src/run/index.js';
import { SMALL, smallConfig } from './small-market.js';

/** Monday to Friday. */
function weekdays(from: string, to: string): string[] {
  const days: string[] = [];
  for (let day = Date.parse(from); day <= Date.parse(to); day += 864e5) {
    if (new Date(day).getUTCDay() % 6 !== 0) days.push(new Date(day).toISOString().slice(0, 10));
  }
  return days;
}

const walk = (over: Partial<WalkForward> = {}): WalkForward => ({
  train: '4y',
  validation: '1y',
  step: '6m',
  expanding: false,
  warmStart: false,
  ...over,
});
const calendar = weekdays('2010-01-01', '2016-03-31');
const open = { calendar, from: '2010-01-01', to: '9999-12-31', reach: 3 };

describe('windows', () => {
  it('are steps apart, and their test parts follow each other', () => {
    expect(windowsOf(walk(), open)).toEqual([
      {
        train: ['2010-01-01', '2013-12-31'],
        validation: ['2014-01-01', '2014-12-31'],
        test: ['2015-01-01', '2015-06-30'],
      },
      {
        train: ['2010-07-01', '2014-06-30'],
        validation: ['2014-07-01', '2015-06-30'],
        test: ['2015-07-01', '2015-12-31'],
      },
      {
        train: ['2011-01-01', '2014-12-31'],
        validation: ['2015-01-01', '2015-12-31'],
        test: ['2016-01-01', '2016-06-30'],
      },
    ]);
    const ended = windowsOf(walk({ expanding: true }), { ...open, to: '2015-09-30' });
    expect(ended.map(({ train, test }) => [train[0], ...test])).toEqual([
      ['2010-01-01', '2015-01-01', '2015-06-30'],
      ['2010-01-01', '2015-07-01', '2015-09-30'],
    ]);
  });

  it('end with short months, and leave out test parts without a trading day', () => {
    const months = windowsOf(walk({ train: '1m', validation: '1m', step: '1m' }), { ...open, from: '2011-12-31' });
    expect(months.slice(0, 2).map(({ validation, test }) => [...validation, ...test])).toEqual([
      ['2012-01-31', '2012-02-28', '2012-02-29', '2012-03-30'],
      ['2012-02-29', '2012-03-30', '2012-03-31', '2012-04-29'],
    ]);
    // 2010-01-15 is a Friday.
    const days = windowsOf(walk({ train: '1w', validation: '1w', step: '1d' }), { ...open, to: '2010-01-18' });
    expect(days.map(({ test }) => test[0])).toEqual(['2010-01-15', '2010-01-18']);
  });

  it('never overlap the future, tile their tests, and stay as they are when data are added', () => {
    const length = fc
      .tuple(fc.integer({ min: 1, max: 9 }), fc.constantFrom('m', 'w'))
      .map(([n, unit]) => `${n}${unit}`);
    fc.assert(
      fc.property(length, length, length, fc.integer({ min: 420, max: 900 }), (train, validation, step, days) => {
        const all = windowsOf(walk({ train, validation, step }), open);
        for (const [i, window] of all.entries()) {
          const borders = [...window.train, ...window.validation, ...window.test];
          expect(borders).toEqual(borders.toSorted());
          if (i > 0) expect(Date.parse(window.test[0]) - Date.parse(all[i - 1].test[1])).toBe(864e5);
        }
        const fewer = { ...open, calendar: calendar.slice(0, days) };
        const some = windowsOf(walk({ train, validation, step }), fewer);
        expect(all.slice(0, some.length)).toEqual(some);
      }),
      { numRuns: 60 },
    );
  });

  it('are as long as a number and a unit say', () => {
    expect(['4y', '6m', '2w', '30d'].map(parseLength)).toEqual([
      { months: 48, days: 0 },
      { months: 6, days: 0 },
      { months: 0, days: 14 },
      { months: 0, days: 30 },
    ]);
    const isLength = fc.tuple(fc.integer({ min: 1, max: 99999 }), fc.constantFrom('y', 'm', 'w', 'd'));
    fc.assert(fc.property(isLength, ([n, unit]) => parseLength(`${n}${unit}`) !== undefined));
    fc.assert(fc.property(fc.string(), (text) => /^\d+[ymwd]$/.test(text) || parseLength(text) === undefined));
  });
});

describe('bad keys get one sentence', () => {
  const sentence = (split: unknown, over: object = {}) => {
    const config = { problem: { ...SMALL, split, ...over }, strategy: { name: 'fixed' } };
    try {
      loadValues(trainConfigSchema, config);
    } catch (error) {
      return (error as Error).message;
    }
    return '';
  };
  it.each<[unknown, RegExp]>([
    [
      { walkForward: walk({ step: '0m' }) },
      /^problem\.split\.walkForward\.step: expected a whole number above 0 and a unit, y .*such as 6m, found "0m"$/,
    ],
    [
      { walkForward: walk({ train: '4q' }) },
      /^problem\.split\.walkForward\.train: expected .* y \(years\), m .*found "4q"$/,
    ],
    [{ walkForward: { ...walk(), step: 0 } }, /^problem\.split\.walkForward\.step: expected text, found 0$/],
    [{ walkForward: { ...walk(), stride: '1m' } }, /^problem\.split\.walkForward\.stride: unknown key/],
    [
      { train: SMALL.split.train, test: SMALL.split.test },
      /^problem\.split\.validation: missing, expected .*walkForward/,
    ],
  ])('%j', (split, expected) => expect(sentence(split)).toMatch(expected));

  it('of windows longer than the data, too many, and of models that cannot start from others', async () => {
    const plan = (walkForward: WalkForward, over: object = {}) =>
      planMembers(smallConfig({ split: { walkForward }, ...over }), 1);
    await expect(plan({ ...walk(), from: '2015-02-30' })).rejects.toThrow(
      'walkForward.from: "2015-02-30" is not a date, expected YYYY-MM-DD',
    );
    await expect(plan(walk())).rejects.toThrow(
      /^problem\.split\.walkForward: 4y of training and 1y of validation from 2015-01-12 on leave no day to test: the data holds 2015-01-05 to 2015-08-14$/,
    );
    const tiny = walk({ train: '1m', validation: '1m', step: '1d' });
    await expect(plan(tiny, { seeds: 900 })).rejects.toThrow(
      /^problem\.seeds: it makes \d+ runs, expected at most 5000$/,
    );
    await expect(plan({ ...tiny, warmStart: true }, { model: { name: 'trees' } })).rejects.toThrow(
      /^problem\.split\.walkForward\.warmStart: a network can start from .*trees cannot$/i,
    );
    // A training part of a day has no sample whose labels end within it.
    await expect(plan(walk({ train: '1d', validation: '1m', step: '1m' }))).rejects.toThrow(
      /split\.train: there is no sample/,
    );
  });
});

describe('members', () => {
  const split = { walkForward: walk({ train: '2m', validation: '1m', step: '2m', warmStart: true }) };

  it('are a run for each window and seed, and start from the same seed of the window before', async () => {
    const plan = await planMembers(smallConfig({ split, seeds: 2 }), 3);
    // A third window would begin on 2015-08-12, and labels of three days end behind the data, on 2015-08-14.
    expect(plan?.members.map(({ name, seed, startsFrom }) => [name, seed, startsFrom])).toEqual([
      ['2015-04-12,seed=6', 6, undefined],
      ['2015-04-12,seed=7', 7, undefined],
      ['2015-06-12,seed=6', 6, '2015-04-12,seed=6'],
      ['2015-06-12,seed=7', 7, '2015-04-12,seed=7'],
    ]);
    expect(plan?.members[0].problem.split).toEqual({
      train: ['2015-01-12', '2015-03-11'],
      validation: ['2015-03-12', '2015-04-11'],
      test: ['2015-04-12', '2015-06-11'],
    });
    expect(plan?.members[0].problem.seeds).toBeUndefined();
    const others = await planMembers(smallConfig({ seeds: 2 }), 4);
    expect(others?.members.map(({ name }) => name)).toEqual(['seed=8', 'seed=9']);
    expect(await planMembers(smallConfig(), 1)).toBeUndefined();
  });

  it('are averaged by their daily ranks, as shares of the stocks of the day', () => {
    const samples = {
      length: 5,
      day: Int32Array.of(0, 0, 0, 1, 1),
      stock: Int32Array.of(0, 1, 2, 0, 1),
      dayStarts: Int32Array.of(0, 3, 5),
    };
    // Ranks of day 0: 3 1 2 and 1 2 3 of three; of day 1: 1 2 and a tie, 1.5 1.5, of two.
    const { forecasts, spread } = meanRanks(
      [Float32Array.of(9, -9, 0, 0.1, 0.2), Float32Array.of(1, 2, 3, 5, 5)],
      samples,
    );
    const expected = [(1 + 1 / 3) / 2, (1 / 3 + 2 / 3) / 2, (2 / 3 + 1) / 2, (0.5 + 0.75) / 2, (1 + 0.75) / 2];
    // The deviation (n − 1) of two values is their distance over √2.
    const apart = [2 / 3, 1 / 3, 1 / 3, 0.25, 0.25].map((distance) => distance / Math.SQRT2);
    for (const [i, value] of expected.entries()) expect(forecasts[i]).toBeCloseTo(value, 6);
    for (const [i, value] of apart.entries()) expect(spread[i]).toBeCloseTo(value, 6);
  });

  it('forecast the days from the beginning of their test part on', () => {
    const windows = windowsOf(walk(), open);
    const at = ['2012-05-05', '2015-01-01', '2015-06-30', '2015-07-01', '2030-01-01'].map((date) =>
      windowAt(windows, date),
    );
    expect(at).toEqual([0, 0, 0, 1, 2]);
  });
});
