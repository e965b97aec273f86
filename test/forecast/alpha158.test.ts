import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { ALPHA158, alpha158 } from '../../src/forecast/data/alpha158.js';
import { columnCount, gatherFeatures, withFeatures, writeColumn } from '../../src/forecast/data/features.js';
import { type PricePanel, samplesBetween } from '../../src/forecast/data/panel.js';
import { dates } from './panels.js';

/** Made by test/vectors/make_alpha158.py with numpy from qlib's formulas: one stock, listed late, suspended for three days. */
const { fields, bars, cases } = JSON.parse(
  readFileSync(new URL('../vectors/alpha158.json', import.meta.url), 'utf8'),
) as {
  fields: string[];
  bars: (number | null)[][];
  cases: { day: number; features: Record<string, number | null> }[];
};

const days = bars[0].length;
const panel: PricePanel = {
  calendar: dates(days),
  symbols: ['A'],
  fields,
  values: Float32Array.from({ length: days * fields.length }, (_, at) => {
    return bars[at % fields.length][Math.floor(at / fields.length)] ?? Number.NaN;
  }),
  members: new Uint8Array(days).fill(1),
};

it("has the 158 names of qlib's set, in its order", () => {
  expect(ALPHA158).toHaveLength(158);
  expect(new Set(ALPHA158).size).toBe(158);
  expect([ALPHA158[0], ALPHA158[9], ALPHA158[13], ALPHA158[157]]).toEqual(['KMID', 'OPEN0', 'ROC5', 'VSUMD60']);
  expect([...ALPHA158].sort()).toEqual(Object.keys(cases[0].features).sort());
});

const { rowOf, values } = alpha158(panel);

it.each(cases)('has the values of numpy on day $day', ({ day, features }) => {
  for (const [f, name] of ALPHA158.entries()) {
    const found = values[rowOf[day] * ALPHA158.length + f];
    const expected = features[name];
    if (expected === null) expect(found, name).toBeNaN();
    else
      expect(Math.abs(found - expected), `${name}: ${found}, not ${expected}`).toBeLessThan(
        2e-5 * Math.max(1, Math.abs(expected)),
      );
  }
});

it('is nothing on days without a price, and what a model sees of a day or a window', () => {
  expect([rowOf[3], rowOf[50], rowOf[52]]).toEqual([-1, -1, -1]);
  const spec = { kind: 'alpha158', window: 2 } as const;
  const seen = withFeatures(panel, spec);
  const samples = samplesBetween(panel, 53, 54);
  const out = new Float32Array(2 * columnCount(spec));
  gatherFeatures(seen, spec, samples, Int32Array.of(0, 1), out, 'flat');
  const row = (day: number, f: number) => values[rowOf[day] * ALPHA158.length + f];
  // Day 53 follows a suspension, so that the first of its two days is unknown; day 54 sees 53 and itself.
  expect([out[0], out[1]]).toEqual([Number.NaN, row(53, 0)]);
  expect([out[2 * 158 + 4], out[2 * 158 + 5]]).toEqual([row(53, 2), row(54, 2)]);
  const column = new Float32Array(2);
  writeColumn(seen, spec, samples, 5, column);
  expect([...column]).toEqual([row(53, 2), row(54, 2)]);
});

/** Made by test/vectors/make_alpha360.py from the expressions of qlib's loader, on the same bars. */
const alpha360 = JSON.parse(readFileSync(new URL('../vectors/alpha360.json', import.meta.url), 'utf8')) as {
  count: number;
  cases: { day: number; columns: [at: number, name: string, value: number | null][] }[];
};

it.each(alpha360.cases)("Alpha360 has the columns of qlib's expressions on day $day, in their order", (expected) => {
  const spec = { kind: 'alpha360', window: 60 } as const;
  expect(columnCount(spec)).toBe(alpha360.count);
  const out = new Float32Array(columnCount(spec));
  gatherFeatures(panel, spec, samplesBetween(panel, expected.day, expected.day), Int32Array.of(0), out, 'flat');
  for (const [at, name, value] of expected.columns) {
    if (value === null) expect(out[at], name).toBeNaN();
    else expect(Math.abs(out[at]! / value - 1), name).toBeLessThan(1e-6);
  }
});
