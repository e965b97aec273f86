// Adam (Kingma & Ba, 2015) and AdamW (Loshchilov & Hutter, 2019) with PyTorch's semantics, in one pass:
//   g ← g + l2·θ                          Adam's weight decay (l2 = 0 for AdamW)
//   m ← β₁m + (1 − β₁)g
//   v ← β₂v + (1 − β₂)g²
//   θ ← shrink·θ − stepSize·m / (√v·rootCorrection + ε)
// shrink = 1 − lr·λ is AdamW's decoupled decay (1 for Adam), stepSize = lr / (1 − β₁ᵗ),
// rootCorrection = 1 / √(1 − β₂ᵗ).

export function adamF32(
  theta: usize, grad: usize, m: usize, v: usize, n: u32,
  stepSize: f64, beta1: f64, beta2: f64, eps: f64, rootCorrection: f64, l2: f64, shrink: f64,
): void {
  adam<f32>(theta, grad, m, v, n, stepSize, beta1, beta2, eps, rootCorrection, l2, shrink);
}

export function adamF64(
  theta: usize, grad: usize, m: usize, v: usize, n: u32,
  stepSize: f64, beta1: f64, beta2: f64, eps: f64, rootCorrection: f64, l2: f64, shrink: f64,
): void {
  adam<f64>(theta, grad, m, v, n, stepSize, beta1, beta2, eps, rootCorrection, l2, shrink);
}

function adam<T extends number>(
  theta: usize, grad: usize, m: usize, v: usize, n: u32,
  stepSize: f64, beta1: f64, beta2: f64, eps: f64, rootCorrection: f64, l2: f64, shrink: f64,
): void {
  const vBeta1 = v128.splat<T>(<T>beta1);
  const vRest1 = v128.splat<T>(<T>(1 - beta1));
  const vBeta2 = v128.splat<T>(<T>beta2);
  const vRest2 = v128.splat<T>(<T>(1 - beta2));
  const vStep = v128.splat<T>(<T>stepSize);
  const vRoot = v128.splat<T>(<T>rootCorrection);
  const vEps = v128.splat<T>(<T>eps);
  const vL2 = v128.splat<T>(<T>l2);
  const vShrink = v128.splat<T>(<T>shrink);
  const bytes: usize = <usize>n * sizeof<T>();
  if (bytes == 0) return;
  let i: usize = 0;
  do {
    const p = v128.load(theta + i);
    const g = v128.add<T>(v128.load(grad + i), v128.mul<T>(vL2, p));
    const mean = v128.add<T>(v128.mul<T>(vBeta1, v128.load(m + i)), v128.mul<T>(vRest1, g));
    const square = v128.add<T>(v128.mul<T>(vBeta2, v128.load(v + i)), v128.mul<T>(vRest2, v128.mul<T>(g, g)));
    v128.store(m + i, mean);
    v128.store(v + i, square);
    const denominator = v128.add<T>(v128.mul<T>(v128.sqrt<T>(square), vRoot), vEps);
    const update = v128.div<T>(v128.mul<T>(vStep, mean), denominator);
    v128.store(theta + i, v128.sub<T>(v128.mul<T>(vShrink, p), update));
    i += 16;
  } while (i < bytes);
}
