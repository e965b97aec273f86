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
import type { ForecastConfig } from './config.js';
import { labelTable, type PricePanel, type Samples } from './data/index.js';
import type { Part } from './dataset.js';
import { type LossName, sampleLosses } from './loss.js';

export type Measure = 'loss' | 'IC' | 'RankIC';

/**
 * ℳ of the main task, higher is better: minus the mean loss of all samples with a label, or the mean over days of the
 * correlation within the day.
 */
export function validationPerformance(
  measure: Measure,
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

/** How good the forecasts of some days were. */
export interface Scores {
  /** Against the returns themselves, whatever the model was trained on. */
  readonly figures: ForecastScores;
  readonly daily: readonly DailyScore[];
  /** The return that followed, of each sample; NaN where unknown. */
  readonly returns: Float32Array;
}

/** Scores main-task forecasts, one a sample. */
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

/** Refuses forecasts that scores would leave out as missing and a ranking could not place. */
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
