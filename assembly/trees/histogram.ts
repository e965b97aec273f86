import { ROW_SHIFT } from './plan';

/** Half a block: the features whose histograms fit into the first-level cache together. */
export const HALF: i32 = 16;

/**
 * Reads one byte of each row and nothing else. The rows of a small leaf lie far apart; reading them back to back
 * overlaps the cache misses, which the long loops over the features cannot.
 */
export function warm(rows: usize, n: i32, bins: usize): u32 {
  let sink: u32 = 0;
  for (let i = 0; i < n; i++) sink += load<u8>(bins + (<usize>load<u32>(rows + (<usize>i << 2)) << ROW_SHIFT));
  return sink;
}

/** Adds rows to the histograms of 16 features, one i64 a slot; `bins` is the address of the first in row 0. */
export function accumulate(rows: usize, n: i32, bins: usize, gradients: usize, histogram: usize): void {
  for (let i = 0; i < n; i++) {
    const row = bins + (<usize>load<u32>(rows + (<usize>i << 2)) << ROW_SHIFT);
    const gradient = load<i64>(gradients + (<usize>i << 3));
    add(histogram, row, gradient, 0);
    add(histogram, row, gradient, 1);
    add(histogram, row, gradient, 2);
    add(histogram, row, gradient, 3);
    add(histogram, row, gradient, 4);
    add(histogram, row, gradient, 5);
    add(histogram, row, gradient, 6);
    add(histogram, row, gradient, 7);
    add(histogram, row, gradient, 8);
    add(histogram, row, gradient, 9);
    add(histogram, row, gradient, 10);
    add(histogram, row, gradient, 11);
    add(histogram, row, gradient, 12);
    add(histogram, row, gradient, 13);
    add(histogram, row, gradient, 14);
    add(histogram, row, gradient, 15);
  }
}

/** The same with two i64 a slot, gradient and hessian, for weighted samples. */
export function accumulateWeighted(rows: usize, n: i32, bins: usize, gradients: usize, histogram: usize): void {
  for (let i = 0; i < n; i++) {
    const row = bins + (<usize>load<u32>(rows + (<usize>i << 2)) << ROW_SHIFT);
    const pair = v128.load(gradients + (<usize>i << 4));
    addPair(histogram, row, pair, 0);
    addPair(histogram, row, pair, 1);
    addPair(histogram, row, pair, 2);
    addPair(histogram, row, pair, 3);
    addPair(histogram, row, pair, 4);
    addPair(histogram, row, pair, 5);
    addPair(histogram, row, pair, 6);
    addPair(histogram, row, pair, 7);
    addPair(histogram, row, pair, 8);
    addPair(histogram, row, pair, 9);
    addPair(histogram, row, pair, 10);
    addPair(histogram, row, pair, 11);
    addPair(histogram, row, pair, 12);
    addPair(histogram, row, pair, 13);
    addPair(histogram, row, pair, 14);
    addPair(histogram, row, pair, 15);
  }
}

/** from -= other, over `bytes` rounded up to 16. */
export function subtract(from: usize, other: usize, bytes: usize): void {
  for (let at: usize = 0; at < bytes; at += 16) {
    v128.store(from + at, i64x2.sub(v128.load(from + at), v128.load(other + at)));
  }
}

// @ts-ignore: decorator
@inline
function add(histogram: usize, row: usize, gradient: i64, lane: usize): void {
  const slot = histogram + (lane << 11) + (<usize>load<u8>(row + lane) << 3);
  store<i64>(slot, load<i64>(slot) + gradient);
}

// @ts-ignore: decorator
@inline
function addPair(histogram: usize, row: usize, pair: v128, lane: usize): void {
  const slot = histogram + (lane << 12) + (<usize>load<u8>(row + lane) << 4);
  v128.store(slot, i64x2.add(v128.load(slot), pair));
}
