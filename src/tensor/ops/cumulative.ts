import { isFloat } from '../dtype.js';
import { describeType, Mismatch, type Op, record, type Tensor } from '../tensor.js';
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
