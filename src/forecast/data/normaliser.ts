import { InputError } from '../../errors.js';
import { columnCount, type FeatureSpec, gatherColumn } from './features.js';
import type { PricePanel, Samples } from './panel.js';

/** A robust z-score for each column: (x − centre) · factor, clipped to ±clip; a missing value becomes 0. */
export interface Normaliser {
  readonly centre: Float64Array;
  readonly factor: Float64Array;
  readonly clip: number;
}

/** The form a normaliser has in a run folder. */
export interface NormaliserJson {
  readonly kind: 'robust';
  readonly clip: number;
  readonly centre: readonly number[];
  readonly factor: readonly number[];
}

/** The standard deviation of a normal variable is 1.4826 times its median absolute deviation. */
const NORMAL = 1.4826;
const EPSILON = 1e-12;

/**
 * Fits qlib's RobustZScoreNorm on the given samples, which should be those of the training part and no other:
 * centre = median, factor = 1 / ((MAD + 1e−12) · 1.4826), exact, column by column; clip ±3. A column without any value
 * stays as it is, that is 0 everywhere.
 */
export function fitNormaliser(panel: PricePanel, spec: FeatureSpec, samples: Samples, clip = 3): Normaliser {
  const columns = columnCount(spec);
  const centre = new Float64Array(columns);
  const factor = new Float64Array(columns).fill(1);
  const values = new Float32Array(samples.length);
  for (let column = 0; column < columns; column++) {
    const length = gatherColumn(panel, spec, samples, column, values);
    if (length === 0) continue;
    const middle = median(values, length);
    for (let i = 0; i < length; i++) values[i] = Math.abs(values[i] - middle);
    centre[column] = middle;
    factor[column] = 1 / ((median(values, length) + EPSILON) * NORMAL);
  }
  return { centre, factor, clip };
}

export function normaliserToJson({ centre, factor, clip }: Normaliser): NormaliserJson {
  return { kind: 'robust', clip, centre: [...centre], factor: [...factor] };
}

/** @param file where the JSON was read, for the error */
export function normaliserFromJson(json: unknown, file?: string): Normaliser {
  const { kind, clip, centre, factor } = (json ?? {}) as Partial<NormaliserJson>;
  const numbers = (x: unknown): x is number[] => Array.isArray(x) && x.length > 0 && x.every((n) => Number.isFinite(n));
  const whole =
    kind === 'robust' &&
    typeof clip === 'number' &&
    clip > 0 &&
    numbers(centre) &&
    numbers(factor) &&
    centre.length === factor.length;
  if (!whole) {
    throw new InputError('not a normaliser: expected kind "robust", clip, and as many centres as factors', {
      file,
      key: 'normaliser',
    });
  }
  return { clip, centre: Float64Array.from(centre), factor: Float64Array.from(factor) };
}

/**
 * The exact median of the first `length` values of `values` (no NaN among them), the mean of the two middle ones when
 * their number is even; NaN when there is none. Two counting passes over the bits of the floats, no sorting: the cost
 * grows with the length alone.
 */
export function median(values: Float32Array, length = values.length): number {
  if (length === 0) return Number.NaN;
  const bits = new Int32Array(values.buffer, values.byteOffset, length);
  HIGH.fill(0);
  for (let i = 0; i < length; i++) HIGH[ordered(bits[i]) >>> 16]++;
  const upper = select(bits, length >>> 1);
  return length % 2 === 1 ? upper : (select(bits, (length >>> 1) - 1) + upper) / 2;
}

const HIGH = new Uint32Array(1 << 16);
const LOW = new Uint32Array(1 << 16);
const WORD = new Int32Array(1);
const FLOAT = new Float32Array(WORD.buffer);

/** Maps the bits of a float to a number that is larger the larger the float is, as an unsigned integer. */
function ordered(bits: number): number {
  return bits < 0 ? ~bits : bits ^ 0x80000000;
}

/** The value of rank `rank` (from 0); HIGH counts the upper halves of all values. */
function select(bits: Int32Array, rank: number): number {
  let high = 0;
  let below = 0;
  while (below + HIGH[high] <= rank) below += HIGH[high++];
  LOW.fill(0);
  for (let i = 0; i < bits.length; i++) {
    const key = ordered(bits[i]);
    if (key >>> 16 === high) LOW[key & 0xffff]++;
  }
  let low = 0;
  while (below + LOW[low] <= rank) below += LOW[low++];
  const key = (high << 16) | low;
  WORD[0] = key < 0 ? key ^ 0x80000000 : ~key;
  return FLOAT[0];
}
