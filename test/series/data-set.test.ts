import { describe, expect, it } from 'vitest';
import { dataName } from '../../src/run/index.js';
import { seriesData, seriesKind, syntheticSeries, windowsAt } from '../../src/series/index.js';
import { smallConfig, tableOf } from './small-series.js';

/** y_t = t², 20 rows; windows of 3, horizons 1 and 2: rows 0–11 train, 12–15 validate, 16–19 test. */
const SQUARES = Array.from({ length: 20 }, (_, t) => t * t);
const config = smallConfig({ tasks: [2, 1], main: 2, window: 3 });
const squares = seriesData(config, tableOf({ x: SQUARES.map((_, t) => (t % 2 === 0 ? 1 : 3)), y: SQUARES }));

describe('the samples', () => {
  it('lie in their part with all their labels, and their windows do not begin before the series', () => {
    // The furthest label is 2 rows ahead; the first whole window ends at row 2.
    expect([...squares.parts.train]).toEqual([2, 3, 4, 5, 6, 7, 8, 9]);
    expect([...squares.parts.validation]).toEqual([12, 13]);
    expect([...squares.parts.test]).toEqual([16, 17]);
    expect(squares.parts.reward).toHaveLength(0);
  });

  it('give the first share of the validation part to the reward, purged as well', () => {
    const table = tableOf({ y: Array.from({ length: 100 }, (_, t) => t) });
    const { parts } = seriesData(smallConfig({ tasks: [5], main: 5, validation: { reward: 0.5 } }), table);
    // Rows 60 to 79: 60–69 are reward, 70–79 validation; a label lies 5 rows ahead.
    expect([...parts.reward]).toEqual([60, 61, 62, 63, 64]);
    expect([...parts.validation]).toEqual([70, 71, 72, 73, 74]);
    const some = seriesData(smallConfig({ tasks: [5], main: 5, validation: { every: 3 } }), table).parts;
    expect([...some.validation]).toEqual([60, 63, 66, 69, 72]);
    expect(some.test).toHaveLength(15);
  });

  it('come from every block, and no window of the training part reaches into the block before', () => {
    const table = tableOf({ y: Array.from({ length: 40 }, (_, t) => (t < 20 ? t : 100 * t)) });
    const options = { tasks: [1], main: 1, window: 3, split: { blocks: 2 } };
    const { parts, normaliser } = seriesData(smallConfig(options), table);
    // Each block of 20 rows: 12 to train on, 4 to validate, 4 to test; a label lies one row ahead.
    expect([...parts.train]).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 22, 23, 24, 25, 26, 27, 28, 29, 30]);
    expect([...parts.validation]).toEqual([12, 13, 14, 32, 33, 34]);
    expect([...parts.test]).toEqual([16, 17, 18, 36, 37, 38]);
    // Rows 0 to 11 and 20 to 31: half the mean of 0 … 11, half that of 2,000, 2,100 … 3,100.
    expect(normaliser.centre[0]).toBeCloseTo((5.5 + 2550) / 2, 9);
  });

  it('step over rows if asked to', () => {
    const hours = seriesData(
      smallConfig({ tasks: [2], main: 2, window: 3, step: 4 }),
      tableOf({ y: Array.from({ length: 100 }, (_, t) => 2 * t) }),
    );
    // The window spans 2·4 rows before its last one, the label looks 2·4 ahead.
    expect(hours.parts.train[0]).toBe(8);
    expect(hours.parts.train.at(-1)).toBe(51);
    expect(hours.labelScales).toEqual([16]);
    const [first, second, third] = windowsAt(hours, Int32Array.of(20));
    const { centre, scale } = hours.normaliser;
    expect([first, second, third].map((x) => Math.round(x * scale[0] + centre[0]))).toEqual([24, 32, 40]);
  });
});

describe('labels', () => {
  it('are y_{t+h} − y_t over its root mean square in training', () => {
    // (t+1)² − t² = 2t + 1 and (t+2)² − t² = 4t + 4, over t = 2 … 9.
    const ts = [2, 3, 4, 5, 6, 7, 8, 9];
    const rms = (change: (t: number) => number) => Math.sqrt(ts.reduce((sum, t) => sum + change(t) ** 2, 0) / 8);
    const scales = [rms((t) => 2 * t + 1), rms((t) => 4 * t + 4)];
    expect(squares.horizons).toEqual([1, 2]);
    expect(squares.main).toBe(1);
    scales.forEach((scale, k) => {
      expect(squares.labelScales[k]).toBeCloseTo(scale, 9);
    });
    expect(squares.labels[2 * 13]).toBeCloseTo(27 / scales[0], 5);
    expect(squares.labels[2 * 13 + 1]).toBeCloseTo(56 / scales[1], 5);
    expect(squares.labels[2 * 19]).toBeNaN();
  });

  it('have the spread of the target over the window beside them', () => {
    // The window 9, 16, 25 ends at row 5: mean 50/3, variance (9² + 16² + 25²)/3 − (50/3)².
    const raw = Math.sqrt((81 + 256 + 625) / 3 - (50 / 3) ** 2);
    expect(squares.spread[5]).toBeCloseTo(raw / squares.normaliser.scale[1], 5);
    expect(squares.spread[1]).toBeNaN();
  });
});

describe('nothing of the future', () => {
  const options = { rows: 500, seed: 3 };
  const before = seriesData(smallConfig(), syntheticSeries(options));

  it.each([300, 350, 450])('reaches back over row %i', (row) => {
    const table = syntheticSeries(options);
    for (const column of table.columns) column.fill(7, row);
    const after = seriesData(smallConfig(), table);
    const [D, K] = [3, 3];
    // The training part is rows 0 to 299, so that no scale may change either.
    expect(after.normaliser).toEqual(before.normaliser);
    expect(after.labelScales).toEqual(before.labelScales);
    expect(after.rows.subarray(0, row * D)).toEqual(before.rows.subarray(0, row * D));
    expect(after.rows.subarray(row * D)).not.toEqual(before.rows.subarray(row * D));
    expect(after.spread.subarray(0, row)).toEqual(before.spread.subarray(0, row));
    // A label of 6 steps sees row t + 6.
    expect(after.labels.subarray(0, (row - 6) * K)).toEqual(before.labels.subarray(0, (row - 6) * K));
    for (const part of ['train', 'validation'] as const) {
      const own = before.parts[part].filter((t) => t + 6 < row);
      expect(windowsAt(after, own)).toEqual(windowsAt(before, own));
    }
  });

  it('reaches the training part from any other, and values of the training part do reach its scales', () => {
    const last = Math.max(...before.parts.train);
    expect(last + 6).toBe(299);
    const table = syntheticSeries(options);
    for (const column of table.columns) column[299] = 7;
    const after = seriesData(smallConfig(), table);
    expect(after.normaliser).not.toEqual(before.normaliser);
    expect(after.labelScales).not.toEqual(before.labelScales);
  });
});

it.each([
  [{ main: 5 }, 'problem.main: 5 is not among the tasks 1, 3, 6'],
  [{ split: { train: 0.9 } }, 'problem.split: expected shares that sum to 1, found 1.3'],
  [{ tasks: [3, 130] }, 'problem.split.validation: rows 361 to 480 have no sample with a window of 8 rows'],
  [{ validation: { reward: 0.02 } }, 'problem.validation.reward: rows 361 to 362 have no sample'],
])('refuses %j', (over, message) => {
  expect(() => seriesData(smallConfig(over), syntheticSeries({ rows: 600, seed: 1 }))).toThrow(message);
});

it('a made-up series is not called a market', () => {
  expect(dataName(smallConfig().data, seriesKind.madeUpData)).toMatch(/^synthetic series, seed \d+$/);
});
