// Stochastic gradient descent with PyTorch's semantics, in one pass:
//   g ← g + l2·θ
//   b ← keep·b + gain·g                   only with a momentum buffer (address 0: none, the direction is g)
//   θ ← θ − lr·(ofGrad·g + ofBuffer·b)
// keep = momentum and gain = 1 − dampening, but 0 and 1 in the first step, where PyTorch sets b = g;
// (ofGrad, ofBuffer) = (1, momentum) with Nesterov's look-ahead, else (0, 1).

export function sgdF32(
  theta: usize, grad: usize, buffer: usize, n: u32,
  rate: f64, l2: f64, keep: f64, gain: f64, ofGrad: f64, ofBuffer: f64,
): void {
  sgd<f32>(theta, grad, buffer, n, rate, l2, keep, gain, ofGrad, ofBuffer);
}

export function sgdF64(
  theta: usize, grad: usize, buffer: usize, n: u32,
  rate: f64, l2: f64, keep: f64, gain: f64, ofGrad: f64, ofBuffer: f64,
): void {
  sgd<f64>(theta, grad, buffer, n, rate, l2, keep, gain, ofGrad, ofBuffer);
}

function sgd<T extends number>(
  theta: usize, grad: usize, buffer: usize, n: u32,
  rate: f64, l2: f64, keep: f64, gain: f64, ofGrad: f64, ofBuffer: f64,
): void {
  const vRate = v128.splat<T>(<T>rate);
  const vL2 = v128.splat<T>(<T>l2);
  const vKeep = v128.splat<T>(<T>keep);
  const vGain = v128.splat<T>(<T>gain);
  const vOfGrad = v128.splat<T>(<T>ofGrad);
  const vOfBuffer = v128.splat<T>(<T>ofBuffer);
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
    const b = v128.add<T>(v128.mul<T>(vKeep, v128.load(buffer + i)), v128.mul<T>(vGain, g));
    v128.store(buffer + i, b);
    const direction = v128.add<T>(v128.mul<T>(vOfGrad, g), v128.mul<T>(vOfBuffer, b));
    v128.store(theta + i, v128.sub<T>(p, v128.mul<T>(vRate, direction)));
    i += 16;
  } while (i < bytes);
}
