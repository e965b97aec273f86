import { InputError } from '../errors.js';
import {
  type DailyScore,
  dailyScores,
  type ForecastDay,
  type ForecastScores,
  forecastScores,
} from '../metrics/index.js';
import type { ForecastConfig } from './config.js';
import { labelTable, type Panel, type Samples } from './data/index.js';

/** How good the forecasts of some days were. */
export interface Scores {
  /** Against the returns themselves, whatever the model was trained on. */
  readonly figures: ForecastScores;
  readonly daily: readonly DailyScore[];
  /** The return that followed, of each sample; NaN where unknown. */
  readonly returns: Float32Array;
}

/** Scores main-task forecasts, one a sample. */
export function scoresOf(config: ForecastConfig, panel: Panel, samples: Samples, forecasts: Float32Array): Scores {
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
  return { figures: forecastScores(days), daily: dailyScores(days), returns };
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
