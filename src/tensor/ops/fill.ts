import { type Dim, type DimLike, formatShape } from '../dim.js';
import { type DType, Mismatch, type Op, record, shapeOf, type Tensor, type TensorType } from '../tensor.js';
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
    if (value === 0 && dtype === 'f32' && to.device === 'cpu') return [to.op('ConstantOfShape', [to.shape(shape)])];
    return [to.op('Expand', [to.constant(dtype, [value], [1]), to.shape(shape)])];
  },
};

const rangeOp: Op<{ shape: readonly Dim[]; dtype: DType }> = {
  name: 'range',
  infer: (_, { shape, dtype }) => {
    if (shape.length !== 1) throw new Mismatch(`expected one dimension, got ${formatShape(shape)}`);
    return [{ shape, dtype }];
  },
  lower: (to, _, { outputs: [{ shape, dtype }] }) => [to.range(shape[0], dtype)],
};

/** The run-time size of a dimension as an i64 scalar. */
export function dimension(size: Dim): Tensor {
  return record(dimensionOp, [], { size })[0];
}

const dimensionOp: Op<{ size: Dim }> = {
  name: 'dimension',
  infer: () => [{ shape: [], dtype: 'i64' }],
  lower: (to, _, { attributes }) => [to.count(attributes.size as Dim, 'i64')],
};

/**
 * Zeroes each element with the given probability and scales the rest by 1/(1 − probability). The random mask is fed
 * from outside at each run, from a key and the position in the program, so a saved run repeats it exactly.
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
    const name = to.mask(`dropout.${to.masks.length}`, shape, attributes.keep as number);
    return [dtype === 'f32' ? name : to.cast(name, dtype)];
  },
};

/**
 * Independent standard normal numbers, by Box and Muller's transform √(−2 ln u)·cos 2πv of uniform ones. Like dropout
 * masks they are fed from outside at each run, from a key and the position in the program.
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
    const name = to.mask(`noise.${to.masks.length}`, shape);
    return [dtype === 'f32' ? name : to.cast(name, dtype)];
  },
};
