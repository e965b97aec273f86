import { InputError } from '../errors.js';
import { spearman } from '../metrics/index.js';
import type { Part } from './data-set.js';

/**
 * ℳ of the main task, higher is better: minus the mean squared error of all samples with a label, or the mean over days
 * of the rank correlation within the day.
 */
export function validationPerformance(
  measure: 'loss' | 'RankIC',
  part: Part,
  forecasts: Float32Array,
  main: number,
  K: number,
): number {
  const labels = Float32Array.from(forecasts, (_, i) => part.labels[i * K + main]);
  if (labels.every(Number.isNaN)) {
    throw new InputError('no sample has a label of the main task', { key: 'problem.split.validation' });
  }
  return measure === 'loss' ? -squaredError(forecasts, labels) : rankIC(part, forecasts, labels);
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
function rankIC({ samples: { dayStarts } }: Part, forecasts: Float32Array, labels: Float32Array): number {
  const days = dayStarts.length - 1;
  let sum = 0;
  for (let d = 0; d < days; d++) {
    const [from, to] = [dayStarts[d], dayStarts[d + 1]];
    const value = spearman(forecasts.subarray(from, to), labels.subarray(from, to));
    if (!Number.isNaN(value)) sum += value;
  }
  return sum / days;
}
