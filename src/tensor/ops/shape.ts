import { addDims, type Dim, type DimLike, divideDims, formatShape, multiplyDims, sameDim, sizeOf } from '../dim.js';
import { isFloat, Mismatch, type Op, record, sameShape, shapeOf, type Tensor, type TensorType } from '../tensor.js';
import { broadcastShapes } from './elementwise.js';
import { zerosLike } from './fill.js';
import { normalAxis, sumTo } from './reduce.js';

/** Another shape for the same elements. One dimension may be −1, which is inferred. */
export function reshape(x: Tensor, to: readonly DimLike[]): Tensor {
  const shape = inferred(x, shapeOf(to));
  if (sameShape(shape, x.shape)) return x;
  const source = x.node.op.name === 'reshape' ? x.node.inputs[0] : x;
  return sameShape(shape, source.shape) ? source : record(reshapeOp, [source], { shape })[0];
}

/** Axes in another order: axis i of the result is axis `order[i]` of x. */
export function transpose(x: Tensor, order: readonly number[]): Tensor {
  return order.every((axis, i) => axis === i) && order.length === x.shape.length
    ? x
    : record(transposeOp, [x], { order })[0];
}

/** Repeats axes of size 1 to fit a shape. */
export function broadcastTo(x: Tensor, shape: readonly DimLike[]): Tensor {
  const target = shapeOf(shape);
  return sameShape(x.shape, target) ? x : record(broadcastToOp, [x], { shape: target })[0];
}

/** Inserts an axis of size 1 before `axis` of the result. */
export function expandDims(x: Tensor, axis: number): Tensor {
  const at = normalAxis(axis, x.shape.length + 1);
  return reshape(x, [...x.shape.slice(0, at), 1, ...x.shape.slice(at)]);
}

/** Drops an axis of size 1. */
export function squeeze(x: Tensor, axis: number): Tensor {
  const at = normalAxis(axis, x.shape.length);
  return reshape(x, [...x.shape.slice(0, at), ...x.shape.slice(at + 1)]);
}

/** Elements start … start+length−1 of an axis. Negative `start` counts from the end; without `length`: to the end. */
export function slice(x: Tensor, axis: number, start: number, length?: Dim): Tensor {
  const at = normalAxis(axis, x.shape.length);
  const size = x.shape[at];
  const from = start < 0 ? addDims(size, start) : start;
  const taken = length ?? addDims(size, multiplyDims(from, -1));
  if (start === 0 && sameDim(taken, size)) return x;
  return record(sliceOp, [x], { axis: at, start: from, length: taken })[0];
}

/** One element of an axis, without that axis. */
export function at(x: Tensor, axis: number, index: number): Tensor {
  return squeeze(slice(x, axis, index, 1), axis);
}

/**
 * Consecutive parts of an axis, of these lengths. For all parts of a tensor better than slices: the gradient is one
 * joining of theirs, not a sum of tensors that are zero nearly everywhere.
 */
export function split(x: Tensor, axis: number, lengths: readonly number[]): Tensor[] {
  return record(splitOp, [x], { axis: normalAxis(axis, x.shape.length), lengths });
}

/** The elements of an axis, without that axis: the inverse of `stack`. */
export function unstack(x: Tensor, axis: number): Tensor[] {
  const size = x.shape[normalAxis(axis, x.shape.length)];
  if (typeof size !== 'number')
    throw new RangeError(`unstack: axis ${axis} of ${formatShape(x.shape)} has no fixed size`);
  return split(x, axis, new Array<number>(size).fill(1)).map((part) => squeeze(part, axis));
}

/** Tensors one after the other along an axis. */
export function concat(parts: readonly Tensor[], axis: number): Tensor {
  if (parts.length === 1) return parts[0];
  return record(concatOp, parts, { axis: normalAxis(axis, parts[0].shape.length) })[0];
}

/** Joins tensors of one shape along a new axis. */
export function stack(parts: readonly Tensor[], axis: number): Tensor {
  return concat(
    parts.map((part) => expandDims(part, axis)),
    axis,
  );
}

function inferred(x: Tensor, shape: Dim[]): Dim[] {
  const unknown = shape.indexOf(-1);
  if (unknown < 0) return shape;
  const rest = sizeOf(shape.filter((_, axis) => axis !== unknown));
  const size = divideDims(sizeOf(x.shape), rest);
  if (size === undefined) {
    throw new RangeError(`reshape: ${formatShape(x.shape)} cannot be divided into ${formatShape(shape)}`);
  }
  return shape.with(unknown, size);
}

const reshapeOp: Op<{ shape: readonly Dim[] }> = {
  name: 'reshape',
  infer: ([x], { shape }) => {
    if (!sameDim(sizeOf(x.shape), sizeOf(shape))) {
      throw new Mismatch(`${formatShape(x.shape)} and ${formatShape(shape)} differ in size`);
    }
    return [{ shape, dtype: x.dtype }];
  },
  lower: (to, [input], { inputs: [x], outputs: [out] }) => [to.reshape(input, x.shape, out.shape)],
  gradient: ({ inputs: [x] }, [g]) => [reshape(g!, x.shape)],
};

const transposeOp: Op<{ order: readonly number[] }> = {
  name: 'transpose',
  infer: ([x], { order }) => {
    const rank = x.shape.length;
    if ([...order].sort((a, b) => a - b).join() !== x.shape.map((_, axis) => axis).join()) {
      throw new Mismatch(`[${order.join(', ')}] is not an order of the ${rank} axes of ${formatShape(x.shape)}`);
    }
    return [{ shape: order.map((axis) => x.shape[axis]), dtype: x.dtype }];
  },
  lower: (to, inputs, { attributes }) => [to.op('Transpose', inputs, { perm: attributes.order as readonly number[] })],
  gradient: ({ attributes }, [g]) => {
    const order = attributes.order as readonly number[];
    return [
      transpose(
        g!,
        order.map((_, axis) => order.indexOf(axis)),
      ),
    ];
  },
};

const broadcastToOp: Op<{ shape: readonly Dim[] }> = {
  name: 'broadcastTo',
  infer: ([x], { shape }) => {
    if (!sameShape(broadcastShapes(x.shape, shape), shape)) {
      throw new Mismatch(`${formatShape(x.shape)} does not broadcast to ${formatShape(shape)}`);
    }
    return [{ shape, dtype: x.dtype }];
  },
  lower: (to, [input], { outputs: [out] }) => [to.op('Expand', [input, to.shape(out.shape)])],
  gradient: ({ inputs: [x] }, [g]) => [sumTo(g!, x.shape)],
};

const sliceOp: Op<{ axis: number; start: Dim; length: Dim }> = {
  name: 'slice',
  infer: ([x], { axis, start, length }) => {
    const size = x.shape[axis];
    const negative = [start, length].some((value) => typeof value === 'number' && value < 0);
    const end = addDims(start, length);
    if (negative || (typeof size === 'number' && typeof end === 'number' && end > size)) {
      throw new Mismatch(`elements ${start} to ${end} of axis ${axis} are outside of ${formatShape(x.shape)}`);
    }
    return [{ shape: x.shape.with(axis, length), dtype: x.dtype }];
  },
  lower: (to, [input], { attributes, inputs: [{ dtype }] }) => {
    const { axis, start, length } = attributes as { axis: number; start: Dim; length: Dim };
    // Devices slice only floating-point numbers.
    if (to.device !== 'cpu' && !isFloat(dtype)) {
      const places = to.op('Add', [to.range(length, 'i32'), to.count(start, 'i32')]);
      return [to.op('Gather', [input, places], { axis })];
    }
    return [to.op('Slice', [input, to.size(start), to.size(addDims(start, length)), to.ints([axis])])];
  },
  gradient: ({ inputs: [x], attributes }, [g]) => {
    const { axis, start, length } = attributes as { axis: number; start: Dim; length: Dim };
    const after = addDims(x.shape[axis], multiplyDims(addDims(start, length), -1));
    return [record(padOp, [g!], { axis, before: start, after })[0]];
  },
};

/** Zeros before and after along one axis: the transpose of slice. */
const padOp: Op<{ axis: number; before: Dim; after: Dim }> = {
  name: 'pad',
  infer: ([x], { axis, before, after }) => [
    { shape: x.shape.with(axis, addDims(addDims(before, x.shape[axis]), after)), dtype: x.dtype },
  ],
  lower: (to, [input], { inputs: [x], attributes }) => {
    const { axis, before, after } = attributes as { axis: number; before: Dim; after: Dim };
    const pads = to.op('Concat', [to.size(before), to.size(after)], { axis: 0 });
    return [to.op('Pad', [input, pads, to.scalar(x.dtype, 0), to.ints([axis])])];
  },
  gradient: ({ inputs: [x], attributes }, [g]) => {
    const { axis, before } = attributes as { axis: number; before: Dim };
    return [record(sliceOp, [g!], { axis, start: before, length: x.shape[axis] })[0]];
  },
};

const splitOp: Op<{ axis: number; lengths: readonly number[] }> = {
  name: 'split',
  infer: ([x], { axis, lengths }) => {
    const total = lengths.reduce((a, b) => a + b, 0);
    if (!sameDim(total, x.shape[axis])) {
      throw new Mismatch(`parts of ${lengths.join(' + ')} are not axis ${axis} of ${formatShape(x.shape)}`);
    }
    return lengths.map((length) => ({ shape: x.shape.with(axis, length), dtype: x.dtype }));
  },
  lower: (to, [input], { attributes }) => {
    const { axis, lengths } = attributes as { axis: number; lengths: readonly number[] };
    return to.split(input, axis, lengths);
  },
  gradient: ({ outputs, attributes }, given) => [
    concat(
      outputs.map((part, i) => given[i] ?? zerosLike(part)),
      attributes.axis as number,
    ),
  ],
};

const concatOp: Op<{ axis: number }> = {
  name: 'concat',
  infer: (parts, { axis }) => {
    for (const part of parts) requireEqualBesides(parts[0], part, axis);
    const total = parts.map(({ shape }) => shape[axis]).reduce(addDims);
    return [{ shape: parts[0].shape.with(axis, total), dtype: parts[0].dtype }];
  },
  lower: (to, inputs, { attributes }) => [to.op('Concat', inputs, { axis: attributes.axis as number })],
  gradient: ({ inputs, attributes }, [g]) => {
    const axis = attributes.axis as number;
    let start: Dim = 0;
    return inputs.map(({ shape }) => {
      const part = record(sliceOp, [g!], { axis, start, length: shape[axis] })[0];
      start = addDims(start, shape[axis]);
      return part;
    });
  },
};

function requireEqualBesides(first: TensorType, other: TensorType, axis: number): void {
  const fits =
    first.dtype === other.dtype &&
    first.shape.length === other.shape.length &&
    first.shape.every((size, i) => i === axis || sameDim(size, other.shape[i]));
  if (!fits) {
    throw new Mismatch(
      `${first.dtype}${formatShape(first.shape)} and ${other.dtype}${formatShape(other.shape)} differ besides axis ${axis}`,
    );
  }
}
