import { InputError } from '../errors.js';
import {
  type DailyScore,
  dailyScores,
  type ForecastDay,
  type ForecastScores,
  forecastScores,
  mean,
  pearson,
  spearman,
} from '../metrics/index.js';
import {
  abs,
  add,
  at,
  cast,
  div,
  equal,
  exp,
  expandDims,
  greater,
  log,
  matmul,
  maximum,
  mul,
  neg,
  relu,
  sqrt,
  square,
  stack,
  sub,
  sum,
  type Tensor,
  transpose,
} from '../tensor/index.js';
import type { ForecastConfig } from './config.js';
import type { Part } from './data/dataset.js';
import { labelTable } from './data/labels.js';
import type { PricePanel, Samples } from './data/panel.js';

export type MeasureName = 'loss' | 'IC' | 'RankIC';

/**
 * ℳ of the main task, higher is better: minus the mean loss of all samples with a label, or the mean over days of the
 * correlation within the day.
 */
export function validationPerformance(
  measure: MeasureName,
  loss: LossName,
  part: Part,
  forecasts: Float32Array,
  main: number,
  K: number,
): number {
  const labels = Float32Array.from(forecasts, (_, i) => part.labels[i * K + main]);
  if (labels.every(Number.isNaN)) {
    throw new InputError('no sample has a label of the main task', { key: 'problem.split.validation' });
  }
  if (measure !== 'loss') return meanCorrelation(measure === 'IC' ? pearson : spearman, part, forecasts, labels);
  if (loss === 'mse') return -squaredError(forecasts, labels);
  const losses = sampleLosses(loss, forecasts, labels, part.samples.dayStarts).filter((x) => !Number.isNaN(x));
  return -mean(losses);
}

function squaredError(forecasts: Float32Array, labels: Float32Array): number {
  let [sum, count] = [0, 0];
  for (let i = 0; i < labels.length; i++) {
    if (Number.isNaN(labels[i])) continue;
    sum += (forecasts[i] - labels[i]) ** 2;
    count++;
  }
  return sum / count;
}

/** Days on which it is undefined, as when all forecasts are equal, count as 0. */
function meanCorrelation(
  correlation: typeof pearson,
  { samples: { dayStarts } }: Part,
  forecasts: Float32Array,
  labels: Float32Array,
): number {
  const days = dayStarts.length - 1;
  let sum = 0;
  for (let d = 0; d < days; d++) {
    const [from, to] = [dayStarts[d], dayStarts[d + 1]];
    const value = correlation(forecasts.subarray(from, to), labels.subarray(from, to));
    if (!Number.isNaN(value)) sum += value;
  }
  return sum / days;
}

/** Scores of forecasts over some days. */
export interface Scores {
  /** Against the returns themselves, regardless of the training labels. */
  readonly figures: ForecastScores;
  readonly daily: readonly DailyScore[];
  /** The return that followed, of each sample; NaN if unknown. */
  readonly returns: Float32Array;
}

/** Scores main-task forecasts, one per sample. */
export function scoresOf(config: ForecastConfig, panel: PricePanel, samples: Samples, forecasts: Float32Array): Scores {
  const { kind, shift } = config.labels;
  const returns = labelTable(panel, samples, { kind, shift, horizons: [config.main], transform: 'raw' });
  const days: ForecastDay[] = [];
  for (let d = 0; d + 1 < samples.dayStarts.length; d++) {
    const [from, to] = [samples.dayStarts[d], samples.dayStarts[d + 1]];
    days.push({
      date: panel.calendar[samples.day[from]],
      predictions: forecasts.subarray(from, to),
      labels: returns.subarray(from, to),
    });
  }
  const daily = dailyScores(days);
  return { figures: forecastScores(days, daily), daily, returns };
}

/** Rejects forecasts that are not finite, which scores would skip and a ranking could not place. */
export function requireFinite(forecasts: Float32Array): void {
  const wrong = forecasts.filter((forecast) => !Number.isFinite(forecast)).length;
  if (wrong === 0) return;
  throw new InputError(`${wrong} of ${forecasts.length} forecasts are not finite: the training of the model diverged`);
}

/** The figures of a run's `result.json`. */
export function testFigures({ figures }: Scores): Readonly<Record<string, number>> {
  const { RankIC, RankICIR, IC, ICIR, MSE, zMSE } = figures;
  return { RankIC, RankICIR, IC, ICIR, MSE, zMSE };
}

/**
 * The loss of a sample i of day d on a task, with f its forecast and y its label; the other stocks j are those of the same
 * day whose label is known:
 *
 *     mse    (f_i − y_i)²
 *     rank   mean over the j with y_j ≠ y_i of log(1 + e^{−s (f_i − f_j)}),   s = sign(y_i − y_j)
 *            (RankNet, Burges et al. 2005)
 *     ic     ½ (z(f)_i − z(y)_i)²,   z the z-score among the stocks of the day: its mean over the day is 1 − IC
 */
export type LossName = 'mse' | 'rank' | 'ic';

/** Whether a sample's loss depends on the other stocks of its day, so that batches must be made of whole days. */
export function needsDays(loss: LossName): boolean {
  return loss !== 'mse';
}

export interface LossInputs {
  /** [B, K], or [B, 1] where all tasks have one output. */
  readonly forecasts: Tensor;
  /** [B, K], 0 where unknown. */
  readonly labels: Tensor;
  /** [B, K], 0 where the label is unknown. */
  readonly weights: Tensor;
  /** [B, K], 1 where the label is known; only for losses that need days. */
  readonly known?: Tensor;
  /** i64 [B]; only for losses that need days. */
  readonly day?: Tensor;
}

/** Σ weights · loss, as part of a program. */
export function weightedLoss(name: LossName, inputs: LossInputs, tasks: number): Tensor {
  const { forecasts, labels, weights, known, day } = inputs;
  if (known === undefined || day === undefined) {
    return sum(mul(weights, square(sub(forecasts, labels)))); // [B, K], one output: broadcast
  }
  const sameDay = equal(expandDims(day, 1), expandDims(day, 0)); // [B, B]
  const columns = forecasts.shape[1] === 1 ? 1 : tasks;
  const perTask = Array.from({ length: tasks }, (_, k) => {
    const f = at(forecasts, 1, columns === 1 ? 0 : k); // [B]
    const [y, isKnown] = [at(labels, 1, k), at(known, 1, k)];
    return name === 'rank' ? rankLosses(f, y, isKnown, sameDay) : icLosses(f, y, isKnown, sameDay);
  });
  return sum(mul(weights, stack(perTask, 1)));
}

/** [B] */
function rankLosses(f: Tensor, y: Tensor, known: Tensor, sameDay: Tensor): Tensor {
  const row = (x: Tensor): Tensor => expandDims(x, 1); // of i, [B, 1]
  const column = (x: Tensor): Tensor => expandDims(x, 0); // of j, [1, B]
  const isAbove = cast(greater(row(y), column(y)), y.dtype); // [B, B]
  const sign = sub(isAbove, transpose(isAbove, [1, 0]));
  const counts = mul(mul(cast(sameDay, y.dtype), abs(sign)), mul(row(known), column(known)));
  const margin = mul(sign, sub(row(f), column(f)));
  const losses = add(relu(neg(margin)), log(add(exp(neg(abs(margin))), 1))); // log(1 + e^−margin) without overflow
  return div(sum(mul(counts, losses), { axes: [1] }), maximum(sum(counts, { axes: [1] }), 1));
}

/** [B] */
function icLosses(f: Tensor, y: Tensor, known: Tensor, sameDay: Tensor): Tensor {
  const isStock = mul(cast(sameDay, y.dtype), expandDims(known, 0)); // [B, B]
  const count = maximum(sum(isStock, { axes: [1] }), 1); // [B]
  const dayMean = (x: Tensor): Tensor => div(at(matmul(isStock, expandDims(x, 1)), 1, 0), count);
  const zScore = (x: Tensor): Tensor => {
    const centred = sub(x, dayMean(x));
    return div(centred, sqrt(add(dayMean(square(centred)), EPSILON)));
  };
  return mul(mul(known, square(sub(zScore(f), zScore(y)))), 0.5);
}

/** Keeps the z-scores of equal forecasts finite; rank labels have a variance of 1. */
const EPSILON = 1e-8;

/**
 * The losses of samples, day by day, NaN if the label is unknown: the same as in a program, for features, validation
 * and strategies.
 *
 * @param dayStarts where each day begins among the samples, followed by their number
 */
export function sampleLosses(
  name: LossName,
  forecasts: Float32Array,
  labels: Float32Array,
  dayStarts: ArrayLike<number>,
): Float32Array {
  if (name === 'mse') return forecasts.map((forecast, i) => (forecast - labels[i]) ** 2);
  const losses = new Float32Array(forecasts.length).fill(Number.NaN);
  for (let d = 0; d + 1 < dayStarts.length; d++) {
    const known: number[] = [];
    for (let i = dayStarts[d]; i < dayStarts[d + 1]; i++) if (!Number.isNaN(labels[i])) known.push(i);
    if (name === 'ic') {
      const [f, y] = [zScores(known, forecasts), zScores(known, labels)];
      known.forEach((i, n) => {
        losses[i] = (f[n] - y[n]) ** 2 / 2;
      });
      continue;
    }
    for (const i of known) {
      let [total, pairs] = [0, 0];
      for (const j of known) {
        const sign = Math.sign(labels[i] - labels[j]);
        if (sign === 0) continue;
        const margin = sign * (forecasts[i] - forecasts[j]);
        total += Math.max(0, -margin) + Math.log1p(Math.exp(-Math.abs(margin)));
        pairs++;
      }
      losses[i] = total / Math.max(1, pairs);
    }
  }
  return losses;
}

function zScores(places: readonly number[], values: Float32Array): number[] {
  const mean = places.reduce((sum, i) => sum + values[i], 0) / places.length;
  const variance = places.reduce((sum, i) => sum + (values[i] - mean) ** 2, 0) / places.length;
  return places.map((i) => (values[i] - mean) / Math.sqrt(variance + EPSILON));
}
