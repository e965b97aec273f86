import { type Dim, multiplyDims, sizeOf } from '../dim.js';
import {
  describeType,
  isFloat,
  Mismatch,
  type Op,
  record,
  sameShape,
  type Tensor,
  type TensorType,
} from '../tensor.js';
import { cast, div, equal, mul } from './elementwise.js';
import { dimension } from './fill.js';
import { broadcastTo, reshape } from './shape.js';

/** Options of reductions. */
export interface ReduceOptions {
  /** Axes to reduce, negative ones counted from the end. Default: all. */
  readonly axes?: readonly number[];
  /** Keep the reduced axes with size 1. Default false. */
  readonly keepDims?: boolean;
}

/** Sum over axes. */
export function sum(x: Tensor, options: ReduceOptions = {}): Tensor {
  return reduce(sumOp, x, options);
}

/** Mean over axes. */
export function mean(x: Tensor, options: ReduceOptions = {}): Tensor {
  const count = normalAxes(x, options.axes)
    .map((axis) => x.shape[axis])
    .reduce(multiplyDims, 1);
  const total = sum(x, options);
  return typeof count === 'number' ? mul(total, 1 / count) : div(total, cast(dimension(count), x.dtype));
}

/** The largest value; where several are equal they share the gradient. */
export function max(x: Tensor, options: ReduceOptions = {}): Tensor {
  return reduce(maxOp, x, options);
}

/** Sums a gradient back to the shape that was broadcast. */
export function sumTo(x: Tensor, shape: readonly Dim[]): Tensor {
  if (sameShape(x.shape, shape)) return x;
  const lead = x.shape.length - shape.length;
  const axes = x.shape.flatMap((size, axis) => (axis < lead || (shape[axis - lead] === 1 && size !== 1) ? [axis] : []));
  return reshape(axes.length === 0 ? x : sum(x, { axes, keepDims: true }), shape);
}

function reduce(op: Op, x: Tensor, { axes, keepDims = false }: ReduceOptions): Tensor {
  const over = normalAxes(x, axes);
  if (over.length === 0) return x;
  const kept = record(op, [x], { axes: over })[0];
  return keepDims
    ? kept
    : reshape(
        kept,
        x.shape.filter((_, axis) => !over.includes(axis)),
      );
}

/** Axes counted from the front, ascending; all if none are given. */
function normalAxes({ shape }: TensorType, axes?: readonly number[]): number[] {
  const rank = shape.length;
  if (axes === undefined) return shape.map((_, axis) => axis);
  return axes.map((axis) => normalAxis(axis, rank)).sort((a, b) => a - b);
}

/** An axis counted from the front; −1 is the last. */
export function normalAxis(axis: number, rank: number): number {
  const normal = axis < 0 ? axis + rank : axis;
  if (!Number.isInteger(normal) || normal < 0 || normal >= rank) {
    throw new RangeError(`axis ${axis} is out of range for a tensor with ${rank} axes`);
  }
  return normal;
}

function reducedType(x: TensorType, axes: readonly number[]): TensorType {
  if (!isFloat(x.dtype) && x.dtype !== 'i64' && x.dtype !== 'i32') {
    throw new Mismatch(`expected numbers, got ${describeType(x)}`);
  }
  return { shape: x.shape.map((size, axis) => (axes.includes(axis) ? 1 : size)), dtype: x.dtype };
}

const sumOp: Op<{ axes: readonly number[] }> = {
  name: 'sum',
  infer: ([x], { axes }) => [reducedType(x, axes)],
  lower: (to, [input], { attributes, inputs: [x], outputs: [out] }) => {
    const axes = attributes.axes as readonly number[];
    const rank = x.shape.length;
    if (rank >= 2 && axes.length === rank - 1 && !axes.includes(rank - 1)) {
      const rows = sizeOf(x.shape.slice(0, -1));
      const columns = x.shape[rank - 1];
      const matrix = to.reshape(input, x.shape, [rows, columns]);
      return [to.reshape(to.columnSums(matrix, rows, columns, x.dtype), [columns], out.shape)];
    }
    return [to.op('ReduceSum', [input, to.ints(axes)], { keepdims: 1 })];
  },
  gradient: ({ inputs: [x] }, [g]) => [broadcastTo(g!, x.shape)],
};

const maxOp: Op<{ axes: readonly number[] }> = {
  name: 'max',
  infer: ([x], { axes }) => [reducedType(x, axes)],
  lower: (to, [input], { attributes }) => [
    to.op('ReduceMax', [input, to.ints(attributes.axes as readonly number[])], { keepdims: 1 }),
  ],
  gradient: ({ inputs: [x], outputs: [out], attributes }, [g]) => {
    const ties = cast(equal(x, broadcastTo(out, x.shape)), x.dtype);
    const count = sum(ties, { axes: attributes.axes as readonly number[], keepDims: true });
    return [mul(ties, div(g!, count))];
  },
};

/** Options of cumulative sums and products. */
export interface CumulativeOptions {
  /** Axis to run along. Default: the last. */
  readonly axis?: number;
  /** Leave out the element itself: the first result is the neutral element. Default false. */
  readonly exclusive?: boolean;
  /** Run from the end. Default false. */
  readonly reverse?: boolean;
}

/** Running sums. */
export function cumsum(x: Tensor, { axis = -1, exclusive = false, reverse = false }: CumulativeOptions = {}): Tensor {
  return record(cumsumOp, [x], { axis: normalAxis(axis, x.shape.length), exclusive, reverse })[0];
}

const cumsumOp: Op<{ axis: number; exclusive: boolean; reverse: boolean }> = {
  name: 'cumsum',
  infer: ([x]) => {
    if (!isFloat(x.dtype) && x.dtype !== 'i64' && x.dtype !== 'i32') {
      throw new Mismatch(`expected numbers, got ${describeType(x)}`);
    }
    return [x];
  },
  lower: (to, [input], { attributes }) => {
    const { axis, exclusive, reverse } = attributes as { axis: number; exclusive: boolean; reverse: boolean };
    const flags = { exclusive: Number(exclusive), reverse: Number(reverse) };
    return [to.op('CumSum', [input, to.scalar('i64', axis)], flags)];
  },
  gradient: ({ attributes }, [g]) => {
    const { axis, exclusive, reverse } = attributes as { axis: number; exclusive: boolean; reverse: boolean };
    return [cumsum(g!, { axis, exclusive, reverse: !reverse })];
  },
};
