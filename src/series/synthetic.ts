import { Random } from '../random.js';
import type { Table } from './table.js';

/**
 * A made-up hourly series with known laws; every ε is an independent standard normal number:
 *
 *     load     u_t = sin(2πt/24) + ½ sin(2πt/168) + a_t,   a_t = .9 a_{t−1} + .2 ε
 *     weather  v_t = .99 v_{t−1} + .1 ε
 *     target   y_t = .8 y_{t−1} + .2 (u_{t−6} + v_{t−12}) + σ_t ε,   σ_t = .2 in one day of four, else .05
 *
 * The target follows the load of six and the weather of twelve hours ago: what it will be is in the window, for every
 * horizon another mix of the same values.
 */
export function syntheticSeries(options: { readonly rows: number; readonly seed: number }): Table {
  const { rows, seed } = options;
  const random = new Random(seed).fork('series');
  const [load, weather, target] = [0, 0, 0].map(() => new Float64Array(rows));
  let drift = 0;
  for (let t = 0; t < rows; t++) {
    drift = 0.9 * drift + 0.2 * random.normal();
    load[t] = Math.sin((2 * Math.PI * t) / 24) + 0.5 * Math.sin((2 * Math.PI * t) / 168) + drift;
    weather[t] = 0.99 * (weather[t - 1] ?? 0) + 0.1 * random.normal();
    const pull = (load[t - 6] ?? 0) + (weather[t - 12] ?? 0);
    const noise = Math.floor(t / 24) % 4 === 0 ? 0.2 : 0.05;
    target[t] = 0.8 * (target[t - 1] ?? 0) + 0.2 * pull + noise * random.normal();
  }
  const begin = Date.UTC(2016, 6, 1);
  const dates = Array.from({ length: rows }, (_, t) => new Date(begin + t * 3_600_000).toISOString());
  return {
    names: ['load', 'weather', 'OT'],
    columns: [load, weather, target],
    dates: dates.map((date) => date.slice(0, 16).replace('T', ' ')),
    filled: 0,
  };
}
