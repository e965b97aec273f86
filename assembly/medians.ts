// What an exact median of many f32 numbers is made of. Unlike the other kernels these take arrays of any length, none of
// which need be padded, but `out` has room for four more elements than are read.

/** out ← x ∕ base, what is NaN left out; returns how many are left. */
export function knownRatios(x: usize, base: usize, n: u32, out: usize): u32 {
  const start = out;
  const bytes: usize = <usize>n * 4;
  const whole: usize = bytes & ~15;
  let i: usize = 0;
  for (; i < whole; i += 16) {
    const four = f32x4.div(v128.load(x + i), v128.load(base + i));
    const known = f32x4.eq(four, four);
    if (i32x4.all_true(known)) {
      v128.store(out, four);
      out += 16;
    } else if (v128.any_true(known)) {
      out = storeSome(out, four, known);
    }
  }
  for (; i < bytes; i += 4) {
    const one = load<f32>(x + i) / load<f32>(base + i);
    if (one != one) continue;
    store<f32>(out, one);
    out += 4;
  }
  return <u32>((out - start) >> 2);
}

/** How many elements are less than a bound. */
export function countBelow(x: usize, n: u32, bound: f64): u32 {
  const limit = <f32>bound;
  const limits = f32x4.splat(limit);
  const bytes: usize = <usize>n * 4;
  const whole: usize = bytes & ~15;
  let sums = i32x4.splat(0);
  let i: usize = 0;
  for (; i < whole; i += 16) sums = i32x4.sub(sums, f32x4.lt(v128.load(x + i), limits));
  let count =
    i32x4.extract_lane(sums, 0) +
    i32x4.extract_lane(sums, 1) +
    i32x4.extract_lane(sums, 2) +
    i32x4.extract_lane(sums, 3);
  for (; i < bytes; i += 4) count += i32(load<f32>(x + i) < limit);
  return <u32>count;
}

/** out ← the elements from `low` to `high`, both included, in their order; returns how many. */
export function takeBetween(x: usize, n: u32, low: f64, high: f64, out: usize): u32 {
  const start = out;
  const from = <f32>low;
  const to = <f32>high;
  const lows = f32x4.splat(from);
  const highs = f32x4.splat(to);
  const bytes: usize = <usize>n * 4;
  const whole: usize = bytes & ~15;
  let i: usize = 0;
  for (; i < whole; i += 16) {
    const four = v128.load(x + i);
    const inside = v128.and(f32x4.ge(four, lows), f32x4.le(four, highs));
    out = storeSome(out, four, inside);
  }
  for (; i < bytes; i += 4) {
    const one = load<f32>(x + i);
    if (!(one >= from && one <= to)) continue;
    store<f32>(out, one);
    out += 4;
  }
  return <u32>((out - start) >> 2);
}

/** x ← |x − centre|, the difference in f64 and rounded once. */
export function deviations(x: usize, n: u32, centre: f64): void {
  const centres = f64x2.splat(centre);
  const bytes: usize = <usize>n * 4;
  const whole: usize = bytes & ~7;
  let i: usize = 0;
  for (; i < whole; i += 8) {
    const two = f64x2.sub(f64x2.promote_low_f32x4(v128.load64_zero(x + i)), centres);
    v128.store64_lane(x + i, f32x4.demote_f64x2_zero(f64x2.abs(two)), 0);
  }
  for (; i < bytes; i += 4) store<f32>(x + i, <f32>Math.abs(<f64>load<f32>(x + i) - centre));
}

/**
 * Stores the lanes that a mask of all or no bits chooses; returns the place behind them, and may write four elements beyond
 * it. Without branches: which lanes are chosen cannot be guessed, and wrong guesses would cost the most.
 */
// @ts-ignore: decorators on functions are AssemblyScript's
@inline
function storeSome(out: usize, four: v128, chosen: v128): usize {
  const bits = <usize>i32x4.bitmask(chosen) << 2;
  v128.store32_lane(out, four, 0);
  out += bits & 4;
  v128.store32_lane(out, four, 1);
  out += (bits >> 1) & 4;
  v128.store32_lane(out, four, 2);
  out += (bits >> 2) & 4;
  v128.store32_lane(out, four, 3);
  return out + ((bits >> 3) & 4);
}
