// Stochastic gradient descent with PyTorch's semantics, in one pass:
//   g ← g + l2·θ
//   b ← keep·b + g                        only with a momentum buffer (address 0: none, the direction is g)
//   θ ← θ − lr·b
// keep = momentum, but 0 in the first step, where PyTorch sets b = g.

export function sgdF32(
  theta: usize, grad: usize, buffer: usize, n: u32,
  rate: f64, l2: f64, keep: f64,
): void {
  sgd<f32>(theta, grad, buffer, n, rate, l2, keep);
}

export function sgdF64(
  theta: usize, grad: usize, buffer: usize, n: u32,
  rate: f64, l2: f64, keep: f64,
): void {
  sgd<f64>(theta, grad, buffer, n, rate, l2, keep);
}

function sgd<T extends number>(
  theta: usize, grad: usize, buffer: usize, n: u32,
  rate: f64, l2: f64, keep: f64,
): void {
  const vRate = v128.splat<T>(<T>rate);
  const vL2 = v128.splat<T>(<T>l2);
  const vKeep = v128.splat<T>(<T>keep);
  const bytes: usize = <usize>n * sizeof<T>();
  if (bytes == 0) return;
  let i: usize = 0;
  if (buffer == 0) {
    do {
      const p = v128.load(theta + i);
      const direction = v128.add<T>(v128.load(grad + i), v128.mul<T>(vL2, p));
      v128.store(theta + i, v128.sub<T>(p, v128.mul<T>(vRate, direction)));
      i += 16;
    } while (i < bytes);
    return;
  }
  do {
    const p = v128.load(theta + i);
    const g = v128.add<T>(v128.load(grad + i), v128.mul<T>(vL2, p));
    const b = v128.add<T>(v128.mul<T>(vKeep, v128.load(buffer + i)), g);
    v128.store(buffer + i, b);
    v128.store(theta + i, v128.sub<T>(p, v128.mul<T>(vRate, b)));
    i += 16;
  } while (i < bytes);
}
