// Random arrays from a counter: element i of the array of a key is a hash of (key, i), so an array can be made again
// from its key alone, in any order and on any number of threads.

/**
 * out[i] ← 1/keep with probability `keep`, rounded to a multiple of 2⁻¹⁶ (0 < keep ≤ 1), else 0. Eight elements
 * share four 32-bit hashes: elements 8b + j and 8b + 4 + j (j < 4) are kept iff the low and the high half of
 * hash(4b + j) are below keep·2¹⁶. Whole groups of eight are written.
 */
export function dropoutMask(out: usize, n: u32, keyLow: u32, keyHigh: u32, keep: f64): void {
  const first = firstWord(keyLow, keyHigh);
  const k0 = i32x4.splat(first);
  const k1 = i32x4.splat(secondWord(keyHigh, first));
  const limit = i32x4.splat(max<i32>(1, <i32>nearest(keep * 65536.0)));
  const lowHalf = i32x4.splat(0xffff);
  const kept = f32x4.splat(<f32>(1.0 / keep));
  const four = i32x4.splat(4);
  let counter = i32x4(0, 1, 2, 3);
  const bytes: usize = <usize>n * 4;
  if (bytes == 0) return;
  let i: usize = 0;
  do {
    const hash = mixVector(i32x4.add(counter, k0), k1);
    v128.store(out + i, v128.and(i32x4.lt_s(v128.and(hash, lowHalf), limit), kept));
    v128.store(out + i, v128.and(i32x4.lt_s(i32x4.shr_u(hash, 16), limit), kept), 16);
    counter = i32x4.add(counter, four);
    i += 32;
  } while (i < bytes);
}

/** out[i] ← (h + ½)·2⁻¹⁶ with h the half of a hash that decides on element i of a mask: uniform in (0, 1). */
export function uniforms(out: usize, n: u32, keyLow: u32, keyHigh: u32): void {
  const first = firstWord(keyLow, keyHigh);
  const k0 = i32x4.splat(first);
  const k1 = i32x4.splat(secondWord(keyHigh, first));
  const lowHalf = i32x4.splat(0xffff);
  const half = f32x4.splat(0.5);
  const unit = f32x4.splat(1.0 / 65536.0);
  const four = i32x4.splat(4);
  let counter = i32x4(0, 1, 2, 3);
  const bytes: usize = <usize>n * 4;
  if (bytes == 0) return;
  let i: usize = 0;
  do {
    const hash = mixVector(i32x4.add(counter, k0), k1);
    const low = f32x4.convert_i32x4_s(v128.and(hash, lowHalf));
    const high = f32x4.convert_i32x4_s(i32x4.shr_u(hash, 16));
    v128.store(out + i, f32x4.mul(f32x4.add(low, half), unit));
    v128.store(out + i, f32x4.mul(f32x4.add(high, half), unit), 16);
    counter = i32x4.add(counter, four);
    i += 32;
  } while (i < bytes);
}

/**
 * out[i] ← 1/keep with probability `keep`, rounded to a multiple of 2⁻³², else 0: by a hash that is made of sums,
 * products and quotients alone, which every device has. Element i is kept iff hash(i) ≤ limit. Whole groups of four are
 * written.
 */
export function portableMask(out: usize, n: u32, keyLow: u32, keyHigh: u32, keep: f64): void {
  const first = firstWord(keyLow, keyHigh);
  const k0 = i32x4.splat(first);
  const k1 = i32x4.splat(secondWord(keyHigh, first));
  const limit = i32x4.splat(<i32>portableLimit(keep));
  const kept = f32x4.splat(<f32>(1.0 / keep));
  const four = i32x4.splat(4);
  let counter = i32x4(0, 1, 2, 3);
  const bytes: usize = <usize>n * 4;
  if (bytes == 0) return;
  let i: usize = 0;
  do {
    v128.store(out + i, v128.and(i32x4.le_u(portableHash(counter, k0, k1), limit), kept));
    counter = i32x4.add(counter, four);
    i += 16;
  } while (i < bytes);
}

/** out[i] ← (h + ½)·2⁻²³ with h the upper 23 bits of the hash of element i of a portable mask: uniform in (0, 1). */
export function portableUniforms(out: usize, n: u32, keyLow: u32, keyHigh: u32): void {
  const first = firstWord(keyLow, keyHigh);
  const k0 = i32x4.splat(first);
  const k1 = i32x4.splat(secondWord(keyHigh, first));
  const half = f32x4.splat(0.5);
  const unit = f32x4.splat(1.0 / 8388608.0);
  const four = i32x4.splat(4);
  let counter = i32x4(0, 1, 2, 3);
  const bytes: usize = <usize>n * 4;
  if (bytes == 0) return;
  let i: usize = 0;
  do {
    const upper = f32x4.convert_i32x4_s(i32x4.shr_u(portableHash(counter, k0, k1), 9));
    v128.store(out + i, f32x4.mul(f32x4.add(upper, half), unit));
    counter = i32x4.add(counter, four);
    i += 16;
  } while (i < bytes);
}

/** What a program needs that computes a portable array itself: the two words of a key, and the limit of a share. */
export function portableFirst(keyLow: u32, keyHigh: u32): u32 {
  return firstWord(keyLow, keyHigh);
}

export function portableSecond(keyLow: u32, keyHigh: u32): u32 {
  return secondWord(keyHigh, firstWord(keyLow, keyHigh));
}

export function portableLimit(keep: f64): u32 {
  return <u32>max<f64>(0, min<f64>(nearest(keep * 4294967296.0) - 1.0, 4294967295.0));
}

// @ts-ignore: decorators on functions are AssemblyScript's
@inline
function portableHash(counter: v128, k0: v128, k1: v128): v128 {
  let x = quadratic(i32x4.add(counter, k0));
  x = quadratic(i32x4.add(halvesExchanged(x), k1));
  return quadratic(i32x4.add(halvesExchanged(x), k0));
}

// x·(2x + 1), a permutation of the 32-bit integers that is far from linear (as in RC6, Rivest et al. 1998). Sums of x and
// x >>> 16 would be nearly linear, and their masks full of patterns.

// @ts-ignore: decorators on functions are AssemblyScript's
@inline
function quadratic(x: v128): v128 {
  return i32x4.mul(x, i32x4.add(i32x4.add(x, x), i32x4.splat(1)));
}

// @ts-ignore: decorators on functions are AssemblyScript's
@inline
function halvesExchanged(x: v128): v128 {
  return i32x4.add(i32x4.shr_u(x, 16), i32x4.shl(x, 16));
}

// Both words depend on all 64 bits, so that the arrays of similar keys are unrelated.

// @ts-ignore: decorators on functions are AssemblyScript's
@inline
function firstWord(keyLow: u32, keyHigh: u32): u32 {
  return mix(mix(keyLow, 0x9e3779b9), keyHigh);
}

// @ts-ignore: decorators on functions are AssemblyScript's
@inline
function secondWord(keyHigh: u32, first: u32): u32 {
  return mix(mix(keyHigh, 0x85ebca6b), first);
}

// triple32 of C. Wellons' hash-prospector, a permutation of the 32-bit integers at the theoretical limit of bias,
// with a key mixed in after the first of its three rounds.

// @ts-ignore: decorators on functions are AssemblyScript's
@inline
function mix(x: u32, key: u32): u32 {
  x = (x ^ (x >>> 17)) * 0xed5ad4bb;
  x = (x ^ (x >>> 11) ^ key) * 0xac4c1b51;
  x = (x ^ (x >>> 15)) * 0x31848bab;
  return x ^ (x >>> 14);
}

// @ts-ignore: decorators on functions are AssemblyScript's
@inline
function mixVector(x: v128, key: v128): v128 {
  x = i32x4.mul(v128.xor(x, i32x4.shr_u(x, 17)), i32x4.splat(0xed5ad4bb));
  x = i32x4.mul(v128.xor(v128.xor(x, i32x4.shr_u(x, 11)), key), i32x4.splat(0xac4c1b51));
  x = i32x4.mul(v128.xor(x, i32x4.shr_u(x, 15)), i32x4.splat(0x31848bab));
  return v128.xor(x, i32x4.shr_u(x, 14));
}
