import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { columnCount, type FeatureSpec, gatherFeatures } from '../../src/forecast/data/features.js';
import {
  fitNormaliser,
  MedianMemory,
  normaliserFromJson,
  normaliserToJson,
} from '../../src/forecast/data/normaliser.js';
import { FIELDS, type PricePanel, samplesBetween } from '../../src/forecast/data/panel.js';
import { Random } from '../../src/random.js';
import { dates, panelOfCloses } from './panels.js';

/** Two stocks, three days; open, high, low, close, volume of each. */
const panel: PricePanel = {
  calendar: dates(3),
  symbols: ['A', 'B'],
  fields: FIELDS,
  members: new Uint8Array(6).fill(1),
  values: Float32Array.of(
    ...[1, 3, 1, 2, 10, 8, 8, 8, 8, 1],
    ...[2, 5, 2, 4, 30, NaN, NaN, NaN, NaN, NaN],
    ...[4, 8, 2, 4, 20, 16, 16, 8, 8, 4],
  ),
};
const samples = samplesBetween(panel, 0, 2);
const spec: FeatureSpec = { kind: 'ohlcv', window: 2 };

function gathered(layout: 'time-major' | 'flat', positions: number[], chosen: FeatureSpec = spec): number[] {
  const out = new Float32Array(positions.length * columnCount(chosen));
  gatherFeatures(panel, chosen, samples, Int32Array.from(positions), out, layout);
  return [...out];
}

describe('samples', () => {
  it('are the members with a close and a volume, by day and stock', () => {
    expect([...samples.day]).toEqual([0, 0, 1, 2, 2]);
    expect([...samples.stock]).toEqual([0, 1, 0, 0, 1]);
    expect([...samples.dayStarts]).toEqual([0, 2, 3, 5]);
    const outside = { ...panel, members: Uint8Array.of(1, 0, 1, 1, 0, 1), values: panel.values.slice() };
    outside.values[4] = 0;
    expect([...samplesBetween(outside, 0, 2).day]).toEqual([1, 2]);
  });
});

describe('features', () => {
  it('are prices over the last close and volumes over the last volume', () => {
    // A on day 2 (position 3): close 4, volume 20. Day 1: 2 5 2 4 30; day 2: 4 8 2 4 20. Order open close high low volume.
    const day1 = [2 / 4, 4 / 4, 5 / 4, 2 / 4, 30 / 20];
    const day2 = [4 / 4, 4 / 4, 8 / 4, 2 / 4, 20 / 20];
    expect(gathered('time-major', [3])).toEqual([...day1, ...day2]);
    expect(gathered('flat', [3])).toEqual([0, 1, 2, 3, 4].flatMap((f) => [day1[f]!, day2[f]!]));
  });

  it('are NaN where the stock was suspended or the data had not begun', () => {
    // B on day 2: suspended on day 1. A on day 0: nothing before.
    expect(gathered('time-major', [4]).slice(0, 5)).toEqual([NaN, NaN, NaN, NaN, NaN]);
    expect(gathered('time-major', [4]).slice(5)).toEqual([2, 1, 2, 1, 1]);
    expect(gathered('time-major', [0]).slice(0, 5)).toEqual([NaN, NaN, NaN, NaN, NaN]);
  });

  it('of a batch lie [L, B, F] or [B, F·L]', () => {
    const a = gathered('time-major', [3]);
    const b = gathered('time-major', [4]);
    expect(gathered('time-major', [3, 4])).toEqual([...a.slice(0, 5), ...b.slice(0, 5), ...a.slice(5), ...b.slice(5)]);
    expect(gathered('flat', [3, 4])).toEqual([...gathered('flat', [3]), ...gathered('flat', [4])]);
  });

  it('alpha360 are qlib’s six fields, each from the oldest day to the newest; vwap is missing where the data has none', () => {
    const alpha: FeatureSpec = { kind: 'alpha360', window: 2 };
    expect(columnCount({ kind: 'alpha360', window: 60 })).toBe(360);
    expect(gathered('flat', [3], alpha)).toEqual([1, 1, 0.5, 1, 1.25, 2, 0.5, 0.5, NaN, NaN, 1.5, 1]);
  });

  it('alpha360 take vwap from the panel where it has one', () => {
    const values = Float32Array.from(
      Array.from({ length: 6 }, (_, i) => [...panel.values.slice(i * 5, i * 5 + 5), 3]).flat(),
    );
    const withVwap: PricePanel = { ...panel, fields: [...FIELDS, 'vwap'], values };
    const out = new Float32Array(12);
    gatherFeatures(withVwap, { kind: 'alpha360', window: 2 }, samples, Int32Array.of(3), out, 'flat');
    expect([...out.subarray(8, 10)]).toEqual([0.75, 0.75]);
  });

  it('refuse a window of no days', () => {
    expect(() => columnCount({ kind: 'ohlcv', window: 0 })).toThrow(/window: 0 is not a window/);
  });
});

describe('the median', () => {
  const median = (values: Float32Array): number => {
    const memory = new MedianMemory(values.length);
    memory.values.set(values);
    memory.keepKnown(values.length);
    return memory.median();
  };

  it('is that of the sorted values', () => {
    const value = fc.float({ noNaN: true, noDefaultInfinity: true, min: Math.fround(-1e30), max: Math.fround(1e30) });
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 40 }), (values) => {
        const sorted = Float32Array.from(values).sort();
        const upper = sorted[values.length >> 1]!;
        const expected = values.length % 2 === 1 ? upper : (sorted[values.length / 2 - 1]! + upper) / 2;
        // Plus zero: −0 and 0 are the same median.
        expect(median(Float32Array.from(values)) + 0).toBe(expected + 0);
      }),
    );
    expect(median(new Float32Array(0))).toBeNaN();
  });

  it('of many values is exact too, in whatever order they come and however often', () => {
    const draws = new Random('median');
    const orders: Record<string, (i: number) => number> = {
      'at random': () => draws.uniform() - 0.3,
      ascending: (i) => i - 4000,
      'few values': () => draws.int(3) - 1,
      // Every fifth value, which a sample with that step alone would see, is far above the others.
      'misleading to a sample': (i) => (i % 5 === 0 ? 100 + i : -i),
    };
    for (const [order, value] of Object.entries(orders)) {
      for (const length of [5120, 5121, 9999, 60000]) {
        const values = Float32Array.from({ length }, (_, i) => value(i));
        const sorted = values.toSorted();
        const expected = (sorted[(length - 1) >> 1]! + sorted[length >> 1]!) / 2;
        expect(median(values) + 0, order).toBe(expected + 0);
      }
    }
  });
});

describe('the normaliser', () => {
  it('is the robust z-score of each column over the given samples', () => {
    // Closes of yesterday over today's, window 2, close column 0 (f = 1, l = 0): for closes 1, 2, 3, 6, 5.4 of one stock
    // 1/2, 2/3, 1/2, 10/9 on days 1 to 4. Median (1/2 + 2/3) / 2 = 7/12; deviations 1/12, 1/12, 1/12, 19/36: MAD 1/12.
    const closes = panelOfCloses({ A: [1, 2, 3, 6, 5.4] });
    const all = samplesBetween(closes, 0, 4);
    const normaliser = fitNormaliser(closes, spec, all);
    const column = 1 * 2 + 0;
    expect(normaliser.centre[column]).toBeCloseTo(7 / 12, 6);
    expect(normaliser.factor[column]).toBeCloseTo(12 / 1.4826, 4);

    const out = new Float32Array(5 * 10);
    gatherFeatures(closes, spec, all, Int32Array.of(0, 1, 2, 3, 4), out, 'flat', normaliser);
    const got = [0, 1, 2, 3, 4].map((b) => out[b * 10 + column]!);
    // (1/2 − 7/12) · 12 / 1.4826 = −1 / 1.4826; 1 / 1.4826; (10/9 − 7/12) · 12 / 1.4826 = 4.27, clipped to 3.
    const unit = 1 / 1.4826;
    [0, -unit, unit, -unit, 3].forEach((expected, b) => {
      expect(got[b]).toBeCloseTo(expected, 4);
    });
    // Today's close over itself is 1 everywhere: no deviation, and 0 after normalising.
    expect([0, 1, 2, 3, 4].map((b) => out[b * 10 + 3])).toEqual([0, 0, 0, 0, 0]);
  });

  it('is fitted on the given samples alone and saved exactly', () => {
    const first = samplesBetween(panel, 0, 1);
    const fitted = fitNormaliser(panel, spec, first);
    const changed = { ...panel, values: panel.values.map((x, i) => (i >= 20 ? x * 7 : x)) };
    expect(fitNormaliser(changed, spec, first)).toEqual(fitted);
    expect(normaliserFromJson(JSON.parse(JSON.stringify(normaliserToJson(fitted))))).toEqual(fitted);
    expect(() => normaliserFromJson({ kind: 'robust', clip: 3, centre: [1], factor: [] }, 'run/n.json')).toThrow(
      /run\/n\.json: normaliser: not a normaliser/,
    );
  });

  it('turns what is missing into 0', () => {
    const out = new Float32Array(12);
    const alpha: FeatureSpec = { kind: 'alpha360', window: 2 };
    const normaliser = fitNormaliser(panel, alpha, samples);
    gatherFeatures(panel, alpha, samples, Int32Array.of(4), out, 'flat', normaliser);
    expect([out[0], out[8], out[9]]).toEqual([0, 0, 0]);
    expect(() => gatherFeatures(panel, spec, samples, Int32Array.of(4), out, 'flat', normaliser)).toThrow(
      /12 columns, the features 10/,
    );
  });
});
