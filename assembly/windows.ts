// Windows of one field of many samples, normalised. See `src/forecast/data/windows.ts`.

/**
 * For n samples, whose own cells begin `places[b]` elements into `values`, and the days l of their windows
 *
 *     out[b·rowStep + l·dayStep] ← clip((value ∕ base − centre[l]) · factor[l]),   `missing` where that is NaN
 *
 * where the value is the field at `offset` of a cell, and the base that at `base` of the sample's own cell, or 1 where
 * `base` is negative. Cells of earlier days lie `dayStride` elements further to the front each; a window that begins
 * before day 0 has `missing` there. In f64, rounded once.
 */
export function normalisedWindows(
  values: usize,
  places: usize,
  days: usize,
  n: i32,
  dayStride: i32,
  window: i32,
  offset: i32,
  base: i32,
  centre: usize,
  factor: usize,
  clip: f64,
  missing: f64,
  out: usize,
  dayStep: i32,
  rowStep: i32,
): void {
  const highs = f64x2.splat(clip);
  const lows = f64x2.splat(-clip);
  const missings = f64x2.splat(missing);
  const stride: usize = <usize>dayStride << 2;
  const step: usize = <usize>dayStep << 2;
  for (let b = 0; b < n; b++) {
    const own = values + (<usize>load<u32>(places + (<usize>b << 2)) << 2);
    const before = window - 1 - load<i32>(days + (<usize>b << 2));
    const bases = f64x2.splat(base < 0 ? 1 : <f64>load<f32>(own + (<usize>base << 2)));
    let to = out + (<usize>(b * rowStep) << 2);
    let l = 0;
    for (; l < before; l++, to += step) store<f32>(to, <f32>missing);
    let from = own + (<usize>offset << 2) - <usize>(window - 1 - l) * stride;
    for (; l < window; l += 2) {
      const isPair = l + 1 < window;
      let two = v128.load32_zero(from);
      if (isPair) two = v128.load32_lane(from + stride, two, 1);
      const column = <usize>l << 3;
      const ratio = f64x2.div(f64x2.promote_low_f32x4(two), bases);
      const x = f64x2.mul(f64x2.sub(ratio, v128.load(centre + column)), v128.load(factor + column));
      const clipped = f64x2.pmax(f64x2.pmin(x, highs), lows);
      const rounded = f32x4.demote_f64x2_zero(v128.bitselect(clipped, missings, f64x2.eq(x, x)));
      v128.store32_lane(to, rounded, 0);
      if (isPair) v128.store32_lane(to + step, rounded, 1);
      from += stride << 1;
      to += step << 1;
    }
  }
}
