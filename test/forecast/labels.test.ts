import { describe, expect, it } from 'vitest';
import { labelledSamples, labelReach, labelTable } from '../../src/forecast/data/labels.js';
import { samplesBetween } from '../../src/forecast/data/panel.js';
import { describeWithShared, readSharedJson } from '../shared.js';
import { panelOfCloses } from './panels.js';

const panel = panelOfCloses({ A: [1, 2, 3, 3, 6], B: [4, 2, Number.NaN, 8, 4] });

/** The labels of one stock, one row per day. */
function labels(stock: number, kind: 'daily' | 'cumulative', horizons: number[], shift?: number): number[][] {
  const samples = samplesBetween(panel, 0, 4);
  const table = labelTable(panel, samples, { kind, horizons, transform: 'raw', shift });
  const rows = [...samples.stock.keys()].filter((i) => samples.stock[i] === stock);
  return rows.map((i) => [...table.subarray(i * horizons.length, (i + 1) * horizons.length)]);
}

describe('labels', () => {
  it('daily are p(t+k) / p(t+k−1) − 1', () => {
    // A: 1 → 2 → 3 → 3 → 6.
    expect(labels(0, 'daily', [1, 3])).toEqual([
      [1, 0],
      [0.5, 1],
      [0, NaN],
      [1, NaN],
      [NaN, NaN],
    ]);
  });

  it('cumulative are p(t+k) / p(t) − 1', () => {
    expect(labels(0, 'cumulative', [1, 3])).toEqual([
      [1, 2],
      [0.5, 2],
      [0, NaN],
      [1, NaN],
      [NaN, NaN],
    ]);
  });

  it('are missing where a price they need is', () => {
    // B: 4 → 2 → suspended → 8 → 4; samples on days 0, 1, 3, 4.
    expect(labels(1, 'daily', [1, 2, 3])).toEqual([
      [-0.5, NaN, NaN],
      [NaN, NaN, -0.5],
      [-0.5, NaN, NaN],
      [NaN, NaN, NaN],
    ]);
    expect(labels(1, 'cumulative', [3])).toEqual([[1], [1], [NaN], [NaN]]);
  });

  it('with shift 1 are qlib’s: Ref(close, −2) / Ref(close, −1) − 1', () => {
    expect(labels(0, 'daily', [1], 1)).toEqual([[0.5], [0], [1], [NaN], [NaN]]);
    expect(labels(0, 'cumulative', [1, 2], 1)[0]).toEqual([0.5, 0.5]);
  });

  it('rank within their day, ties sharing the average, as (rank / n − 0.5) · 3.46', () => {
    // Day 0 → 1: returns 1, 0.5, 0.5 and one missing: ranks 3, 1.5, 1.5 of 3.
    const four = panelOfCloses({ A: [1, 2], B: [2, 3], C: [4, 6], D: [1, Number.NaN] });
    const table = labelTable(four, samplesBetween(four, 0, 0), { kind: 'daily', horizons: [1], transform: 'rank' });
    [(1 - 0.5) * 3.46, 0, 0].forEach((label, i) => {
      expect(table[i]).toBeCloseTo(label, 6);
    });
    expect(table[3]).toBeNaN();
  });

  it('can be dropped with their samples where they are unknown', () => {
    const samples = samplesBetween(panel, 0, 1); // (0, A), (0, B), (1, A), (1, B)
    const table = Float32Array.of(1, 2, NaN, 3, 4, NaN, 5, 6);
    const all = labelledSamples(samples, table, 2);
    expect([...all.labels]).toEqual([1, 2, 5, 6]);
    expect(all.samples).toEqual({
      length: 2,
      day: Int32Array.of(0, 1),
      stock: Int32Array.of(0, 1),
      dayStarts: Int32Array.of(0, 1, 2),
    });
    const main = labelledSamples(samples, table, 2, [0]);
    expect([...main.labels]).toEqual([1, 2, 4, NaN, 5, 6]);
    expect([...main.samples.dayStarts]).toEqual([0, 1, 3]);
  });

  it('look ahead by their largest horizon and the shift, and refuse what is no horizon', () => {
    expect(labelReach({ horizons: [1, 5, 3] })).toBe(5);
    expect(labelReach({ horizons: [2], shift: 1 })).toBe(3);
    expect(() => labelReach({ horizons: [] })).toThrow(/horizons: expected at least one/);
    expect(() => labelReach({ horizons: [0] })).toThrow(/horizons: 0 is not a horizon/);
    const spec = { kind: 'daily', transform: 'raw', horizons: [5] } as const;
    expect(() => labelTable(panel, samplesBetween(panel, 0, 4), spec)).toThrow(
      /a horizon of 5 days lies beyond the data of 5 days/,
    );
  });
});

describeWithShared('labels against pandas', () => {
  it('rank as Series.rank does', () => {
    const cases = readSharedJson<{ x: (number | null)[]; avg_rank_x: (number | null)[] }[]>(
      'vectors/forecast/pandas_corr.json',
    );
    let compared = 0;
    for (const { x, avg_rank_x: ranks } of cases) {
      const known = x.filter((value) => value !== null).length;
      // Day 0 has a close of 1, day 1 one that puts the returns into the order of x, in float32 without new ties.
      const order = [...new Set(x.filter((value) => value !== null))].sort((a, b) => a - b);
      const closes = x.map((value) => [1, value === null ? Number.NaN : 1 + (order.indexOf(value) + 1) / 1024]);
      const market = panelOfCloses(
        Object.fromEntries(closes.map((close, i) => [`S${String(i).padStart(4, '0')}`, close])),
      );
      const table = labelTable(market, samplesBetween(market, 0, 0), {
        kind: 'daily',
        horizons: [1],
        transform: 'rank',
      });
      ranks.forEach((rank, i) => {
        if (rank === null) expect(table[i]).toBeNaN();
        else expect(table[i]).toBeCloseTo((rank / known - 0.5) * 3.46, 5);
        compared++;
      });
    }
    expect(compared).toBeGreaterThan(500);
  });
});
