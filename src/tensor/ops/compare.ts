import type { DType } from '../dtype.js';
import { isFloat } from '../dtype.js';
import { ELEMENT_TYPE } from '../onnx.js';
import { describeType, Mismatch, type Op, record, type Tensor } from '../tensor.js';
import { binaryType, broadcastShapes, type Operand } from './elementwise.js';
import { fill } from './fill.js';
import { sumTo } from './reduce.js';

export const equal = (a: Tensor, b: Operand): Tensor => record(equalOp, pair(a, b), {})[0];
export const less = (a: Tensor, b: Operand): Tensor => record(lessOp, pair(a, b), {})[0];
export const lessEqual = (a: Tensor, b: Operand): Tensor => record(lessEqualOp, pair(a, b), {})[0];
export const greater = (a: Tensor, b: Operand): Tensor => record(greaterOp, pair(a, b), {})[0];
export const greaterEqual = (a: Tensor, b: Operand): Tensor => record(greaterEqualOp, pair(a, b), {})[0];
export const and = (a: Tensor, b: Tensor): Tensor => record(andOp, [a, b], {})[0];
export const or = (a: Tensor, b: Tensor): Tensor => record(orOp, [a, b], {})[0];
export const not = (a: Tensor): Tensor => record(notOp, [a], {})[0];

/** Another element type. Gradients pass between floating-point types and stop elsewhere. */
export function cast(x: Tensor, dtype: DType): Tensor {
  return x.dtype === dtype ? x : record(castOp, [x], { dtype })[0];
}

/** `yes` where the condition holds, else `no`. */
export function where(condition: Tensor, yes: Operand, no: Operand): Tensor {
  const like = typeof yes === 'number' ? no : yes;
  if (typeof like === 'number') throw new TypeError('one of the two values must be a tensor');
  const lift = (value: Operand): Tensor => (typeof value === 'number' ? fill(value, [], like.dtype) : value);
  return record(whereOp, [condition, lift(yes), lift(no)], {})[0];
}

function pair(a: Tensor, b: Operand): [Tensor, Tensor] {
  return [a, typeof b === 'number' ? fill(b, [], a.dtype) : b];
}

function compareOp(name: string, type: string): Op {
  return {
    name,
    infer: ([a, b]) => [binaryType(a, b, 'bool')],
    lower: (to, inputs) => [to.op(type, inputs)],
  };
}

function logicOp(name: string, type: string): Op {
  return {
    name,
    infer: (inputs) => {
      const wrong = inputs.find(({ dtype }) => dtype !== 'bool');
      if (wrong !== undefined) throw new Mismatch(`expected bool, got ${describeType(wrong)}`);
      return [{ shape: inputs.map(({ shape }) => shape).reduce(broadcastShapes), dtype: 'bool' }];
    },
    lower: (to, inputs) => [to.op(type, inputs)],
  };
}

const equalOp = compareOp('equal', 'Equal');
const lessOp = compareOp('less', 'Less');
const lessEqualOp = compareOp('lessEqual', 'LessOrEqual');
const greaterOp = compareOp('greater', 'Greater');
const greaterEqualOp = compareOp('greaterEqual', 'GreaterOrEqual');
const andOp = logicOp('and', 'And');
const orOp = logicOp('or', 'Or');
const notOp = logicOp('not', 'Not');

const castOp: Op<{ dtype: DType }> = {
  name: 'cast',
  infer: ([{ shape }], { dtype }) => [{ shape, dtype }],
  lower: (to, inputs, { outputs: [{ dtype }] }) => [to.op('Cast', inputs, { to: ELEMENT_TYPE[dtype] })],
  gradient: ({ inputs: [x], outputs: [out] }, [g]) => [
    isFloat(x.dtype) && isFloat(out.dtype) ? cast(g!, x.dtype) : undefined,
  ],
};

const whereOp: Op = {
  name: 'where',
  infer: ([condition, yes, no]) => {
    if (condition.dtype !== 'bool') throw new Mismatch(`the condition must be bool, got ${describeType(condition)}`);
    const { shape, dtype } = binaryType(yes, no);
    return [{ shape: broadcastShapes(condition.shape, shape), dtype }];
  },
  lower: (to, inputs) => [to.op('Where', inputs)],
  gradient: ({ inputs: [condition, yes, no] }, [g]) => [
    undefined,
    sumTo(where(condition, g!, 0), yes.shape),
    sumTo(where(condition, 0, g!), no.shape),
  ],
};
