import { LANES, ROW_SHIFT } from './plan';

/**
 * Reorders the rows of a leaf, those that go left first, each side in its old order; returns how many go left.
 * `column` is the address of the feature's lane in its block; bin `leftBin` (-1: none) goes left beside those <= bin.
 */
export function partition(rows: usize, n: i32, column: usize, bin: i32, leftBin: i32, scratch: usize): i32 {
  let left: i32 = 0;
  let right: i32 = 0;
  for (let i = 0; i < n; i++) {
    const row = load<u32>(rows + (<usize>i << 2));
    const value = <i32>load<u8>(column + (<usize>row << ROW_SHIFT));
    const goesLeft = i32(value <= bin) | i32(value == leftBin);
    store<u32>(rows + (<usize>left << 2), row);
    store<u32>(scratch + (<usize>right << 2), row);
    left += goesLeft;
    right += 1 - goesLeft;
  }
  memory.copy(rows + (<usize>left << 2), scratch, <usize>right << 2);
  return left;
}

/** Adds a leaf's value to the scores of its rows. */
export function addToLeaf(rows: usize, n: i32, value: f64, scores: usize): void {
  for (let i = 0; i < n; i++) {
    const at = scores + (<usize>load<u32>(rows + (<usize>i << 2)) << 3);
    store<f64>(at, load<f64>(at) + value);
  }
}

/**
 * Adds a tree to the scores of binned rows: of the listed ones, or of rows 0 .. n-1 where `rows` is 0. A node is
 * five i32: feature, bin, left bin, left child, right child; a child below 0 is the complement of a leaf.
 */
export function addTree(
  rows: usize,
  n: i32,
  bins: usize,
  blockRows: u32,
  nodes: usize,
  values: usize,
  scores: usize,
): void {
  for (let i = 0; i < n; i++) {
    const row = rows ? load<u32>(rows + (<usize>i << 2)) : <u32>i;
    let node: i32 = 0;
    while (node >= 0) {
      const at = nodes + <usize>node * 20;
      const feature = <usize>load<u32>(at);
      const value = <i32>load<u8>(bins + (((feature >> ROW_SHIFT) * <usize>blockRows + <usize>row) << ROW_SHIFT) + (feature & (LANES - 1)));
      node = i32(value <= load<i32>(at, 4)) | i32(value == load<i32>(at, 8)) ? load<i32>(at, 12) : load<i32>(at, 16);
    }
    const at = scores + (<usize>row << 3);
    store<f64>(at, load<f64>(at) + load<f64>(values + (<usize>~node << 3)));
  }
}
