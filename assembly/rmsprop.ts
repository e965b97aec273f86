// RMSprop (Hinton's lecture 6e; centred: Graves, 2013) with PyTorch's semantics, in one pass:
//   g ← g + l2·θ
//   v ← αv + (1 − α)g²
//   a ← αa + (1 − α)g,  v̂ ← v − a²        only centred (address of a is 0: v̂ = v)
//   u ← g / (√v̂ + ε)
//   b ← momentum·b + u,  u ← b             only with momentum (address of b is 0: none)
//   θ ← θ − lr·u

export function rmspropF32(
  theta: usize, grad: usize, v: usize, a: usize, b: usize, n: u32,
  rate: f64, alpha: f64, eps: f64, l2: f64, momentum: f64,
): void {
  rmsprop<f32>(theta, grad, v, a, b, n, rate, alpha, eps, l2, momentum);
}

export function rmspropF64(
  theta: usize, grad: usize, v: usize, a: usize, b: usize, n: u32,
  rate: f64, alpha: f64, eps: f64, l2: f64, momentum: f64,
): void {
  rmsprop<f64>(theta, grad, v, a, b, n, rate, alpha, eps, l2, momentum);
}

function rmsprop<T extends number>(
  theta: usize, grad: usize, v: usize, a: usize, b: usize, n: u32,
  rate: f64, alpha: f64, eps: f64, l2: f64, momentum: f64,
): void {
  const vRate = v128.splat<T>(<T>rate);
  const vAlpha = v128.splat<T>(<T>alpha);
  const vRest = v128.splat<T>(<T>(1 - alpha));
  const vEps = v128.splat<T>(<T>eps);
  const vL2 = v128.splat<T>(<T>l2);
  const vMomentum = v128.splat<T>(<T>momentum);
  const bytes: usize = <usize>n * sizeof<T>();
  if (bytes == 0) return;
  let i: usize = 0;
  do {
    const p = v128.load(theta + i);
    const g = v128.add<T>(v128.load(grad + i), v128.mul<T>(vL2, p));
    let square = v128.add<T>(v128.mul<T>(vAlpha, v128.load(v + i)), v128.mul<T>(vRest, v128.mul<T>(g, g)));
    v128.store(v + i, square);
    if (a != 0) {
      const mean = v128.add<T>(v128.mul<T>(vAlpha, v128.load(a + i)), v128.mul<T>(vRest, g));
      v128.store(a + i, mean);
      // Rounding can leave the variance of a constant gradient just below 0, where PyTorch gives NaN.
      square = v128.max<T>(v128.sub<T>(square, v128.mul<T>(mean, mean)), v128.splat<T>(0));
    }
    let update = v128.div<T>(g, v128.add<T>(v128.sqrt<T>(square), vEps));
    if (b != 0) {
      update = v128.add<T>(v128.mul<T>(vMomentum, v128.load(b + i)), update);
      v128.store(b + i, update);
    }
    v128.store(theta + i, v128.sub<T>(p, v128.mul<T>(vRate, update)));
    i += 16;
  } while (i < bytes);
}
