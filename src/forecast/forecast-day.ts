import { InputError } from '../errors.js';
import { writeFileAtomic } from '../files.js';
import type { DataConfig } from './config.js';
import { samplesBetween } from './data/index.js';
import { openPanel } from './data-set.js';
import { openForecaster } from './forecaster.js';
import { requireFinite } from './scores.js';

export interface ForecastDayOptions {
  /** Prices in place of the run's own data, in any known format. */
  readonly data?: string;
  /** Default the last day of the data. */
  readonly date?: string;
  /** Default 1. */
  readonly threads?: number;
}

/** The stocks of a day, the highest forecast first. */
export interface DayForecast {
  /** The last day that was seen. */
  readonly date: string;
  /** The forecast is for the return of this many days ahead. */
  readonly horizon: number;
  readonly stocks: readonly { readonly instrument: string; readonly prediction: number }[];
  /** Time of the forecast itself, without reading. */
  readonly milliseconds: number;
}

/** Forecasts the members of the market that traded on a day, which may lie after all that the run has seen. */
export async function forecastDay(run: string, { data, date, threads }: ForecastDayOptions = {}): Promise<DayForecast> {
  const forecaster = await openForecaster(run, threads);
  try {
    const { panel, cleaned } = await openPanel(withoutIndex(forecaster.config.data), data);
    const day = date === undefined ? panel.calendar.length - 1 : panel.calendar.indexOf(date);
    const [first, last] = [panel.calendar[0], panel.calendar.at(-1)];
    if (day < 0) {
      throw new InputError(`${date} is not a trading day of the data, which holds ${first} to ${last}`, {
        key: '--date',
      });
    }
    const { window } = forecaster.config.features;
    if (day + 1 < window) {
      throw new InputError(`${panel.calendar[day]} has ${day} days before it, expected ${window - 1} or more`, {
        key: '--date',
      });
    }
    const samples = samplesBetween(panel, day, day);
    if (samples.length === 0) throw new InputError(`no stock of the market traded on ${panel.calendar[day]}`);
    const started = performance.now();
    const forecasts = await forecaster.predict(cleaned, samples);
    const milliseconds = performance.now() - started;
    requireFinite(forecasts);
    const stocks = Array.from(forecasts, (prediction, i) => ({
      instrument: panel.symbols[samples.stock[i]],
      prediction,
    })).sort((a, b) => b.prediction - a.prediction);
    return { date: panel.calendar[day], horizon: forecaster.config.main, stocks, milliseconds };
  } finally {
    await forecaster.close();
  }
}

/** The index serves backtests alone; new prices need not hold it. */
function withoutIndex(config: DataConfig): DataConfig {
  return config.format === 'synthetic' ? config : { ...config, index: undefined };
}

export function writeForecast(path: string, { date, stocks }: DayForecast): void {
  const rows = stocks.map(({ instrument, prediction }, i) => `${date},${instrument},${prediction},${i + 1}\n`);
  writeFileAtomic(path, `date,instrument,prediction,rank\n${rows.join('')}`);
}
