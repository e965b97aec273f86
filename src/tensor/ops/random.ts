import type { Dim } from '../dim.js';
import type { DType } from '../dtype.js';
import { ELEMENT_TYPE } from '../onnx.js';
import { type Op, record, type Tensor } from '../tensor.js';
import { cos, log, mul, sqrt } from './elementwise.js';
import { at } from './shape.js';

/**
 * Zeroes each element with the given probability and scales the rest by 1/(1 − probability). The random mask is fed
 * from outside at each run, from a key and the place in the program, so that a saved run repeats it exactly.
 */
export function dropout(x: Tensor, probability: number): Tensor {
  return probability === 0 ? x : mul(x, dropoutMask(x.shape, probability, x.dtype));
}

export function dropoutMask(shape: readonly Dim[], probability: number, dtype: DType = 'f32'): Tensor {
  if (!(probability >= 0 && probability < 1)) {
    throw new RangeError(`dropout: the probability must lie in [0, 1), got ${probability}`);
  }
  return record(dropoutMaskOp, [], { shape, keep: 1 - probability, dtype })[0];
}

const dropoutMaskOp: Op<{ shape: readonly Dim[]; keep: number; dtype: DType }> = {
  name: 'dropoutMask',
  shareable: false,
  infer: (_, { shape, dtype }) => [{ shape, dtype }],
  lower: (to, _, { attributes, outputs: [{ shape, dtype }] }) => {
    const name = to.graph.input(`dropout.${to.masks.length}`, 'f32', shape);
    to.masks.push({ name, shape, keep: attributes.keep as number });
    return [dtype === 'f32' ? name : to.op('Cast', [name], { to: ELEMENT_TYPE[dtype] })];
  },
};

/**
 * Independent standard normal numbers, by Box and Muller's transform √(−2 ln u)·cos 2πv of uniform ones. Like dropout
 * masks they are fed from outside at each run, from a key and the place in the program.
 */
export function normalNoise(shape: readonly Dim[], dtype: DType = 'f32'): Tensor {
  const uniform = record(uniformNoiseOp, [], { shape: [2, ...shape], dtype })[0];
  const radius = sqrt(mul(log(at(uniform, 0, 0)), -2));
  return mul(radius, cos(mul(at(uniform, 0, 1), 2 * Math.PI)));
}

const uniformNoiseOp: Op<{ shape: readonly Dim[]; dtype: DType }> = {
  name: 'uniformNoise',
  shareable: false,
  infer: (_, { shape, dtype }) => [{ shape, dtype }],
  lower: (to, _, { outputs: [{ shape, dtype }] }) => {
    const name = to.graph.input(`noise.${to.masks.length}`, 'f32', shape);
    to.masks.push({ name, shape });
    return [dtype === 'f32' ? name : to.op('Cast', [name], { to: ELEMENT_TYPE[dtype] })];
  },
};
