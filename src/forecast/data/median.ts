/**
 * The exact median of the first `length` values of `values` (no NaN among them), the mean of the two middle ones when
 * their number is even; NaN when there is none. Two counting passes over the bits of the floats, no sorting: the cost
 * grows with the length alone.
 */
export function median(values: Float32Array, length = values.length): number {
  if (length === 0) return Number.NaN;
  const bits = new Int32Array(values.buffer, values.byteOffset, length);
  HIGH.fill(0);
  for (let i = 0; i < length; i++) HIGH[ordered(bits[i]!) >>> 16]!++;
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
  while (below + HIGH[high]! <= rank) below += HIGH[high++]!;
  LOW.fill(0);
  for (let i = 0; i < bits.length; i++) {
    const key = ordered(bits[i]!);
    if (key >>> 16 === high) LOW[key & 0xffff]!++;
  }
  let low = 0;
  while (below + LOW[low]! <= rank) below += LOW[low++]!;
  const key = (high << 16) | low;
  WORD[0] = key < 0 ? key ^ 0x80000000 : ~key;
  return FLOAT[0]!;
}
