import { createHash } from 'node:crypto';
import { InputError } from './errors.js';

/** Everything a generator needs to continue where it stopped; plain JSON. */
export interface RandomState {
  readonly generator: 'xoshiro128**';
  /** 128 bits in hexadecimal that represent the seed and the path of forks; `fork` derives from it. */
  readonly origin: string;
  /** The four 32-bit words of the generator, unsigned. */
  readonly words: readonly [number, number, number, number];
  /** The second value of the last Box–Muller pair, if it has not been used yet. */
  readonly spare: number | null;
}

/** An array whose elements can be exchanged: a plain or a typed one. */
export interface Shuffleable {
  readonly length: number;
  [index: number]: unknown;
}

/**
 * The one source of randomness: xoshiro128** 1.1 (Blackman & Vigna, 2018; period 2¹²⁸ − 1), seeded with a hash of
 * any number or text, with a state that can be saved and restored at any point.
 */
export class Random {
  // Signed 32-bit integers, which the engine keeps unboxed.
  private s0 = 0;
  private s1 = 0;
  private s2 = 0;
  private s3 = 0;
  private spare: number | null = null;
  private origin: string;

  /** The number 7 and the text '7' are the same seed. */
  constructor(seed: number | string) {
    if (typeof seed === 'number' && !Number.isFinite(seed)) {
      throw new InputError(`a seed is a finite number or a string, not ${seed}`, { key: 'seed' });
    }
    this.origin = digest(String(seed));
    this.setWords(...([0, 8, 16, 24].map((at) => Number.parseInt(this.origin.slice(at, at + 8), 16)) as RandomWords));
  }

  /** A generator that continues exactly where the one that returned `state` was. */
  static restore(state: RandomState): Random {
    const { generator, origin, words, spare } = state;
    const valid =
      generator === 'xoshiro128**' &&
      typeof origin === 'string' &&
      /^[0-9a-f]{32}$/.test(origin) &&
      Array.isArray(words) &&
      words.length === 4 &&
      words.every((word) => Number.isInteger(word) && word >= 0 && word < TWO_32) &&
      words.some((word) => word !== 0) &&
      (spare === null || Number.isFinite(spare));
    if (!valid) throw new InputError('not the saved state of a xoshiro128** generator', { key: 'random' });
    const random = new Random(origin);
    random.origin = origin;
    random.spare = spare;
    random.setWords(...(words as RandomWords));
    return random;
  }

  /** The state as plain JSON, for `Random.restore`. */
  state(): RandomState {
    return {
      generator: 'xoshiro128**',
      origin: this.origin,
      words: [this.s0 >>> 0, this.s1 >>> 0, this.s2 >>> 0, this.s3 >>> 0],
      spare: this.spare,
    };
  }

  /**
   * An independent stream. It depends only on the seed and the name, not on how far this generator has been
   * drawn, so streams can be made in any order and a new one does not change the others.
   */
  fork(name: string): Random {
    return new Random(`${this.origin} ${name}`);
  }

  /** A whole number in [0, 2³²). */
  uint32(): number {
    const s1 = this.s1;
    let x = Math.imul(s1, 5);
    x = Math.imul((x << 7) | (x >>> 25), 9);
    const s2 = this.s2 ^ this.s0;
    const s3 = this.s3 ^ s1;
    this.s1 = s1 ^ s2;
    this.s0 ^= s3;
    this.s2 = s2 ^ (s1 << 9);
    this.s3 = (s3 << 11) | (s3 >>> 21);
    return x >>> 0;
  }

  /** A multiple of 2⁻⁵³ in [0, 1). */
  uniform(): number {
    return this.uint53() / TWO_53;
  }

  /** A standard normal number (Box–Muller; every second call hands out the spare of the pair). */
  normal(): number {
    if (this.spare !== null) {
      const spare = this.spare;
      this.spare = null;
      return spare;
    }
    // 1 − u lies in (0, 1], so that the logarithm is finite.
    const radius = Math.sqrt(-2 * Math.log(1 - this.uniform()));
    const angle = 2 * Math.PI * this.uniform();
    this.spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  }

  /** A whole number in [0, n), uniformly distributed. */
  int(n: number): number {
    if (!Number.isSafeInteger(n) || n < 1) throw new RangeError(`int(n) needs a positive whole number, not ${n}`);
    const small = n <= TWO_32;
    const range = small ? TWO_32 : TWO_53;
    // Values from the incomplete last multiple of n are drawn again.
    const limit = range - (range % n);
    let x: number;
    do x = small ? this.uint32() : this.uint53();
    while (x >= limit);
    return x % n;
  }

  /** Shuffles the elements in place (Fisher–Yates) and returns the array. */
  shuffle<A extends Shuffleable>(array: A): A {
    for (let i = array.length - 1; i > 0; i--) {
      const j = this.int(i + 1);
      const moved = array[i];
      array[i] = array[j];
      array[j] = moved;
    }
    return array;
  }

  /**
   * An index i in [0, length), drawn with probability proportional to `probabilities[offset + i]`. An index of
   * probability 0 is never drawn.
   */
  categorical(probabilities: ArrayLike<number>, offset = 0, length = probabilities.length - offset): number {
    let total = 0;
    for (let i = 0; i < length; i++) {
      const p = probabilities[offset + i];
      if (!(p >= 0)) throw new RangeError(`categorical: probability ${i} is ${p}, expected a number ≥ 0`);
      total += p;
    }
    if (!(total > 0 && total < Infinity)) {
      throw new RangeError(`categorical: the probabilities sum to ${total}, expected a positive number`);
    }
    const threshold = this.uniform() * total;
    let cumulative = 0;
    let last = 0;
    for (let i = 0; i < length; i++) {
      const p = probabilities[offset + i];
      if (p === 0) continue;
      last = i;
      cumulative += p;
      if (threshold < cumulative) break;
    }
    return last;
  }

  /** Fills the array with uniform numbers from `low` to `high`. */
  fillUniform(array: Float32Array | Float64Array, low: number, high: number): void {
    const width = high - low;
    for (let i = 0; i < array.length; i++) array[i] = low + width * this.uniform();
  }

  /** Fills the array with normal numbers. */
  fillNormal(array: Float32Array | Float64Array, mean: number, std: number): void {
    for (let i = 0; i < array.length; i++) array[i] = mean + std * this.normal();
  }

  private uint53(): number {
    const high = this.uint32() >>> 5;
    const low = this.uint32() >>> 6;
    return high * TWO_26 + low;
  }

  private setWords(s0: number, s1: number, s2: number, s3: number): void {
    this.s0 = s0 | 0;
    this.s1 = s1 | 0;
    this.s2 = s2 | 0;
    this.s3 = s3 | 0;
  }
}

type RandomWords = [number, number, number, number];

const TWO_26 = 2 ** 26;
const TWO_32 = 2 ** 32;
const TWO_53 = 2 ** 53;

/** The first 128 bits of SHA-256, in hexadecimal: similar seeds and names give unrelated streams. */
function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
