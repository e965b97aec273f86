/**
 * numpy's `default_rng(seed)`: PCG64 (O'Neill 2014, XSL-RR 128/64) seeded through numpy's SeedSequence. sacreBLEU draws
 * its resamples from it; drawing the same ones gives the same p-values.
 */
export class Pcg64 {
  // Eight limbs of 16 bits, least significant first.
  private readonly state = new Float64Array(8);
  private readonly increment: Float64Array;
  private high = 0;
  private hasHigh = false;
  private bits = 0;
  private bitsLeft = 0;

  /** @param seed an integer from 0 to 2³² − 1 */
  constructor(seed: number) {
    const words = seedWords(seed);
    // The first half of the words is the initial state, the second the sequence: each two little-endian 64-bit numbers,
    // the high one first.
    const initial = limbs([words[2], words[3], words[0], words[1]]);
    const sequence = limbs([words[6], words[7], words[4], words[5]]);
    this.increment = add(add(sequence, sequence), Float64Array.of(1, 0, 0, 0, 0, 0, 0, 0));
    this.step();
    this.state.set(add(this.state, initial));
    this.step();
  }

  /** A uniform 32-bit integer: the low half of a 64-bit draw, then its high half. */
  uint32(): number {
    if (this.hasHigh) {
      this.hasHigh = false;
      return this.high;
    }
    this.step();
    const s = this.state;
    const low = join(s[4], s[5]) ^ join(s[0], s[1]);
    const high = join(s[6], s[7]) ^ join(s[2], s[3]);
    // Rotate the 64-bit xor right by the state's top six bits.
    const turn = s[7] >>> 10;
    const [a, b] = turn < 32 ? [low, high] : [high, low];
    const shift = turn % 32;
    this.high = (shift === 0 ? b : (b >>> shift) | (a << (32 - shift))) >>> 0;
    this.hasHigh = true;
    return (shift === 0 ? a : (a >>> shift) | (b << (32 - shift))) >>> 0;
  }

  /** A uniform integer in [0, n), `rng.integers(n)` for n < 2³²: Lemire's multiplication with rejection. */
  int(n: number): number {
    if (n === 1) return 0;
    const threshold = (2 ** 32 - n) % n;
    while (true) {
      const draw = this.uint32();
      // The 64-bit product draw · n in two halves of at most 53 bits.
      const low = (draw & 0xffff) * n;
      const high = (draw >>> 16) * n + Math.floor(low / 65536);
      const fraction = (high % 65536) * 65536 + (low % 65536);
      if (fraction >= threshold) return Math.floor(high / 65536);
    }
  }

  /** A fair coin, `rng.integers(2, dtype=bool)`: the bits of a 32-bit draw, lowest first. */
  coin(): boolean {
    if (this.bitsLeft === 0) {
      this.bits = this.uint32();
      this.bitsLeft = 32;
    } else this.bits >>>= 1;
    this.bitsLeft--;
    return (this.bits & 1) === 1;
  }

  private step(): void {
    const state = this.state;
    let carry = 0;
    for (let k = 7; k >= 0; k--) {
      let sum = this.increment[k];
      for (let i = 0; i <= k; i++) sum += state[i] * MULTIPLIER[k - i];
      state[k] = sum;
    }
    for (let k = 0; k < 8; k++) {
      const total = state[k] + carry;
      carry = Math.floor(total / 65536);
      state[k] = total - carry * 65536;
    }
  }
}

// 0x2360ed051fc65da44385df649fccf645
const MULTIPLIER = limbs([0x9fccf645, 0x4385df64, 0x1fc65da4, 0x2360ed05]);

function limbs(words: readonly number[]): Float64Array {
  return Float64Array.from(words.flatMap((word) => [word & 0xffff, word >>> 16]));
}

function add(a: Float64Array, b: Float64Array): Float64Array {
  const sum = new Float64Array(8);
  let carry = 0;
  for (let k = 0; k < 8; k++) {
    const total = a[k] + b[k] + carry;
    carry = total >= 65536 ? 1 : 0;
    sum[k] = total - carry * 65536;
  }
  return sum;
}

function join(low: number, high: number): number {
  return (high << 16) | low;
}

/** SeedSequence(seed).generate_state(8): the hash of O'Neill's `seed_seq_fe`, pool of four words. */
function seedWords(seed: number): number[] {
  let constant = 0x43b0d7e5;
  const hash = (word: number) => {
    const mixed = word ^ constant;
    constant = Math.imul(constant, 0x931e8875);
    return fold(Math.imul(mixed, constant));
  };
  const pool = [seed >>> 0, 0, 0, 0].map(hash);
  for (let from = 0; from < 4; from++) {
    for (let to = 0; to < 4; to++) {
      if (from === to) continue;
      pool[to] = fold(Math.imul(0xca01f9dd, pool[to]) - Math.imul(0x4973f715, hash(pool[from])));
    }
  }
  constant = 0x8b51f9dd;
  return Array.from({ length: 8 }, (_, i) => {
    const mixed = pool[i % 4] ^ constant;
    constant = Math.imul(constant, 0x58f38ded);
    return fold(Math.imul(mixed, constant)) >>> 0;
  });
}

function fold(word: number): number {
  const unsigned = word >>> 0;
  return (unsigned ^ (unsigned >>> 16)) >>> 0;
}
