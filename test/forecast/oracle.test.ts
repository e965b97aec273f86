import { describe, expect, it } from 'vitest';
import { forecastSchema } from '../../src/forecast/config.js';
import { labelTable } from '../../src/forecast/data/labels.js';
import { type PricePanel, samplesBetween } from '../../src/forecast/data/panel.js';
import { judge } from '../../src/forecast/evaluation/evaluation.js';
import { Random } from '../../src/random.js';
import { panelOfCloses } from './panels.js';
import { SMALL } from './small-market.js';

const STOCKS = 100;
const DAYS = 260;
const SIGMA = 0.02;

/** Independent returns with a deviation of 2 %: nothing but the future itself tells of the future. */
function randomWalks(): PricePanel {
  const random = new Random(1);
  const walk = () => {
    let price = 10;
    return Array.from({ length: DAYS }, () => {
      price *= 1 + SIGMA * random.normal();
      return price;
    });
  };
  return panelOfCloses(Object.fromEntries(Array.from({ length: STOCKS }, (_, s) => [`S${s}`, walk()])));
}

const panel = randomWalks();
const samples = samplesBetween(panel, 1, DAYS - 11);

/** The ten best of a hundred, all exchanged every day, so that a position is held for exactly one day. */
const DAILY = { top: 10, drop: 10, costs: { buy: 0, sell: 0, minimum: 0 } };

type Labels = { readonly kind: 'daily' | 'cumulative'; readonly shift: number };

const oracle = (labels: Labels, main: number) =>
  labelTable(panel, samples, { ...labels, horizons: [main], transform: 'raw' });

/** Excess over the equal-weight market a year, before costs, when the problem is told to be that of `labels`, `main`. */
function excess(labels: Labels, main: number, forecasts: Float32Array, options = DAILY): number {
  const config = forecastSchema.parse({ ...SMALL, tasks: [main], main, labels });
  return judge(config, panel, samples, forecasts, options).figures.backtest.excess.annualReturn;
}

/**
 * The best tenth of N(0, σ²) has the mean 1.755 σ = 3.5 % a day, of which 95 % is invested in it, or more: about 800 % of
 * a year of 238 days. Ten stocks drawn blindly have a deviation of σ / √10 = .63 % a day, so that the mean of 248 days
 * has one of .04 %, 9.6 % a year: four of them are 40 %.
 */
const NOTHING = 0.4;
const FORTUNE = 6;

const LABELS: readonly Labels[] = [
  { kind: 'daily', shift: 0 },
  { kind: 'daily', shift: 1 },
  { kind: 'daily', shift: 2 },
];

describe.each(LABELS)('a backtest of labels $kind with shift $shift', (labels) => {
  it.each([1, 2, 3, 5])('sees the oracle of main task %i, and of no other day', (main) => {
    expect(excess(labels, main, oracle(labels, main))).toBeGreaterThan(FORTUNE);
    for (const other of [1, 2, 3, 4, 5, 6]) {
      if (other !== main) expect(Math.abs(excess(labels, main, oracle(labels, other)))).toBeLessThan(NOTHING);
    }
  });

  it.each([1, 2, 3])('gives nothing for forecasts of main task %i that are noise or of other days', (main) => {
    const random = new Random(2);
    const noise = Float32Array.from({ length: samples.length }, () => random.normal());
    expect(Math.abs(excess(labels, main, noise))).toBeLessThan(NOTHING);
    // Whole days change places: the forecasts of a day are an oracle's of another day. All stocks trade every day.
    const days = Int32Array.from({ length: samples.length / STOCKS }, (_, d) => d);
    random.shuffle(days);
    const right = oracle(labels, main);
    const shuffled = Float32Array.from(right, (_, i) => right[days[Math.floor(i / STOCKS)]! * STOCKS + (i % STOCKS)]!);
    expect(Math.abs(excess(labels, main, shuffled))).toBeLessThan(NOTHING);
  });
});

describe.each([0, 1])('a backtest of cumulative labels with shift %i', (shift) => {
  it.each([1, 2, 3])('sees the oracle of main task %i from its first day on', (main) => {
    const labels = { kind: 'cumulative', shift } as const;
    // Of a sum over k days the first is 1 / k, so that the best tenth of the sums rises by 1.755 σ / √k on the first day.
    expect(excess(labels, main, oracle(labels, main))).toBeGreaterThan(FORTUNE / Math.sqrt(main));
    // The day before the label begins is over when the trade is made.
    const early = labelTable(panel, samples, { kind: 'daily', horizons: [1], shift: 0, transform: 'raw' });
    if (shift > 0) expect(Math.abs(excess(labels, main, early))).toBeLessThan(NOTHING);
  });
});

it('with slow turnover an oracle of the main task still earns the most', () => {
  // One of ten is exchanged a day: a tenth of the portfolio is the best of about 90, 2.5 σ = 5 %, so .5 % a day.
  const slow = { ...DAILY, drop: 1 };
  for (const { shift } of LABELS) {
    const labels = { kind: 'daily', shift } as const;
    expect(excess(labels, 1, oracle(labels, 1), slow)).toBeGreaterThan(0.9);
    expect(Math.abs(excess({ kind: 'daily', shift: shift + 1 }, 1, oracle(labels, 1), slow))).toBeLessThan(NOTHING);
  }
});

it('says where it trades, and whether anyone could', () => {
  const where = (labels: Labels, main: number) => {
    const config = forecastSchema.parse({ ...SMALL, tasks: [main], main, labels });
    const { labelDays, backtest } = judge(config, panel, samples, oracle(labels, main), DAILY).figures;
    return [backtest.delay, backtest.executable, labelDays];
  };
  expect(where({ kind: 'daily', shift: 0 }, 1)).toEqual([0, false, 1]);
  expect(where({ kind: 'daily', shift: 0 }, 2)).toEqual([1, true, 1]);
  expect(where({ kind: 'daily', shift: 1 }, 1)).toEqual([1, true, 1]);
  expect(where({ kind: 'daily', shift: 1 }, 3)).toEqual([3, true, 1]);
  expect(where({ kind: 'cumulative', shift: 0 }, 3)).toEqual([0, false, 3]);
  expect(where({ kind: 'cumulative', shift: 1 }, 3)).toEqual([1, true, 3]);
});

describe.each(['close', 'next-open', 'next-close'] as const)('a backtest that trades at the %s', (trade) => {
  const opened = { ...panel, values: panel.values.slice() };
  const at = (day: number, stock: number) => (day * STOCKS + stock) * 5;
  const random = new Random(7);
  // Opens lie anywhere between two closes, so that a return from open to open is no return from close to close.
  for (let day = 1; day < DAYS; day++) {
    for (let stock = 0; stock < STOCKS; stock++) {
      const [before, close] = [panel.values[at(day - 1, stock) + 3], panel.values[at(day, stock) + 3]];
      opened.values[at(day, stock)] = before + random.uniform() * (close - before);
    }
  }
  const price = (day: number, stock: number) =>
    trade === 'next-open' ? opened.values[at(day, stock)] : opened.values[at(day, stock) + 3];
  const delay = trade === 'close' ? 0 : 1;
  /** The return from the price of the trade to that of the next one. */
  const known = Float32Array.from(samples.day, (day, i) => {
    const stock = samples.stock[i];
    return price(day + delay + 1, stock) / price(day + delay, stock) - 1;
  });
  const config = forecastSchema.parse({ ...SMALL, tasks: [1], main: 1, backtest: { ...DAILY, trade, limit: null } });

  it('gives an oracle what it must', () => {
    const { figures } = judge(config, opened, samples, known);
    // A position is held from one trade to the next. Opens at random places between closes: their returns have a variance
    // of about two thirds of σ², so that the best tenth has 1.755 σ √(2/3).
    expect(figures.backtest.excess.annualReturn).toBeGreaterThan(trade === 'next-open' ? 0.75 * FORTUNE : FORTUNE);
    expect(figures.backtest).toMatchObject({ delay, executable: trade !== 'close' });
  });

  it('leaves a random forecast with minus its costs', () => {
    const noise = Float32Array.from({ length: samples.length }, () => random.normal());
    const costs = { buy: 0.01, sell: 0.01, minimum: 0 };
    const { figures, course } = judge(config, opened, samples, noise, { costs });
    const { excess: gross, excessAfterCosts, turnover } = figures.backtest;
    expect(Math.abs(gross.annualReturn)).toBeLessThan(NOTHING);
    // A hundredth of what is traded, every day.
    expect(excessAfterCosts.annualReturn - gross.annualReturn).toBeCloseTo(-0.01 * turnover * 238, 6);
    expect(excessAfterCosts.annualReturn).toBeLessThan(-3);
    expect(course.value.at(-1)).toBeLessThan(0.1 * course.value[0]);
  });
});
