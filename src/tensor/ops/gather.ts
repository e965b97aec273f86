import { type Dim, formatShape, sameDim } from '../dim.js';
import type { DType } from '../tensor.js';
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
import { cast, equal } from './elementwise.js';
import { fill, range } from './fill.js';
import { normalAxis } from './reduce.js';
import { expandDims, squeeze } from './shape.js';

/** Rows of a table: result[i…] = table[indices[i…]]. */
export function gather(table: Tensor, indices: Tensor): Tensor {
  return record(gatherOp, [table, indices], {})[0];
}

/** `base` with updates added to its rows: base[indices[i…]] += updates[i…]; equal indices accumulate. */
export function scatterAdd(base: Tensor, indices: Tensor, updates: Tensor): Tensor {
  return record(scatterAddOp, [base, indices, updates], {})[0];
}

/** One element of the last axis per row: result[…] = x[…, indices[…]]. */
export function pick(x: Tensor, indices: Tensor): Tensor {
  return squeeze(record(takeAlongOp, [x, expandDims(indices, -1)], { axis: x.shape.length - 1 })[0], -1);
}

/** Elements along one axis: result[…, j, …] = x[…, indices[…, j, …], …]; all other axes as in x. */
export function takeAlong(x: Tensor, indices: Tensor, axis: number): Tensor {
  return record(takeAlongOp, [x, indices], { axis: normalAxis(axis, x.shape.length) })[0];
}

/** A new last axis of the given size: 1 at the index, 0 elsewhere. */
export function oneHot(indices: Tensor, size: Dim, dtype: DType = 'f32'): Tensor {
  const classes = cast(range(size), indices.dtype);
  return cast(equal(expandDims(indices, -1), classes), dtype);
}

/** Index of the largest element of an axis, the first of several. i64, no gradient. */
export function argmax(x: Tensor, axis = -1): Tensor {
  return squeeze(record(argmaxOp, [x], { axis: normalAxis(axis, x.shape.length) })[0], axis);
}

/** The k largest of the last axis in descending order, and their i64 indices. No gradient. */
export function topK(x: Tensor, k: number): { values: Tensor; indices: Tensor } {
  const [values, indices] = record(topKOp, [x], { k });
  return { values, indices };
}

function requireIndices({ dtype }: TensorType): void {
  if (dtype !== 'i64' && dtype !== 'i32') throw new Mismatch(`indices must be i32 or i64, got ${dtype}`);
}

const gatherOp: Op = {
  name: 'gather',
  infer: ([table, indices]) => {
    requireIndices(indices);
    if (table.shape.length < 1) throw new Mismatch('expected a table with rows, got a scalar');
    return [{ shape: [...indices.shape, ...table.shape.slice(1)], dtype: table.dtype }];
  },
  lower: (to, inputs) => [to.op('Gather', inputs, { axis: 0 })],
  gradient: ({ inputs: [table, indices] }, [g]) => [
    scatterAdd(fill(0, table.shape, table.dtype), indices, g!),
    undefined,
  ],
};

const scatterAddOp: Op = {
  name: 'scatterAdd',
  infer: ([base, indices, updates]) => {
    requireIndices(indices);
    const expected = [...indices.shape, ...base.shape.slice(1)];
    if (!isFloat(base.dtype) || base.dtype !== updates.dtype || !sameShape(expected, updates.shape)) {
      throw new Mismatch(`expected updates ${base.dtype}${formatShape(expected)}, got ${describeType(updates)}`);
    }
    return [base];
  },
  lower: (to, [base, indices, updates], node) => [
    to.scatterRows(base, indices, updates, { indices: node.inputs[1], updates: node.inputs[2] }),
  ],
  gradient: ({ inputs: [, indices] }, [g]) => [g, undefined, gather(g!, indices)],
};

const takeAlongOp: Op<{ axis: number }> = {
  name: 'takeAlong',
  infer: ([x, indices], { axis }) => {
    requireIndices(indices);
    const fits =
      x.shape.length === indices.shape.length &&
      x.shape.every((size, i) => i === axis || sameDim(size, indices.shape[i]));
    if (!fits) {
      throw new Mismatch(
        `${formatShape(x.shape)} and indices ${formatShape(indices.shape)} differ besides axis ${axis}`,
      );
    }
    return [{ shape: indices.shape, dtype: x.dtype }];
  },
  lower: (to, inputs, { attributes }) => [to.op('GatherElements', inputs, { axis: attributes.axis as number })],
  gradient: ({ inputs: [x, indices], attributes }, [g]) => [
    record(putAlongOp, [fill(0, x.shape, x.dtype), indices, g!], attributes as { axis: number })[0],
    undefined,
  ],
};

/** Adds updates along an axis: the transpose of takeAlong. */
const putAlongOp: Op<{ axis: number }> = {
  name: 'putAlong',
  infer: ([base]) => [base],
  lower: (to, inputs, { attributes }) => [
    to.op('ScatterElements', inputs, { axis: attributes.axis as number, reduction: 'add' }),
  ],
  gradient: ({ inputs: [, indices], attributes }, [g]) => [
    g,
    undefined,
    record(takeAlongOp, [g!, indices], attributes as { axis: number })[0],
  ],
};

const argmaxOp: Op<{ axis: number }> = {
  name: 'argmax',
  infer: ([x], { axis }) => [{ shape: x.shape.with(axis, 1), dtype: 'i64' }],
  lower: (to, inputs, { attributes }) => [
    to.wide(to.op('ArgMax', inputs, { axis: attributes.axis as number, keepdims: 1 })),
  ],
};

const topKOp: Op<{ k: number }> = {
  name: 'topK',
  infer: ([x], { k }) => {
    const size = x.shape.at(-1);
    if (size === undefined || (typeof size === 'number' && k > size) || k < 1) {
      throw new Mismatch(`cannot take ${k} of the last axis of ${formatShape(x.shape)}`);
    }
    const shape = x.shape.with(-1, k);
    return [
      { shape, dtype: x.dtype },
      { shape, dtype: 'i64' },
    ];
  },
  lower: (to, [input], { attributes }) => {
    const [values, indices] = to.graph.multi('TopK', [input, to.ints([attributes.k as number])], 2, { axis: -1 });
    return [values, to.wide(indices)];
  },
};
