import { describe, expect, it } from 'vitest';
import { openForecastData, staleStocks, withStaleLabels } from '../../src/forecast/data/dataset.js';
import type { PricePanel, Samples } from '../../src/forecast/index.js';
import { STATUS, smallConfig, smallProblem } from './small-market.js';

const STALE = { corruption: { stale: 0.5, days: 2 } };

/** Closes of each stock, day by day. */
function panelOf(closes: readonly (readonly number[])[]): PricePanel {
  const days = closes[0].length;
  const values = Float32Array.from({ length: days * closes.length }, (_, at) => {
    return closes[at % closes.length][Math.floor(at / closes.length)];
  });
  return {
    calendar: closes[0].map((_, day) => `2015-01-${String(day + 1).padStart(2, '0')}`),
    symbols: closes.map((_, stock) => `S${stock}`),
    fields: ['close'],
    values,
    members: new Uint8Array(values.length).fill(1),
  };
}

/** Every stock on each of the days `first` to `last`. */
function samplesOf(stocks: number, first: number, last: number): Samples {
  const length = (last - first + 1) * stocks;
  return {
    length,
    day: Int32Array.from({ length }, (_, i) => first + Math.floor(i / stocks)),
    stock: Int32Array.from({ length }, (_, i) => i % stocks),
    dayStarts: Int32Array.from({ length: last - first + 2 }, (_, d) => d * stocks),
  };
}

describe('stale stocks', () => {
  // Moves of 1, 3 and 2 % up and down until day 5; later ones must not count.
  const wave = (move: number) => Array.from({ length: 8 }, (_, t) => (t > 5 ? 1000 * t : 100 * (1 + move * (t % 2))));
  const panel = panelOf([wave(0.01), wave(0.03), wave(0.02)]);

  it('are the most volatile of the training days', () => {
    const stale = staleStocks(panel, samplesOf(3, 0, 5), 0.34)!;
    expect([...stale.volatility]).toEqual([0, 1, 0.5]);
    expect([...stale.isStale]).toEqual([0, 1, 0]);
    expect(staleStocks(panel, samplesOf(3, 0, 5), 0)).toBeUndefined();
  });

  it('have the main label of some days before, and no other label is touched', () => {
    // Two stocks on days 0 to 3, labels [day·10 + stock, −(day·10 + stock)]; stock 1 is stale by 2 days.
    const samples = samplesOf(2, 0, 3);
    const labels = Float32Array.from({ length: 16 }, (_, at) => {
      const i = Math.floor(at / 2);
      return (at % 2 === 0 ? 1 : -1) * (10 * samples.day[i] + samples.stock[i]);
    });
    const stale = { isStale: Uint8Array.of(0, 1), volatility: Float32Array.of(0, 1) };
    const options = { main: 0, tasks: 2, days: 2, stocks: 2 };
    const { labels: found } = withStaleLabels({ samples, labels }, stale, options);
    expect([...found].map((label) => label + 0)).toEqual(
      [
        [0, 0],
        [Number.NaN, -1],
        [10, -10],
        [Number.NaN, -11],
        [20, -20],
        [1, -21],
        [30, -30],
        [11, -31],
      ].flat(),
    );
    const alone = { ...options, tasks: 1 };
    expect(() => withStaleLabels({ samples, labels }, stale, alone)).toThrow('problem.tasks: expected a second task');
  });
});

it('validation, test and the inputs of training stay as they are', async () => {
  const [clean, stale] = [await openForecastData(smallConfig()), await openForecastData(smallConfig(STALE))];
  expect(stale.validation.labels).toEqual(clean.validation.labels);
  expect(stale.test.labels).toEqual(clean.test.labels);
  expect(stale.normaliser).toEqual(clean.normaliser);
  expect(clean.stale).toBeUndefined();
  expect(stale.stale!.isStale.reduce((sum, one) => sum + one, 0)).toBe(10);
  // Stale samples of the first days have no label to be given; all others are there.
  expect(stale.train.samples.length).toBeLessThan(clean.train.samples.length);
  expect(stale.train.labels.every((label) => !Number.isNaN(label))).toBe(true);
});

it('the scheduler sees the volatility, and the oracle keeps stale samples off the main task', async () => {
  const [problem, plain] = [await smallProblem(STALE), await smallProblem()];
  expect(plain.oracle).toBeUndefined();
  expect(plain.features.at(-1)!.name).toBe('labels');
  expect(problem.features.at(-1)).toEqual({ name: 'instrument', width: 1 });
  const { stale } = await openForecastData(smallConfig(STALE));
  const batch = problem.nextBatch();
  const seen = new Float32Array(batch.positions.length);
  await problem.writeFeatures(batch, STATUS, ['instrument'], seen);
  const rows = problem.oracle!(batch);
  batch.positions.forEach((position, i) => {
    const stock = batch.samples.stock[position];
    expect(seen[i]).toBe(stale!.volatility[stock]);
    const isStale = seen[i] > 0.5;
    expect([...rows.subarray(3 * i, 3 * i + 3)]).toEqual(isStale ? [0, 0.5, 0.5] : [0.5, 0.25, 0.25]);
  });
  await problem.close();
  await plain.close();
});
