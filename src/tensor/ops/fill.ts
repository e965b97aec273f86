import { type Dim, type DimLike, formatShape } from '../dim.js';
import { ELEMENT_TYPE } from '../onnx.js';
import { type DType, Mismatch, type Op, record, shapeOf, type Tensor, type TensorType, typedArray } from '../tensor.js';
import { cos, log, mul, sqrt } from './elementwise.js';
import { at } from './shape.js';

/** A tensor with the same value everywhere; its shape may hold named dimensions. */
export function fill(value: number, shape: readonly DimLike[], dtype: DType = 'f32'): Tensor {
  return record(fillOp, [], { value, shape: shapeOf(shape), dtype })[0];
}

/** Zeros in the shape and type of another tensor. */
export function zerosLike(like: TensorType): Tensor {
  return fill(0, like.shape, like.dtype);
}

/** Ones in the shape and type of another tensor. */
export function onesLike(like: TensorType): Tensor {
  return fill(1, like.shape, like.dtype);
}

/** 0, 1, 2, …, size − 1 */
export function range(size: DimLike, dtype: 'i64' | 'i32' | 'f32' | 'f64' = 'i64'): Tensor {
  return record(rangeOp, [], { shape: shapeOf([size]), dtype })[0];
}

/** True when the tensor is known while tracing to hold `value` everywhere. */
export function isFilledWith(tensor: Tensor, value: number): boolean {
  return tensor.node.op.name === 'fill' && tensor.node.attributes.value === value;
}

const fillOp: Op<{ value: number; shape: readonly Dim[]; dtype: DType }> = {
  name: 'fill',
  infer: (_, { shape, dtype }) => [{ shape, dtype }],
  lower: (to, _, { attributes, outputs: [{ shape, dtype }] }) => {
    const value = attributes.value as number;
    if (shape.length === 0) return [to.scalar(dtype, value)];
    // A block set to zero at once; Expand writes element by element.
    if (value === 0 && dtype === 'f32') return [to.op('ConstantOfShape', [to.shape(shape)])];
    const one = to.graph.constant(dtype, typedArray(dtype, [value]), [1]);
    return [to.op('Expand', [one, to.shape(shape)])];
  },
};

const rangeOp: Op<{ shape: readonly Dim[]; dtype: DType }> = {
  name: 'range',
  infer: (_, { shape, dtype }) => {
    if (shape.length !== 1) throw new Mismatch(`expected one dimension, got ${formatShape(shape)}`);
    return [{ shape, dtype }];
  },
  lower: (to, _, { outputs: [{ shape, dtype }] }) => {
    const size = to.op('Squeeze', [to.size(shape[0]), to.ints([0])]);
    const counts = to.op('Range', [to.scalar('i64', 0), size, to.scalar('i64', 1)]);
    return [dtype === 'i64' ? counts : to.op('Cast', [counts], { to: ELEMENT_TYPE[dtype] })];
  },
};

/** The run-time size of a dimension as an i64 scalar. */
export function dimension(size: Dim): Tensor {
  return record(dimensionOp, [], { size })[0];
}

const dimensionOp: Op<{ size: Dim }> = {
  name: 'dimension',
  infer: () => [{ shape: [], dtype: 'i64' }],
  lower: (to, _, { attributes }) => [to.op('Squeeze', [to.size(attributes.size as Dim), to.ints([0])])],
};

/**
 * Zeroes each element with the given probability and scales the rest by 1/(1 − probability). The random mask is fed
 * from outside at each run, from a key and the place in the program, so that a saved run repeats it exactly.
 */
export function dropout(x: Tensor, probability: number): Tensor {
  return probability === 0 ? x : mul(x, dropoutMask(x.shape, probability, x.dtype));
}

/** The mask of `dropout`: 0 with the given probability, else 1/(1 − probability). */
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
