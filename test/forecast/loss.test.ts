import { describe, expect, it } from 'vitest';
import { type LossName, sampleLosses, validationPerformance, weightedLoss } from '../../src/forecast/scores.js';
import { pearson } from '../../src/metrics/index.js';
import { Random } from '../../src/random.js';
import { constant, type Value } from '../../src/tensor/index.js';
import { checkGradient, randomValue } from '../tensor/check-gradient.js';
import { STATUS, smallProblem } from './small-market.js';

const LOSSES = ['mse', 'rank', 'ic'] as const;

describe('the losses of samples', () => {
  it('rank: the logistic loss of every pair of a day, averaged over the other stocks', () => {
    // log(1 + e^−1) = 0.313262, log(1 + e^−2) = 0.126928: neighbours are right by 1, the ends by 2. Of the fourth stock the
    // label is unknown; the fifth is alone on its day.
    const forecasts = Float32Array.of(1, 0, -1, 7, 3);
    const labels = Float32Array.of(2, 1, 0, Number.NaN, 1);
    const losses = sampleLosses('rank', forecasts, labels, [0, 4, 5]);
    const end = (0.313262 + 0.126928) / 2;
    expect(losses[0]).toBeCloseTo(end, 5);
    expect(losses[1]).toBeCloseTo(0.313262, 5);
    expect(losses[2]).toBeCloseTo(end, 5);
    expect(losses[3]).toBeNaN();
    expect(losses[4]).toBe(0);
    // Upside down: log(1 + e^1) = 1.313262, log(1 + e^2) = 2.126928.
    expect(sampleLosses('rank', forecasts.slice(0, 3), Float32Array.of(0, 1, 2), [0, 3])[0]).toBeCloseTo(
      (1.313262 + 2.126928) / 2,
      5,
    );
  });

  it('ic: their mean over a day is 1 − IC', () => {
    const random = new Random(3);
    const forecasts = Float32Array.from({ length: 30 }, () => random.normal());
    const labels = Float32Array.from({ length: 30 }, (_, i) => 0.5 * forecasts[i] + random.normal());
    const losses = sampleLosses('ic', forecasts, labels, [0, 10, 30]);
    const mean = (from: number, to: number) => losses.subarray(from, to).reduce((sum, x) => sum + x) / (to - from);
    for (const [from, to] of [
      [0, 10],
      [10, 30],
    ]) {
      const ic = pearson(forecasts.subarray(from, to), labels.subarray(from, to));
      expect(mean(from, to)).toBeCloseTo(1 - ic, 5);
    }
    const samples = {
      length: 30,
      day: new Int32Array(30),
      stock: new Int32Array(30),
      dayStarts: Int32Array.of(0, 10, 30),
    };
    const ics = [
      [0, 10],
      [10, 30],
    ].map(([from, to]) => pearson(forecasts.subarray(from, to), labels.subarray(from, to)));
    expect(validationPerformance('IC', 'mse', { samples, labels }, forecasts, 0, 1)).toBeCloseTo(
      (ics[0] + ics[1]) / 2,
      12,
    );
    expect(validationPerformance('loss', 'ic', { samples, labels }, forecasts, 0, 1)).toBeCloseTo(
      -(10 * (1 - ics[0]) + 20 * (1 - ics[1])) / 30,
      5,
    );
  });
});

describe.each(LOSSES)('the loss %s in a program', (name: LossName) => {
  const [B, K] = [7, 2];
  const random = new Random(name);
  const labels = randomValue(random, [B, K]);
  const known = Float64Array.from({ length: B * K }, (_, at) => (at === 5 ? 0 : 1));
  const weights = Float64Array.from({ length: B * K }, (_, at) => known[at] * random.uniform());
  const days = [4, 4, 4, 4, 9, 9, 9];
  const inputs = () => ({
    labels: constant([...labels.data].map(Number), 'f64', [B, K]),
    weights: constant([...weights], 'f64', [B, K]),
    ...(name === 'mse' ? {} : { known: constant([...known], 'f64', [B, K]), day: constant(days, 'i64') }),
  });

  it.each([K, 1])('has the gradient of finite differences with %i outputs', async (columns) => {
    const forecasts: Value = randomValue(random, [B, columns]);
    await checkGradient((f) => weightedLoss(name, { forecasts: f, ...inputs() }, K), [forecasts]);
  });
});

it.each(['rank', 'ic'] as const)('a network learns to rank with the loss %s', async (loss) => {
  const problem = await smallProblem({ loss, validation: { measure: 'RankIC' } });
  const before = await problem.validate();
  for (let update = 0; update < 60; update++) {
    const batch = problem.nextBatch();
    const size = problem.sizeOf(batch);
    await problem.train(batch, { tasks: new Int32Array(size).fill(0), weights: new Float32Array(size).fill(1) });
  }
  expect(await problem.validate()).toBeGreaterThan(Math.max(before, 0.25));
  const batch = problem.nextBatch();
  const losses = await problem.mainLosses(batch);
  expect(losses.every((x) => x >= 0 && x < 10)).toBe(true);
  const out = new Float32Array(problem.sizeOf(batch));
  await problem.writeFeatures(batch, STATUS, ['loss'], out);
  expect(out).toEqual(losses);
  await problem.close();
});
