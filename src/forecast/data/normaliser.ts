import { InputError } from '../../errors.js';
import { columnCount, columnReader, type FeatureSpec } from './features.js';
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
  const read = columnReader(panel, spec, samples);
  for (let column = 0; column < columns; column++) {
    const length = read(column, values);
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
 * their number is even; NaN when there is none. The cost grows with the length alone: a sample of the values tells
 * between which two the middle most likely lies, and of those in between the bits are counted; nothing is sorted.
 */
export function median(values: Float32Array, length = values.length): number {
  if (length === 0) return Number.NaN;
  const [first, last] = [(length - 1) >>> 1, length >>> 1];
  if (length >= MANY) {
    const [low, high] = likelyMiddle(values, length);
    if (between.length < length) between = new Int32Array(length);
    const bits = new Int32Array(values.buffer, values.byteOffset, length);
    let below = 0;
    let inside = 0;
    // Without branches: half of the values lie on either side, in no order, and wrong guesses would cost the most.
    for (let i = 0; i < length; i++) {
      const place = halfOrder(bits[i]);
      const under = (place - low) >>> 31;
      const over = (high - place) >>> 31;
      below += under;
      between[inside] = bits[i];
      inside += 1 ^ (under | over);
    }
    if (first >= below && last < below + inside) {
      return middleOf(between.subarray(0, inside), first - below, last - below);
    }
  }
  return middleOf(new Int32Array(values.buffer, values.byteOffset, length), first, last);
}

/** Values from which on a first look at some of them pays. */
const MANY = 4096;
const SAMPLE = new Float32Array(1024);
/** Places of the sorted sample on either side of its middle: four standard deviations of the rank of the median. */
const AROUND = 64;
/** Bits of the values between the two, in memory that is used again. */
let between = new Int32Array(0);

/** A number that grows with the float of these bits, and small enough that a difference of two is an int32. */
function halfOrder(bits: number): number {
  return (bits ^ ((bits >> 31) >>> 1)) >> 1;
}

function likelyMiddle(values: Float32Array, length: number): [low: number, high: number] {
  const step = Math.floor(length / SAMPLE.length);
  for (let i = 0; i < SAMPLE.length; i++) SAMPLE[i] = values[i * step];
  SAMPLE.sort();
  const bits = new Int32Array(SAMPLE.buffer);
  return [halfOrder(bits[SAMPLE.length / 2 - AROUND]), halfOrder(bits[SAMPLE.length / 2 + AROUND])];
}

/** The mean of the values of two ranks (from 0) that are equal or follow each other, by two counting passes over bits. */
function middleOf(bits: Int32Array, first: number, last: number): number {
  HIGH.fill(0);
  for (let i = 0; i < bits.length; i++) HIGH[ordered(bits[i]) >>> 16]++;
  const [upper, below] = select(bits, last);
  if (first === last) return upper;
  return ((below ?? select(bits, first)[0]) + upper) / 2;
}

const HIGH = new Uint32Array(1 << 16);
const LOW = new Uint32Array(1 << 16);
const WORD = new Int32Array(1);
const FLOAT = new Float32Array(WORD.buffer);

/** Maps the bits of a float to a number that is larger the larger the float is, as an unsigned integer. */
function ordered(bits: number): number {
  return bits < 0 ? ~bits : bits ^ 0x80000000;
}

/**
 * The value of rank `rank` (from 0), and the one below it where both have the same upper half; HIGH counts the upper
 * halves of all values.
 */
function select(bits: Int32Array, rank: number): [value: number, below?: number] {
  let high = 0;
  let before = 0;
  while (before + HIGH[high] <= rank) before += HIGH[high++];
  LOW.fill(0);
  for (let i = 0; i < bits.length; i++) {
    const key = ordered(bits[i]);
    if (key >>> 16 === high) LOW[key & 0xffff]++;
  }
  const value = selectLow(high, rank - before);
  return rank === before ? [value] : [value, selectLow(high, rank - before - 1)];
}

/** The value of rank `rank` among those with the upper half `high`, whose lower halves LOW counts. */
function selectLow(high: number, rank: number): number {
  let low = 0;
  let before = 0;
  while (before + LOW[low] <= rank) before += LOW[low++];
  const key = (high << 16) | low;
  WORD[0] = key < 0 ? key ^ 0x80000000 : ~key;
  return FLOAT[0];
}
