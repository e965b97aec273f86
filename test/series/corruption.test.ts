import { describe, expect, it } from 'vitest';
import { seriesData, syntheticSeries } from '../../src/series/index.js';
import { smallConfig, smallProblem } from './small-series.js';

const open = (over: Record<string, unknown> = {}) =>
  seriesData(smallConfig(over), syntheticSeries({ rows: 600, seed: 1 }));
const [clean, noisy] = [open(), open({ corruption: { noise: 3, share: 0.25 } })];
const [K, MAIN] = [3, 1];

describe('noise in the main labels', () => {
  it('is in the training samples of the largest spread, and nowhere else', () => {
    const changed = [...clean.labels.keys()].filter((at) => !Object.is(noisy.labels[at], clean.labels[at]));
    const rows = changed.map((at) => Math.floor(at / K));
    expect(changed.every((at) => at % K === MAIN)).toBe(true);
    expect(rows).toHaveLength(Math.round(0.25 * clean.parts.train.length));
    const spoilt = new Set(rows);
    const others = [...clean.parts.train].filter((t) => !spoilt.has(t));
    expect(rows.every((t) => clean.parts.train.includes(t))).toBe(true);
    expect(Math.min(...rows.map((t) => clean.spread[t]))).toBeGreaterThanOrEqual(
      Math.max(...others.map((t) => clean.spread[t])),
    );
    expect([...noisy.spoilt.keys()].filter((t) => noisy.spoilt[t] === 1)).toEqual(rows);
    // 87 draws of N(0, 3²): their root mean square lies within 3 standard errors, 3·(1 ± 3/√174).
    const rms = Math.sqrt(changed.reduce((sum, at) => sum + (noisy.labels[at] - clean.labels[at]) ** 2, 0) / 87);
    expect(rms).toBeGreaterThan(3 * (1 - 3 / Math.sqrt(174)));
    expect(rms).toBeLessThan(3 * (1 + 3 / Math.sqrt(174)));
  });

  it('follows from its own seed', () => {
    expect(open({ corruption: { noise: 3, share: 0.25 } }).labels).toEqual(noisy.labels);
    expect(open({ corruption: { noise: 3, share: 0.25, seed: 2 } }).labels).not.toEqual(noisy.labels);
  });

  it('leaves inputs, scales and parts as they are', () => {
    for (const key of ['rows', 'spread', 'normaliser', 'labelScales', 'parts'] as const) {
      expect(noisy[key]).toEqual(clean[key]);
    }
  });

  it('needs a second task', () => {
    expect(() => open({ corruption: { noise: 1 }, tasks: [3] })).toThrow('problem.tasks: expected a second task');
  });
});

it('the oracle keeps spoilt samples off the main task; without noise there is none', async () => {
  const [problem, plain] = [await smallProblem({ corruption: { noise: 3 } }), await smallProblem()];
  expect(plain.oracle).toBeUndefined();
  const batch = problem.nextBatch();
  const { spoilt } = open({ corruption: { noise: 3 } });
  const rows = problem.oracle!(batch);
  let count = 0;
  batch.ends.forEach((t, i) => {
    count += spoilt[t];
    expect([...rows.subarray(K * i, K * i + K)]).toEqual(spoilt[t] === 1 ? [0.5, 0, 0.5] : [0.25, 0.5, 0.25]);
  });
  expect(count).toBeGreaterThan(5);
  expect(count).toBeLessThan(27);
  await problem.close();
  await plain.close();
});
