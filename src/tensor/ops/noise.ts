import type { Dim } from '../dim.js';
import type { DType } from '../dtype.js';
import { ELEMENT_TYPE } from '../onnx.js';
import { type Op, record, type Tensor } from '../tensor.js';
import { cos, log, mul, sqrt } from './elementwise.js';
import { at } from './shape.js';

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
