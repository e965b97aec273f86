import { Random } from '../random.js';
import type { SeriesConfig } from './config.js';
import type { SeriesData } from './data-set.js';

/** Training labels of which some are spoilt, and which: what a scheduler ought to find. */
export interface Corrupted {
  /** [row][horizon] */
  readonly labels: Float32Array;
  /** [row]; 1 for the samples whose main label is spoilt. */
  readonly spoilt: Uint8Array;
}

/**
 * Adds noise N(0, σ²) to the main task's labels of those training samples whose target moved most within the window:
 * the feature `spread` tells which. Labels of other tasks, of validation and of test stay as they are.
 */
export function corrupted(
  data: Omit<SeriesData, keyof Corrupted>,
  labels: Float32Array,
  config: SeriesConfig,
): Corrupted {
  const { noise, share, seed } = config.corruption;
  const spoilt = new Uint8Array(data.spread.length);
  if (noise === 0) return { labels, spoilt };
  const { train } = data.parts;
  const order = [...train].sort((a, b) => data.spread[b] - data.spread[a]);
  const random = new Random(seed).fork('corruption');
  const noisy = labels.slice();
  const K = data.horizons.length;
  for (const row of order.slice(0, Math.round(share * train.length))) spoilt[row] = 1;
  for (const row of train) if (spoilt[row] === 1) noisy[row * K + data.main] += noise * random.normal();
  return { labels: noisy, spoilt };
}
