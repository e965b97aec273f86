import { describe, expect, it } from 'vitest';
import { clean } from '../../src/forecast/data/clean.js';
import { labelTable } from '../../src/forecast/data/labels.js';
import { samplesBetween, valueAt } from '../../src/forecast/data/panel.js';
import { Notes } from '../../src/forecast/formats/format.js';
import { syntheticMarket } from '../../src/forecast/formats/synthetic.js';

const market = syntheticMarket({ stocks: 150, days: 600, seed: 11 });

function correlation(pairs: readonly (readonly [number, number])[]): number {
  const known = pairs.filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y));
  const mean = (i: 0 | 1): number => known.reduce((sum, pair) => sum + pair[i], 0) / known.length;
  const [mx, my] = [mean(0), mean(1)];
  let xx = 0;
  let yy = 0;
  let xy = 0;
  for (const [x, y] of known) {
    xx += (x - mx) ** 2;
    yy += (y - my) ** 2;
    xy += (x - mx) * (y - my);
  }
  return xy / Math.sqrt(xx * yy);
}

/** Correlation of rank labels with what the day's bar shows of the pressure: log(range below / range above) = q. */
function visiblePressure(panel: typeof market, horizons: number[]): number[] {
  const samples = samplesBetween(panel, 0, panel.calendar.length - 1);
  const labels = labelTable(panel, samples, { kind: 'daily', horizons, transform: 'rank' });
  const shown = [...samples.day].map((day, i) => {
    const stock = samples.stock[i]!;
    const [open, high, low, close] = (['open', 'high', 'low', 'close'] as const).map((f) =>
      valueAt(panel, day, stock, f),
    );
    return Math.log(Math.log(Math.min(open!, close!) / low!) / Math.log(high! / Math.max(open!, close!)));
  });
  return horizons.map((_, k) => correlation(shown.map((x, i) => [x, labels[i * horizons.length + k]!] as const)));
}

describe('the synthetic market', () => {
  it('is the same for the same seed and another for another', () => {
    const small = { stocks: 5, days: 40 };
    expect(syntheticMarket({ ...small, seed: 1 })).toEqual(syntheticMarket({ ...small, seed: 1 }));
    expect(syntheticMarket({ ...small, seed: 2 }).values).not.toEqual(syntheticMarket({ ...small, seed: 1 }).values);
  });

  it('trades on weekdays and lets every bar hold its open and close', () => {
    expect(market.calendar.slice(0, 6)).toEqual([
      '2015-01-05',
      '2015-01-06',
      '2015-01-07',
      '2015-01-08',
      '2015-01-09',
      '2015-01-12',
    ]);
    let bars = 0;
    let wrong = 0;
    for (let i = 0; i < market.values.length; i += 5) {
      const [open, high, low, close, volume] = market.values.subarray(i, i + 5) as unknown as [
        number,
        number,
        number,
        number,
        number,
      ];
      if (Number.isNaN(open)) continue;
      bars++;
      if (high < Math.max(open, close) || low > Math.min(open, close) || low <= 0 || volume <= 0) wrong++;
    }
    expect(bars).toBeGreaterThan(80_000);
    expect(wrong).toBe(0);
  });

  it('is clean already but for suspensions and late listings', () => {
    const copy = { ...market, values: market.values.slice(), members: market.members.slice() };
    const notes = new Notes();
    expect(clean(copy, 0.3, notes).panel.calendar).toEqual(market.calendar);
    expect(notes.list()).toEqual([]);
    const missing = market.values.filter(Number.isNaN).length / market.values.length;
    // 2 % of suspensions, and 10 % of the stocks absent for a quarter of the time on average: 4.5 %.
    expect(missing).toBeGreaterThan(0.025);
    expect(missing).toBeLessThan(0.07);
  });

  it('has volatility that clusters: squared returns of following days go together within a stock', () => {
    const pairs: [number, number][] = [];
    for (let stock = 0; stock < 150; stock++) {
      const closes = market.calendar.map((_, day) => valueAt(market, day, stock, 'close'));
      const squares = closes.slice(1).map((close, i) => Math.log(close / closes[i]!) ** 2);
      const known = squares.filter((x) => !Number.isNaN(x));
      // Relative to the stock's own mean, so that restless and calm stocks alone make no correlation.
      const mean = known.reduce((sum, x) => sum + x, 0) / known.length;
      for (let i = 1; i < squares.length; i++) pairs.push([squares[i - 1]! / mean, squares[i]! / mean]);
    }
    // GARCH(1,1) with a = 0.1, b = 0.85 has a (1 − ab − b²) / (1 − 2ab − b²) = 0.18; the sum of several parts less.
    expect(correlation(pairs)).toBeGreaterThan(0.05);
    expect(correlation(pairs)).toBeLessThan(0.25);
  });

  it('shows today what moves each of the next days, fading by ρ from one horizon to the next', () => {
    const [first, second, third] = visiblePressure(market, [1, 2, 3]) as [number, number, number];
    // α = 0.25 bounds it; factors and ranks take some of it. Ratios are ρ = 0.8, measured on 80,000 samples (± 0.004).
    expect(first).toBeGreaterThan(0.15);
    expect(first).toBeLessThan(0.25);
    expect(second / first).toBeCloseTo(0.8, 1);
    expect(third / second).toBeCloseTo(0.8, 1);
  });

  it('shows nothing of the next days when the strength is 0', () => {
    const [first] = visiblePressure(syntheticMarket({ stocks: 150, days: 600, seed: 11, strength: 0 }), [1]);
    expect(Math.abs(first!)).toBeLessThan(0.02);
  });

  it('refuses sizes that make no market', () => {
    expect(() => syntheticMarket({ stocks: 0 })).toThrow(/stocks: 0 is out of range/);
    expect(() => syntheticMarket({ days: 1.5 })).toThrow(/days: 1\.5 is out of range/);
    expect(() => syntheticMarket({ start: 'Monday' })).toThrow(/start: "Monday" is not a date/);
  });
});
