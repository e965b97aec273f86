// What a training step does to whole gradient arrays besides the optimiser: norm, scaling, clipping, summing.

/** Bytes summed before a partial sum joins the total: bounds the rounding error by blocks, not by elements. */
const BLOCK: usize = 16384;

/** Σ x², accumulated in f64, in an order that depends on n alone. */
export function squaredNormF32(x: usize, n: u32): f64 {
  const bytes: usize = <usize>n * 4;
  let total: f64 = 0;
  for (let start: usize = 0; start < bytes; start += BLOCK) {
    const end = min<usize>(start + BLOCK, bytes);
    let even = f64x2.splat(0);
    let odd = f64x2.splat(0);
    let i = start;
    do {
      const four = v128.load(x + i);
      const low = f64x2.promote_low_f32x4(four);
      const high = f64x2.promote_low_f32x4(v128.shuffle<u64>(four, four, 1, 1));
      even = f64x2.add(even, f64x2.mul(low, low));
      odd = f64x2.add(odd, f64x2.mul(high, high));
      i += 16;
    } while (i < end);
    total += lanes(even) + lanes(odd);
  }
  return total;
}

/** Σ x², in an order that depends on n alone. */
export function squaredNormF64(x: usize, n: u32): f64 {
  const bytes: usize = <usize>n * 8;
  let total: f64 = 0;
  for (let start: usize = 0; start < bytes; start += BLOCK) {
    const end = min<usize>(start + BLOCK, bytes);
    let sum = f64x2.splat(0);
    let i = start;
    do {
      const two = v128.load(x + i);
      sum = f64x2.add(sum, f64x2.mul(two, two));
      i += 16;
    } while (i < end);
    total += lanes(sum);
  }
  return total;
}

/** 1 if no element is infinite or NaN, else 0. */
export function allFiniteF32(x: usize, n: u32): bool {
  return allFinite<f32>(x, n);
}

export function allFiniteF64(x: usize, n: u32): bool {
  return allFinite<f64>(x, n);
}

/** x ← factor·x. */
export function scaleF32(x: usize, n: u32, factor: f64): void {
  scale<f32>(x, n, factor);
}

export function scaleF64(x: usize, n: u32, factor: f64): void {
  scale<f64>(x, n, factor);
}

/** x ← min(max(x, −limit), limit); a NaN stays a NaN. */
export function clampF32(x: usize, n: u32, limit: f64): void {
  clamp<f32>(x, n, limit);
}

export function clampF64(x: usize, n: u32, limit: f64): void {
  clamp<f64>(x, n, limit);
}

/** y ← y + a·x. */
export function axpyF32(y: usize, x: usize, n: u32, a: f64): void {
  axpy<f32>(y, x, n, a);
}

export function axpyF64(y: usize, x: usize, n: u32, a: f64): void {
  axpy<f64>(y, x, n, a);
}

/**
 * out ← ((x₀ + x₁) + x₂) + …, in this order whatever produced the arrays first. Array k is at `first + k·stride`
 * bytes; `out` may be one of them.
 */
export function sumF32(out: usize, first: usize, stride: usize, count: u32, n: u32): void {
  sum<f32>(out, first, stride, count, n);
}

export function sumF64(out: usize, first: usize, stride: usize, count: u32, n: u32): void {
  sum<f64>(out, first, stride, count, n);
}

function allFinite<T extends number>(x: usize, n: u32): bool {
  const infinity = v128.splat<T>(<T>Infinity);
  const bytes: usize = <usize>n * sizeof<T>();
  for (let start: usize = 0; start < bytes; start += BLOCK) {
    const end = min<usize>(start + BLOCK, bytes);
    let good = i32x4.splat(-1);
    let i = start;
    do {
      good = v128.and(good, v128.lt<T>(v128.abs<T>(v128.load(x + i)), infinity));
      i += 16;
    } while (i < end);
    if (!i32x4.all_true(good)) return false;
  }
  return true;
}

function scale<T extends number>(x: usize, n: u32, factor: f64): void {
  const vFactor = v128.splat<T>(<T>factor);
  const bytes: usize = <usize>n * sizeof<T>();
  if (bytes == 0) return;
  let i: usize = 0;
  do {
    v128.store(x + i, v128.mul<T>(vFactor, v128.load(x + i)));
    i += 16;
  } while (i < bytes);
}

function clamp<T extends number>(x: usize, n: u32, limit: f64): void {
  const high = v128.splat<T>(<T>limit);
  const low = v128.splat<T>(<T>-limit);
  const bytes: usize = <usize>n * sizeof<T>();
  if (bytes == 0) return;
  let i: usize = 0;
  do {
    v128.store(x + i, v128.min<T>(v128.max<T>(v128.load(x + i), low), high));
    i += 16;
  } while (i < bytes);
}

function axpy<T extends number>(y: usize, x: usize, n: u32, a: f64): void {
  const vA = v128.splat<T>(<T>a);
  const bytes: usize = <usize>n * sizeof<T>();
  if (bytes == 0) return;
  let i: usize = 0;
  do {
    v128.store(y + i, v128.add<T>(v128.load(y + i), v128.mul<T>(vA, v128.load(x + i))));
    i += 16;
  } while (i < bytes);
}

function sum<T extends number>(out: usize, first: usize, stride: usize, count: u32, n: u32): void {
  const bytes: usize = <usize>n * sizeof<T>();
  if (bytes == 0) return;
  let i: usize = 0;
  do {
    let total = v128.load(first + i);
    for (let k: u32 = 1; k < count; k++) {
      total = v128.add<T>(total, v128.load(first + <usize>k * stride + i));
    }
    v128.store(out + i, total);
    i += 16;
  } while (i < bytes);
}

// @ts-ignore: decorators on functions are AssemblyScript's
@inline
function lanes(two: v128): f64 {
  return f64x2.extract_lane(two, 0) + f64x2.extract_lane(two, 1);
}
