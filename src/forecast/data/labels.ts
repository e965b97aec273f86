import { InputError } from '../../errors.js';
import { fieldOffset, filterSamples, type PricePanel, type Samples } from './panel.js';

/** What is to be forecast; p is the close, t the day of the sample, k the horizon. */
export interface LabelSpec {
  /**
   * `daily`: the return of the k-th day ahead, p_{t+k} / p_{t+k−1} − 1 (the paper, section 4.1). Default.
   * `cumulative`: the return over k days, p_{t+k} / p_t − 1.
   */
  readonly kind: 'daily' | 'cumulative';
  /** One horizon per task, each at least 1: {1, 2, 3} is 𝒯₃. */
  readonly horizons: readonly number[];
  /**
   * Days between the sample's day and the day t the formulas count from. Default 0, the paper's. qlib's labels have
   * shift 1, since a forecast made after the close can be traded only on the next day: its Alpha360 label
   * Ref($close, −2) / Ref($close, −1) − 1 is `daily` (or `cumulative`) with horizon 1 and shift 1.
   */
  readonly shift?: number;
  /**
   * `raw`: the return itself. `rank`: qlib's CSRankNorm, (rank / n − 0.5) · 3.46 among the n samples of the same day that
   * have this label, equal returns sharing their average rank; about unit variance.
   */
  readonly transform: 'raw' | 'rank';
}

/** Days from the sample's day to the close at which the label of horizon k begins, which is when to trade on it. */
export function labelStart({ kind, shift = 0 }: Pick<LabelSpec, 'kind' | 'shift'>, horizon: number): number {
  return kind === 'daily' ? shift + horizon - 1 : shift;
}

/** How many days ahead the furthest label reaches. */
export function labelReach(spec: Pick<LabelSpec, 'horizons' | 'shift'>): number {
  const shift = spec.shift ?? 0;
  if (spec.horizons.length === 0) throw new InputError('expected at least one horizon', { key: 'horizons' });
  for (const k of spec.horizons) {
    if (!Number.isInteger(k) || k < 1)
      throw new InputError(`${k} is not a horizon, expected 1, 2, …`, { key: 'horizons' });
  }
  if (!Number.isInteger(shift) || shift < 0)
    throw new InputError(`${shift} is not a shift, expected 0, 1, …`, { key: 'shift' });
  return Math.max(...spec.horizons) + shift;
}

/**
 * The labels of all samples for all horizons, [samples, horizons]; NaN if a price is missing (suspended, beyond the
 * data). `samples` must hold whole days for `rank` to mean what it says.
 */
export function labelTable(panel: PricePanel, samples: Samples, spec: LabelSpec): Float32Array {
  const reach = labelReach(spec);
  if (reach >= panel.calendar.length) {
    throw new InputError(`a horizon of ${reach} days lies beyond the data of ${panel.calendar.length} days`, {
      key: 'horizons',
    });
  }
  const table = returns(panel, samples, spec);
  if (spec.transform === 'rank') rankWithinDays(table, samples, spec.horizons.length);
  return table;
}

/**
 * The samples whose labels of the columns `required` are all known, and their rows of the table. For training only: drop
 * after ranking, so that a rank stays the rank among all stocks of the day.
 *
 * @param table [samples, width]
 * @param required columns of the table. Default: all of them
 */
export function labelledSamples(
  samples: Samples,
  table: Float32Array,
  width: number,
  required: readonly number[] = Array.from({ length: width }, (_, k) => k),
): { samples: Samples; labels: Float32Array } {
  const isKnown = (i: number): boolean => required.every((k) => !Number.isNaN(table[i * width + k]));
  const kept = filterSamples(samples, isKnown);
  const labels = new Float32Array(kept.length * width);
  let to = 0;
  for (let i = 0; i < samples.length; i++) {
    if (isKnown(i)) labels.set(table.subarray(i * width, (i + 1) * width), width * to++);
  }
  return { samples: kept, labels };
}

function returns(panel: PricePanel, samples: Samples, spec: LabelSpec): Float32Array {
  const { horizons, shift = 0 } = spec;
  const stocks = panel.symbols.length;
  const width = panel.fields.length;
  const close = fieldOffset(panel, 'close');
  const table = new Float32Array(samples.length * horizons.length).fill(Number.NaN);
  for (let i = 0; i < samples.length; i++) {
    const t = samples.day[i];
    const stock = samples.stock[i];
    for (let k = 0; k < horizons.length; k++) {
      const day = t + shift + horizons[k];
      if (day >= panel.calendar.length) continue;
      const base = t + labelStart(spec, horizons[k]);
      const now = panel.values[(day * stocks + stock) * width + close];
      table[i * horizons.length + k] = now / panel.values[(base * stocks + stock) * width + close] - 1;
    }
  }
  return table;
}

/** Gives the ranks the spread of a standard normal variable: 1 / √12, the deviation of a uniform one, times 3.46 is 1. */
const RANK_SCALE = 3.46;

function rankWithinDays(table: Float32Array, samples: Samples, width: number): void {
  for (let d = 0; d + 1 < samples.dayStarts.length; d++) {
    const from = samples.dayStarts[d];
    const to = samples.dayStarts[d + 1];
    for (let k = 0; k < width; k++) {
      const order: number[] = [];
      for (let i = from; i < to; i++) if (!Number.isNaN(table[i * width + k])) order.push(i * width + k);
      rankNorm(table, order);
    }
  }
}

/** Replaces the values at some places by (rank / n − 0.5) · 3.46 among them, equal values sharing their average rank. */
export function rankNorm(table: Float32Array, places: readonly number[]): void {
  const order = ascending(table, places);
  for (let i = 0; i < order.length; ) {
    let j = i;
    while (j + 1 < order.length && table[order[j + 1]] === table[order[i]]) j++;
    const rank = (i + j) / 2 + 1;
    const label = (rank / order.length - 0.5) * RANK_SCALE;
    // Written only after the comparisons of this tie, so the values still to be compared are untouched.
    for (; i <= j; i++) table[order[i]] = label;
  }
}

/**
 * The positions, the smallest value first. Value and position are sorted as one number of 32 + 21 bits, which takes a
 * fifth of the time of a sort with a comparison function; no day has two million stocks.
 */
function ascending(table: Float32Array, places: readonly number[]): number[] {
  if (places.length > POSITIONS) throw new RangeError(`${places.length} values to rank, at most ${POSITIONS} can be`);
  const keys = new Float64Array(places.length);
  for (let i = 0; i < places.length; i++) {
    FLOAT[0] = table[places[i]];
    // As an unsigned integer it has the order of the float.
    const bits = WORD[0];
    keys[i] = ((bits < 0 ? ~bits : bits ^ 0x80000000) >>> 0) * POSITIONS + i;
  }
  keys.sort();
  return Array.from(keys, (key) => places[key % POSITIONS]);
}

const POSITIONS = 2 ** 21;
const FLOAT = new Float32Array(1);
const WORD = new Int32Array(FLOAT.buffer);
