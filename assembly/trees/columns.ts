import { ROW_SHIFT } from './plan';

/**
 * Writes the bin of each value: the first of 256 ascending bounds, the unused ones +infinity, that is not below it.
 * Missing values have the bin `missingBin`; where that is below 0 they count as 0, as in LightGBM.
 */
export function binColumn(values: usize, n: i32, bounds: usize, missingBin: i32, out: usize): void {
  for (let i = 0; i < n; i++) {
    let value = <f64>load<f32>(values + (<usize>i << 2));
    const missing = value != value;
    if (missing) value = 0;
    // Binary search in arithmetic, without branches: which way a step goes is a coin flip.
    let bound = bounds;
    bound += 1024 & -usize(load<f64>(bound, 1016) < value);
    bound += 512 & -usize(load<f64>(bound, 504) < value);
    bound += 256 & -usize(load<f64>(bound, 248) < value);
    bound += 128 & -usize(load<f64>(bound, 120) < value);
    bound += 64 & -usize(load<f64>(bound, 56) < value);
    bound += 32 & -usize(load<f64>(bound, 24) < value);
    bound += 16 & -usize(load<f64>(bound, 8) < value);
    bound += 8 & -usize(load<f64>(bound) < value);
    const bin = missing && missingBin >= 0 ? missingBin : i32((bound - bounds) >> 3);
    store<u8>(out + (<usize>i << ROW_SHIFT), bin);
  }
}

/**
 * Sorts finite f32 values, ascending, by four passes over the bytes of a key whose unsigned order is theirs.
 * `scratch` has room for the values, `counters` for 256 u32.
 */
export function sortValues(values: usize, n: i32, scratch: usize, counters: usize): void {
  for (let i = 0; i < n; i++) {
    const at = values + (<usize>i << 2);
    const bits = load<i32>(at);
    store<i32>(at, bits ^ ((bits >> 31) | i32.MIN_VALUE)); // flip all bits of negatives, the sign of the others
  }
  let from = values;
  let to = scratch;
  for (let shift: u32 = 0; shift < 32; shift += 8) {
    memory.fill(counters, 0, 1024);
    for (let i = 0; i < n; i++) {
      const counter = counters + (<usize>((load<u32>(from + (<usize>i << 2)) >> shift) & 255) << 2);
      store<u32>(counter, load<u32>(counter) + 1);
    }
    let position: u32 = 0;
    for (let digit: usize = 0; digit < 1024; digit += 4) {
      const count = load<u32>(counters + digit);
      store<u32>(counters + digit, position);
      position += count;
    }
    for (let i = 0; i < n; i++) {
      const key = load<u32>(from + (<usize>i << 2));
      const counter = counters + (<usize>((key >> shift) & 255) << 2);
      const place = load<u32>(counter);
      store<u32>(counter, place + 1);
      store<u32>(to + (<usize>place << 2), key);
    }
    const swap = from;
    from = to;
    to = swap;
  }
  for (let i = 0; i < n; i++) {
    const at = values + (<usize>i << 2);
    const key = load<i32>(at);
    store<i32>(at, key ^ (~(key >> 31) | i32.MIN_VALUE));
  }
}
