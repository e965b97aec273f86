import { InputError } from '../errors.js';
import { fieldOffset, type Panel, type Samples } from './data/index.js';
import type { Part } from './data-set.js';

/** Which stocks have stale labels in training, and the feature `instrument` that tells. */
export interface StaleStocks {
  /** [stock]; 1 where the main label is that of some days before. */
  readonly isStale: Uint8Array;
  /** [stock]; place in the order of volatility in the training part, from 0, the calmest, to 1. */
  readonly volatility: Float32Array;
}

/** The most volatile stocks of the training part, as many as the share says; undefined: none. */
export function staleStocks(panel: Panel, train: Samples, share: number): StaleStocks | undefined {
  if (share === 0) return undefined;
  const stocks = [...new Set(train.stock)];
  const [first, last] = [train.day[0], train.day[train.length - 1]];
  const deviation = new Map(stocks.map((stock) => [stock, volatilityOf(panel, stock, first, last)]));
  stocks.sort((a, b) => deviation.get(a)! - deviation.get(b)! || a - b);
  const volatility = new Float32Array(panel.symbols.length);
  const isStale = new Uint8Array(panel.symbols.length);
  const fresh = stocks.length - Math.round(share * stocks.length);
  for (const [place, stock] of stocks.entries()) {
    volatility[stock] = place / Math.max(1, stocks.length - 1);
    if (place >= fresh) isStale[stock] = 1;
  }
  return { isStale, volatility };
}

/**
 * The part with the main label of each stale sample replaced by the one that its stock had `days` trading days before;
 * NaN where it had none. Labels of the other tasks stay as they are.
 */
export function withStaleLabels(
  { samples, labels }: Part,
  { isStale }: StaleStocks,
  options: { readonly main: number; readonly tasks: number; readonly days: number; readonly stocks: number },
): Part {
  const { main, tasks: K, days, stocks } = options;
  if (K === 1) {
    throw new InputError('expected a second task where the labels of the main one are spoilt', {
      key: 'problem.tasks',
    });
  }
  const places = new Map(Array.from(samples.day, (day, i) => [day * stocks + samples.stock[i], i]));
  const stale = labels.slice();
  for (let i = 0; i < samples.length; i++) {
    if (isStale[samples.stock[i]] === 0) continue;
    const before = places.get((samples.day[i] - days) * stocks + samples.stock[i]);
    stale[i * K + main] = before === undefined ? Number.NaN : labels[before * K + main];
  }
  return { samples, labels: stale };
}

/** Deviation of the daily returns from one day to another; 0 where fewer than two are known. */
function volatilityOf(panel: Panel, stock: number, first: number, last: number): number {
  const { values, fields, symbols } = panel;
  const close = fieldOffset(panel, 'close');
  const closeAt = (day: number) => values[(day * symbols.length + stock) * fields.length + close];
  let [count, sum, squares] = [0, 0, 0];
  for (let day = first + 1; day <= last; day++) {
    const move = closeAt(day) / closeAt(day - 1) - 1;
    if (!Number.isFinite(move)) continue;
    count++;
    sum += move;
    squares += move * move;
  }
  return count < 2 ? 0 : Math.sqrt(Math.max(0, squares / count - (sum / count) ** 2));
}
