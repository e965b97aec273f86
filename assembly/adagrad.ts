// Adagrad (Duchi, Hazan & Singer, 2011) with PyTorch's semantics, in one pass:
//   g ← g + l2·θ
//   s ← s + g²
//   θ ← θ − rate·g / (√s + ε)

export function adagradF32(theta: usize, grad: usize, s: usize, n: u32, rate: f64, eps: f64, l2: f64): void {
  adagrad<f32>(theta, grad, s, n, rate, eps, l2);
}

export function adagradF64(theta: usize, grad: usize, s: usize, n: u32, rate: f64, eps: f64, l2: f64): void {
  adagrad<f64>(theta, grad, s, n, rate, eps, l2);
}

function adagrad<T extends number>(
  theta: usize, grad: usize, s: usize, n: u32, rate: f64, eps: f64, l2: f64,
): void {
  const vRate = v128.splat<T>(<T>rate);
  const vEps = v128.splat<T>(<T>eps);
  const vL2 = v128.splat<T>(<T>l2);
  const bytes: usize = <usize>n * sizeof<T>();
  if (bytes == 0) return;
  let i: usize = 0;
  do {
    const p = v128.load(theta + i);
    const g = v128.add<T>(v128.load(grad + i), v128.mul<T>(vL2, p));
    const sum = v128.add<T>(v128.load(s + i), v128.mul<T>(g, g));
    v128.store(s + i, sum);
    const update = v128.div<T>(v128.mul<T>(vRate, g), v128.add<T>(v128.sqrt<T>(sum), vEps));
    v128.store(theta + i, v128.sub<T>(p, update));
    i += 16;
  } while (i < bytes);
}
