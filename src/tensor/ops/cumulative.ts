import { isFloat } from '../dtype.js';
import { describeType, Mismatch, type Op, record, type Tensor } from '../tensor.js';
import { exp, log, maximum } from './elementwise.js';
import { normalAxis } from './reduce.js';

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

/**
 * Running products of the elements before each, ∏_{l<j} x_l, of non-negative numbers. Computed as
 * exp(Σ log max(x, floor)), so that neither long products nor their gradients overflow or divide by zero; a factor
 * below `floor` counts as `floor` and gets no gradient.
 */
export function cumprodExclusive(
  x: Tensor,
  { axis = -1, floor = 1e-10 }: { axis?: number; floor?: number } = {},
): Tensor {
  return exp(cumsum(log(maximum(x, floor)), { axis, exclusive: true }));
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
