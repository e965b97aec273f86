import type { ArmDifference, QuintileReturns, TaskDistribution } from '../../src/report/figures/bars.js';
import type { BleuLatencyCurve, DailyLine, LearningCurve } from '../../src/report/figures/curves.js';
import type { Transfer } from '../../src/report/probe.js';

/** BLEU of the paper's table for En→Vi; the latencies and intervals are made up. */
export const curves: BleuLatencyCurve[] = [
  { label: 'wait-k', bleu: [25.14, 27.17, 28.29, 28.31, 28.39] },
  { label: 'wait-k*', bleu: [26.14, 28.25, 28.44, 28.38, 28.39] },
  { label: 'CL', bleu: [26.01, 26.37, 27.97, 28.31, 28.31] },
  { label: 'MTL', bleu: [26.12, 28.54, 28.61, 28.77, 28.7] },
  { label: 'TCTS', bleu: [27.03, 29.01, 28.91, 29.17, 29.06] },
].map(({ label, bleu }, method) => ({
  label,
  style: method,
  points: bleu.map((y, i) => ({
    k: 2 * i + 1,
    AP: 0.58 + 0.07 * i + 0.004 * method,
    AL: 2.1 + 1.7 * i + 0.08 * method,
    bleu: y,
    low: y - 0.4,
    high: y + 0.4,
  })),
}));

export const learning: LearningCurve[] = ['wait-k', 'MTL', 'TCTS'].map((label, method) => ({
  label,
  style: [0, 3, 4][method],
  points: Array.from({ length: 30 }, (_, e) => ({
    update: 250 * (e + 1),
    loss: 2 + 5 / (1 + (e * (method + 2)) / 4),
    lossStd: 0.2 / (1 + e / 10),
    validation: 2.2 + 4 / (1 + (e * (method + 2)) / 4),
    validationStd: method === 0 ? Number.NaN : 0.15,
    reward: 1.2 / (1 + e * (method + 2)) - 0.02 * (e % 3),
  })),
}));

const dates = Array.from({ length: 250 }, (_, d) => new Date(Date.UTC(2016, 0, 4 + d)).toISOString().slice(0, 10));

export const rankIC: DailyLine[] = ['GRU', 'MTL (3 tasks)', 'TCTS (3 tasks)'].map((label, method) => ({
  label,
  style: [0, 3, 4][method],
  dates,
  values: dates.map((_, d) => (d < 20 ? Number.NaN : 0.05 + 0.015 * method + 0.03 * Math.sin(d / 25 + method))),
}));

export const returns: DailyLine[] = ['GRU', 'TCTS (3 tasks)', 'SH000300'].map((label, method) => ({
  label,
  style: [0, 4, 7][method],
  dates,
  values: dates.map((_, d) => [0.0004, 0.0009, 0.0002][method] * d + 0.03 * Math.sin(d / 20 + method)),
}));

export const quintiles: QuintileReturns[] = ['GRU', 'MTL (3 tasks)', 'TCTS (3 tasks)'].map((label, method) => ({
  label,
  means: [23, 9, 2, -5, -19].map((points) => (points + method) / 1e4),
  deviations: [2, 1, 1, 1.5, 2].map((points) => (method === 0 ? Number.NaN : points / 1e4)),
}));

export const distributions: TaskDistribution[] = [3, 9].map((main) => ({
  label: `TCTS, k = ${main}`,
  tasks: Array.from({ length: 13 }, (_, m) => `wait-${m + 1}`),
  episodes: [1, 2, 6, 16, 40].map((episode, i) => {
    const weights = Array.from({ length: 13 }, (_, m) => 1 + (i * 30) / (1 + (m + 1 - main) ** 2));
    const sum = weights.reduce((a, b) => a + b, 0);
    return { episode, shares: weights.map((weight) => weight / sum) };
  }),
}));

/** A main task wait-3 that its neighbours help and distant waits hurt. */
export const transfer: Transfer[] = [
  { kind: 'uniform' as const, mean: -0.02, half: 0.05 },
  ...['wait-1', 'wait-2', 'wait-4', 'wait-5'].flatMap((task, i) => {
    const mean = [-0.21, 0.16, 0.12, -0.06][i];
    return [
      { kind: 'added' as const, task, mean, half: 0.08 },
      { kind: 'mixed' as const, task, mean: mean / 3, half: 0.05 },
    ];
  }),
].map(({ mean, half, ...rest }) => {
  const visible = Math.abs(mean) > half;
  return { ...rest, mean, low: mean - half, high: mean + half, p: visible ? 0.01 : 0.4, visible };
});

/** Strategies against fixed: some surely worse or better, one with a single seed. */
export const differences: ArmDifference[] = [
  { label: 'mtl', difference: 0.021, half: 0.012, p: 0.004 },
  { label: 'static (main 0.2, until 0.67)', difference: -0.004, half: 0.011, p: 1 },
  { label: 'learned', difference: 0.012, half: 0.019, p: 0.6 },
  { label: 'bandit', difference: 0.008, half: Number.NaN, p: Number.NaN },
  { label: 'influence', difference: -0.018, half: 0.009, p: 0.01 },
  { label: 'oracle', difference: -0.034, half: 0.008, p: 0.0004 },
].map(({ difference, half, ...rest }) => ({
  ...rest,
  difference,
  low: difference - half,
  high: difference + half,
  seeds: Number.isNaN(half) ? 1 : 10,
}));
