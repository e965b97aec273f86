import { plan } from './plan';

/** Sum of |weight * (score - label)|, from which the caller derives the fixed-point unit. */
export function absoluteGradient(n: i32, scores: usize, labels: usize, weights: usize): f64 {
  let sum: f64 = 0;
  for (let i = 0; i < n; i++) {
    const at = <usize>i << 3;
    const residual = abs(load<f64>(scores + at) - load<f64>(labels + at));
    sum += weights ? residual * load<f64>(weights + at) : residual;
  }
  return sum;
}

/** Sum of weight * (score - label)^2. */
export function squaredError(n: i32, scores: usize, labels: usize, weights: usize): f64 {
  let sum: f64 = 0;
  for (let i = 0; i < n; i++) {
    const at = <usize>i << 3;
    const residual = load<f64>(scores + at) - load<f64>(labels + at);
    sum += weights ? residual * residual * load<f64>(weights + at) : residual * residual;
  }
  return sum;
}

/** Packs the L2 gradients weight * (score - label) of all rows; `scale` is 1 / gradientUnit. */
export function packGradients(
  n: i32,
  scores: usize,
  labels: usize,
  weights: usize,
  scale: f64,
  hessianScale: f64,
  out: usize,
): void {
  const p = plan();
  const shift = p.countBits;
  p.gradientUnit = 1 / scale;
  for (let i = 0; i < n; i++) {
    const at = <usize>i << 3;
    let gradient = load<f64>(scores + at) - load<f64>(labels + at);
    if (weights) {
      const weight = load<f64>(weights + at);
      gradient *= weight;
      store<i64>(out + (at << 1), <i64>nearest(weight * hessianScale), 8);
      store<i64>(out + (at << 1), ((<i64>nearest(gradient * scale)) << shift) + 1);
    } else {
      store<i64>(out + at, ((<i64>nearest(gradient * scale)) << shift) + 1);
    }
  }
}

/** Gathers the packed gradients of a leaf into the order of its rows. */
export function gatherGradients(rows: usize, n: i32, packed: usize, out: usize): void {
  if (plan().weighted) {
    for (let i = 0; i < n; i++) {
      const row = <usize>load<u32>(rows + (<usize>i << 2));
      v128.store(out + (<usize>i << 4), v128.load(packed + (row << 4)));
    }
  } else {
    for (let i = 0; i < n; i++) {
      const row = <usize>load<u32>(rows + (<usize>i << 2));
      store<i64>(out + (<usize>i << 3), load<i64>(packed + (row << 3)));
    }
  }
}

/** Sum over gathered gradients: of the packed gradients (`lane` 0) or of the hessians (`lane` 1). */
export function sumGradients(n: i32, gradients: usize, lane: i32): i64 {
  const shift: usize = plan().weighted ? 4 : 3;
  let sum: i64 = 0;
  for (let i = 0; i < n; i++) sum += load<i64>(gradients + (<usize>i << shift) + (<usize>lane << 3));
  return sum;
}
