import type { Lowering } from '../lowering.js';
import { record, type Tensor } from '../tensor.js';
import { add, cast, exp, greater, mul, sub, unaryOp, where } from './elementwise.js';
import { sum } from './reduce.js';

/** Hyperbolic tangent. */
export const tanh = (x: Tensor): Tensor => record(tanhOp, [x], {})[0];
/** 1 / (1 + e^(−x)) */
export const sigmoid = (x: Tensor): Tensor => record(sigmoidOp, [x], {})[0];
/** max(x, 0) */
export const relu = (x: Tensor): Tensor => record(reluOp, [x], {})[0];

/** x where positive, else slope·x. */
export function leakyRelu(x: Tensor, slope = 0.01): Tensor {
  return record(leakyReluOp, [x], { slope })[0];
}

/** x·Φ(x) (Hendrycks & Gimpel 2016); `tanh` selects the approximation √(2/π)(x + 0.044715x³). */
export function gelu(x: Tensor, approximate: 'none' | 'tanh' = 'none'): Tensor {
  if (approximate === 'tanh') {
    const inner = mul(add(x, mul(mul(mul(x, x), x), 0.044715)), Math.sqrt(2 / Math.PI));
    return mul(mul(x, 0.5), add(tanh(inner), 1));
  }
  return mul(mul(x, 0.5), add(erf(mul(x, Math.SQRT1_2)), 1));
}

/** (2/√π) ∫₀ˣ e^(−t²) dt */
export const erf = (x: Tensor): Tensor => record(erfOp, [x], {})[0];

const tanhOp = unaryOp('tanh', 'Tanh', (g, _, out) => mul(g, sub(1, mul(out, out))));
const sigmoidOp = unaryOp('sigmoid', 'Sigmoid', (g, _, out) => mul(g, mul(out, sub(1, out))));

const reluOp = unaryOp('relu', 'Relu', (g, _, out) => mul(g, record(stepOp, [out], {})[0]));

/** 1 where positive, else 0. A steep HardSigmoid is one vectorised pass; compare and cast are two slow ones. */
const stepOp = unaryOp('step', (to, input, { inputs: [{ dtype }] }) =>
  dtype === 'f32'
    ? to.op('HardSigmoid', [input], { alpha: { float: 3e38 }, beta: { float: 0 } })
    : to.op('Cast', [to.op('Greater', [input, to.scalar(dtype, 0)])], { to: 11 }),
);

const leakyReluOp = unaryOp(
  'leakyRelu',
  (to, input, { attributes, inputs: [{ dtype }] }) => {
    const slope = attributes.slope as number;
    return dtype === 'f32'
      ? to.op('LeakyRelu', [input], { alpha: { float: slope } })
      : to.op('Max', [input, to.op('Mul', [input, to.scalar(dtype, slope)])]);
  },
  (g, x, _, { attributes }) => where(greater(x, 0), g, mul(g, attributes.slope as number)),
);

const erfOp = unaryOp(
  'erf',
  (to, input, { inputs: [{ dtype }] }) => (dtype === 'f32' ? to.op('Erf', [input]) : erfInDouble(to, input)),
  (g, x) => mul(g, mul(exp(mul(mul(x, x), -1)), 2 / Math.sqrt(Math.PI))),
);

/** The runtime has no Erf in f64: Maclaurin series for |x| < 3, Laplace's continued fraction of erfc beyond. */
function erfInDouble(to: Lowering, x: string): string {
  const value = (v: number): string => to.scalar('f64', v);
  const square = to.op('Mul', [x, x]);
  // erf x = 2/√π e^(−x²) Σ 2ⁿ x^(2n+1) / (2n+1)!!
  let series = value(1);
  for (let n = 60; n >= 1; n--) {
    const factor = to.op('Mul', [square, value(2 / (2 * n + 1))]);
    series = to.op('Add', [value(1), to.op('Mul', [factor, series])]);
  }
  const gauss = to.op('Mul', [to.op('Exp', [to.op('Neg', [square])]), value(2 / Math.sqrt(Math.PI))]);
  const near = to.op('Mul', [to.op('Mul', [gauss, x]), series]);
  // erfc x = e^(−x²)/√π · 1/(x + (1/2)/(x + (2/2)/(x + (3/2)/(x + …)))) for x > 0
  const size = to.op('Max', [to.op('Abs', [x]), value(1)]);
  let fraction = size;
  for (let n = 60; n >= 1; n--) fraction = to.op('Add', [size, to.op('Div', [value(n / 2), fraction])]);
  const tail = to.op('Div', [to.op('Mul', [gauss, value(0.5)]), fraction]);
  const far = to.op('Mul', [to.op('Sign', [x]), to.op('Sub', [value(1), tail])]);
  return to.op('Where', [to.op('Less', [to.op('Abs', [x]), value(3)]), near, far]);
}

/** Finite stand-in for −∞: its exponential is 0 in f32 and f64, and no difference of two of them is NaN. */
export const LOWEST = -1e30;

/**
 * Softmax over the last axis. With a mask, entries where it is false get probability 0; a row without any true entry
 * is all zeros.
 */
export function softmax(x: Tensor, mask?: Tensor): Tensor {
  if (mask === undefined) return record(softmaxOp, [x], {})[0];
  return mul(softmax(where(mask, x, LOWEST)), cast(mask, x.dtype));
}

/** Logarithm of softmax over the last axis; entries where the mask is false get `LOWEST`. */
export function logSoftmax(x: Tensor, mask?: Tensor): Tensor {
  if (mask === undefined) return record(logSoftmaxOp, [x], {})[0];
  return where(mask, logSoftmax(where(mask, x, LOWEST)), LOWEST);
}

const lastAxis = { axes: [-1], keepDims: true };

const softmaxOp = unaryOp(
  'softmax',
  (to, input) => to.op('Softmax', [input], { axis: -1 }),
  (g, _, out) => mul(out, sub(g, sum(mul(g, out), lastAxis))),
);

const logSoftmaxOp = unaryOp(
  'logSoftmax',
  (to, input) => {
    if (to.device === 'cpu') return to.op('LogSoftmax', [input], { axis: -1 });
    const last = to.ints([-1]);
    const shifted = to.op('Sub', [input, to.op('ReduceMax', [input, last], { keepdims: 1 })]);
    const sums = to.op('ReduceSum', [to.op('Exp', [shifted]), last], { keepdims: 1 });
    return to.op('Sub', [shifted, to.op('Log', [sums])]);
  },
  (g, _, out) => sub(g, mul(exp(out), sum(g, lastAxis))),
);
