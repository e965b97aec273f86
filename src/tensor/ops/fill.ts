import { type Dim, type DimLike, formatShape } from '../dim.js';
import { type DType, typedArray } from '../dtype.js';
import { ELEMENT_TYPE } from '../onnx.js';
import { Mismatch, type Op, record, shapeOf, type Tensor, type TensorType } from '../tensor.js';

/** A tensor with the same value everywhere; its shape may hold named dimensions. */
export function fill(value: number, shape: readonly DimLike[], dtype: DType = 'f32'): Tensor {
  return record(fillOp, [], { value, shape: shapeOf(shape), dtype })[0];
}

export function zerosLike(like: TensorType): Tensor {
  return fill(0, like.shape, like.dtype);
}

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
