import { record, type Tensor } from '../tensor.js';
import { cast, where } from './compare.js';
import { exp, mul, sub, unaryOp } from './elementwise.js';
import { sum } from './reduce.js';

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
  (to, input) => to.op('LogSoftmax', [input], { axis: -1 }),
  (g, _, out) => sub(g, mul(exp(out), sum(g, lastAxis))),
);
