import { InputError } from '../../errors.js';
import { loadKernels, type MedianKernels, newMemory } from '../../kernels.js';
import { columnCount, type FeatureSpec, ratioCount, sourceOffsets, stridesOf, writeColumn } from './features.js';
import { fieldOffset, type PricePanel, type Samples } from './panel.js';

/** A robust z-score for each column: (x − centre) · factor, clipped to ±clip; a missing value becomes 0. */
export interface Normaliser {
  readonly centre: Float64Array;
  readonly factor: Float64Array;
  readonly clip: number;
}

/** A normaliser as stored in a run folder. */
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
 * is unchanged, that is 0 everywhere.
 */
export function fitNormaliser(panel: PricePanel, spec: FeatureSpec, samples: Samples, clip = 3): Normaliser {
  const columns = columnCount(spec);
  const centre = new Float64Array(columns);
  const factor = new Float64Array(columns).fill(1);
  const values = new Columns(panel, spec, samples);
  for (let column = 0; column < columns; column++) {
    if (values.read(column) === 0) continue;
    centre[column] = values.median();
    values.deviate(centre[column]);
    factor[column] = 1 / ((values.median() + EPSILON) * NORMAL);
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
 * The columns (see `columnCount`) of all samples, read in sequence into a memory in which their medians are found.
 * Samples come stock by stock, in stretches of days that follow each other.
 */
class Columns {
  private readonly memory: MedianMemory;
  private readonly stretches: Stretches;
  private readonly offsets: readonly number[];
  /** Series [stock][day] in the memory: the field read last, and what it is relative to. */
  private readonly field: Series;
  private readonly base: Series;

  constructor(
    private readonly panel: PricePanel,
    private readonly spec: FeatureSpec,
    private readonly samples: Samples,
  ) {
    const cells = panel.calendar.length * panel.symbols.length;
    this.memory = new MedianMemory(samples.length, 2 * cells);
    this.stretches = stretchesOf(panel, samples);
    this.offsets = sourceOffsets(panel, spec);
    this.field = { values: this.memory.besides.subarray(0, cells), offset: undefined };
    this.base = { values: this.memory.besides.subarray(cells), offset: undefined };
  }

  /** Reads a column, missing values left out; returns how many there are. */
  read(column: number): number {
    const { memory, panel, spec, samples, offsets } = this;
    const field = Math.floor(column / spec.window);
    if (field >= offsets.length) {
      writeColumn(panel, spec, samples, column, memory.values);
      return memory.keepKnown(samples.length);
    }
    const offset = offsets[field];
    if (offset < 0) return memory.keepKnown(0);
    const volume = fieldOffset(panel, 'volume');
    const ownDay = offset === volume ? volume : fieldOffset(panel, 'close');
    this.fill(this.field, offset);
    this.fill(this.base, field < ratioCount(spec) ? ownDay : NOTHING);
    const daysBack = spec.window - 1 - (column % spec.window);
    const { starts, days, lengths } = this.stretches;
    memory.clear();
    for (let i = 0; i < starts.length; i++) {
      const early = Math.max(0, daysBack - days[i]);
      if (early >= lengths[i]) continue;
      const cell = starts[i] + early;
      memory.addRatios(this.field.values, cell - daysBack, this.base.values, cell, lengths[i] - early);
    }
    return memory.length;
  }

  /** Of the column that was read last, or of its deviations. */
  median(): number {
    return this.memory.median();
  }

  /** Replaces the values of the column by their distances from the centre. */
  deviate(centre: number): void {
    this.memory.deviate(centre);
  }

  private fill(series: Series, offset: number): void {
    if (series.offset === offset) return;
    series.offset = offset;
    if (offset === NOTHING) {
      series.values.fill(1);
      return;
    }
    const { values, dayStride, stockStride } = stridesOf(this.panel);
    const days = this.panel.calendar.length;
    for (let stock = 0; stock < this.panel.symbols.length; stock++) {
      let from = stock * stockStride + offset;
      for (let day = 0; day < days; day++, from += dayStride) series.values[stock * days + day] = values[from];
    }
  }
}

interface Series {
  readonly values: Float32Array;
  /** Of the field in a cell of the panel. */
  offset: number | undefined;
}

/** Instead of an offset: values are not relative. */
const NOTHING = -1;

/** Samples of one stock on days that follow each other: where they begin in a series [stock][day], their first day. */
interface Stretches {
  readonly starts: Int32Array;
  readonly days: Int32Array;
  readonly lengths: Int32Array;
}

function stretchesOf({ calendar, symbols }: PricePanel, samples: Samples): Stretches {
  const days = calendar.length;
  const isSample = new Uint8Array(days * symbols.length);
  for (let i = 0; i < samples.length; i++) isSample[samples.stock[i] * days + samples.day[i]] = 1;
  const starts: number[] = [];
  const lengths: number[] = [];
  for (let cell = 0; cell < isSample.length; cell++) {
    if (isSample[cell] === 0) continue;
    const follows = cell % days > 0 && isSample[cell - 1] === 1;
    if (follows) lengths[lengths.length - 1]++;
    else {
      starts.push(cell);
      lengths.push(1);
    }
  }
  return {
    starts: Int32Array.from(starts),
    days: Int32Array.from(starts, (cell) => cell % days),
    lengths: Int32Array.from(lengths),
  };
}

/**
 * Numbers in a memory in which SIMD kernels find their exact median. The cost is linear: a sample shows
 * between which two values the median most likely lies, twice, and the bits of those in between are counted; no more than
 * a sample is sorted.
 */
export class MedianMemory {
  /** Room for the numbers. */
  readonly values: Float32Array;
  /** Additional space, for their inputs. */
  readonly besides: Float32Array;
  /** Number of values. */
  length = 0;
  /** Space for those near the median, and for those nearer still. */
  private readonly between: readonly Float32Array[];
  private readonly kernels: MedianKernels;

  constructor(capacity: number, besides = 0) {
    const room = capacity + 4; // as the kernels ask
    const memory = newMemory((3 * room + besides) * BYTES);
    this.kernels = loadKernels(memory).medians;
    const array = (start: number, length: number) => new Float32Array(memory.buffer, start * BYTES, length);
    this.values = array(0, capacity);
    this.between = [array(room, capacity), array(2 * room, capacity)];
    this.besides = array(3 * room, besides);
  }

  clear(): void {
    this.length = 0;
  }

  /** Adds x ∕ base of this many elements of two arrays in `besides`, starting at these offsets; NaN is skipped. */
  addRatios(x: Float32Array, from: number, base: Float32Array, baseFrom: number, count: number): void {
    const to = this.values.byteOffset + this.length * BYTES;
    const [address, baseAddress] = [x.byteOffset + from * BYTES, base.byteOffset + baseFrom * BYTES];
    this.length += this.kernels.knownRatios(address, baseAddress, count, to);
  }

  /** Takes the first `count` of `values`, skipping NaN; returns how many remain. */
  keepKnown(count: number): number {
    const { values } = this;
    let length = 0;
    for (let i = 0; i < count; i++) if (!Number.isNaN(values[i])) values[length++] = values[i];
    this.length = length;
    return length;
  }

  /** Replaces each number by its distance from the centre. */
  deviate(centre: number): void {
    this.kernels.deviations(this.values.byteOffset, this.length, centre);
  }

  /** The mean of the two middle ones when their number is even; NaN when there is none. */
  median(): number {
    const { length, values, between, kernels } = this;
    if (length === 0) return Number.NaN;
    let all: Float32Array = values.subarray(0, length);
    let [first, last] = [(length - 1) >>> 1, length >>> 1];
    for (const room of between) {
      if (all.length < MANY) break;
      const [low, high] = likelyMiddle(all, last);
      const below = kernels.countBelow(all.byteOffset, all.length, low);
      const inside = kernels.takeBetween(all.byteOffset, all.length, low, high, room.byteOffset);
      if (first < below || last >= below + inside) break;
      [all, first, last] = [room.subarray(0, inside), first - below, last - below];
    }
    return middleOf(new Int32Array(all.buffer, all.byteOffset, all.length), first, last);
  }
}

const BYTES = Float32Array.BYTES_PER_ELEMENT;

/** Number of values from which sampling pays off. */
const MANY = 4096;
const SAMPLE = new Float32Array(1024);
/** Positions in the sorted sample on either side of a rank: four standard deviations of the median's rank. */
const AROUND = 64;

/** Values between which the one of this rank most likely lies. */
function likelyMiddle(values: Float32Array, rank: number): [low: number, high: number] {
  const step = Math.floor(values.length / SAMPLE.length);
  for (let i = 0; i < SAMPLE.length; i++) SAMPLE[i] = values[i * step];
  SAMPLE.sort();
  const place = Math.floor((rank / values.length) * SAMPLE.length);
  return [SAMPLE[Math.max(0, place - AROUND)], SAMPLE[Math.min(SAMPLE.length - 1, place + AROUND)]];
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
