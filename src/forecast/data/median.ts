import { loadKernels, type MedianKernels, newMemory } from '../../kernels.js';

/**
 * Numbers in a memory where SIMD kernels find their exact median. The cost grows with their number alone: a sample tells
 * between which two values the middle most likely lies, twice, and of those in between the bits are counted; no more than
 * a sample is sorted.
 */
export class MedianMemory {
  /** Room for the numbers. */
  readonly values: Float32Array;
  /** Further room, for what they are made from. */
  readonly besides: Float32Array;
  /** Numbers that are there. */
  length = 0;
  /** Room for those near the middle, and for those nearer still. */
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

  /** Adds x ∕ base of so many elements of two arrays in `besides`, from these places on; what is NaN is left out. */
  addRatios(x: Float32Array, from: number, base: Float32Array, baseFrom: number, count: number): void {
    const to = this.values.byteOffset + this.length * BYTES;
    const [address, baseAddress] = [x.byteOffset + from * BYTES, base.byteOffset + baseFrom * BYTES];
    this.length += this.kernels.knownRatios(address, baseAddress, count, to);
  }

  /** Takes the first `count` of `values`, what is NaN left out; returns how many they are. */
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

/** Numbers from which on a first look at some of them pays. */
const MANY = 4096;
const SAMPLE = new Float32Array(1024);
/** Places of the sorted sample on either side of a rank: four standard deviations of the rank of the median. */
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
