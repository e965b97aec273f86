import type { Dim } from '../dim.js';
import { type Op, record, type Tensor } from '../tensor.js';

/** The run-time size of a dimension as an i64 scalar. */
export function dimension(size: Dim): Tensor {
  return record(dimensionOp, [], { size })[0];
}

const dimensionOp: Op<{ size: Dim }> = {
  name: 'dimension',
  infer: () => [{ shape: [], dtype: 'i64' }],
  lower: (to, _, { attributes }) => [to.op('Squeeze', [to.size(attributes.size as Dim), to.ints([0])])],
};
