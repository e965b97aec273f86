import { type Dim, formatShape, sameDim } from '../dim.js';
import type { Lowering } from '../lowering.js';
import {
  type DType,
  describeType,
  isFloat,
  Mismatch,
  type Node,
  type Op,
  record,
  sameShape,
  type Tensor,
  type TensorType,
} from '../tensor.js';
import { fill, isFilledWith } from './fill.js';
import { sumTo } from './reduce.js';

/** A tensor, or a number that takes the other operand's element type. */
export type Operand = Tensor | number;

/** a + b, with broadcasting. */
export function add(a: Operand, b: Operand): Tensor {
  const [x, y] = lift(a, b);
  if (isFilledWith(x, 0) && keepsShape(y, x)) return y;
  if (isFilledWith(y, 0) && keepsShape(x, y)) return x;
  return binary(addOp, x, y);
}

/** a − b, with broadcasting. */
export function sub(a: Operand, b: Operand): Tensor {
  const [x, y] = lift(a, b);
  if (isFilledWith(y, 0) && keepsShape(x, y)) return x;
  return binary(subOp, x, y);
}

/** a · b, with broadcasting. */
export function mul(a: Operand, b: Operand): Tensor {
  const [x, y] = lift(a, b);
  if (isFilledWith(x, 1) && keepsShape(y, x)) return y;
  if (isFilledWith(y, 1) && keepsShape(x, y)) return x;
  return binary(mulOp, x, y);
}

/** a / b, with broadcasting. */
export function div(a: Operand, b: Operand): Tensor {
  const [x, y] = lift(a, b);
  if (isFilledWith(y, 1) && keepsShape(x, y)) return x;
  return binary(divOp, x, y);
}

/** aᵇ; with a tensor as exponent the base must be positive for the exponent's gradient. */
export function pow(a: Operand, b: Operand): Tensor {
  const [x, y] = lift(a, b);
  return binary(powOp, x, y);
}

/** The larger of two; where they are equal the gradient goes to the first. */
export function maximum(a: Operand, b: Operand): Tensor {
  const [x, y] = lift(a, b);
  return binary(maximumOp, x, y);
}

/** The smaller of a and b, with broadcasting. */
export function minimum(a: Operand, b: Operand): Tensor {
  const [x, y] = lift(a, b);
  return binary(minimumOp, x, y);
}

/** −x */
export const neg = (x: Tensor): Tensor => record(negOp, [x], {})[0];
/** e^x */
export const exp = (x: Tensor): Tensor => record(expOp, [x], {})[0];
/** Natural logarithm. */
export const log = (x: Tensor): Tensor => record(logOp, [x], {})[0];
/** √x */
export const sqrt = (x: Tensor): Tensor => record(sqrtOp, [x], {})[0];
/** |x| */
export const abs = (x: Tensor): Tensor => record(absOp, [x], {})[0];
/** x² */
export const square = (x: Tensor): Tensor => mul(x, x);
/** sin x */
export const sin = (x: Tensor): Tensor => record(sinOp, [x], {})[0];
/** cos x */
export const cos = (x: Tensor): Tensor => record(cosOp, [x], {})[0];

/** min(max(x, low), high), with gradient 1 inside and 0 outside. */
export function clip(x: Tensor, low: number, high: number): Tensor {
  return record(clipOp, [x], { low, high })[0];
}

/** Stops gradients: the value passes, the derivative is zero. */
export function stopGradient(x: Tensor): Tensor {
  return record(stopGradientOp, [x], {})[0];
}

function lift(a: Operand, b: Operand): [Tensor, Tensor] {
  if (typeof a === 'number' && typeof b === 'number') throw new TypeError('one operand must be a tensor');
  const dtype = (typeof a === 'number' ? (b as Tensor) : a).dtype;
  return [typeof a === 'number' ? fill(a, [], dtype) : a, typeof b === 'number' ? fill(b, [], dtype) : b];
}

function keepsShape(x: Tensor, other: Tensor): boolean {
  return x.dtype === other.dtype && sameShape(broadcastShapes(x.shape, other.shape), x.shape);
}

function binary(op: Op, a: Tensor, b: Tensor): Tensor {
  const x = unexpanded(a, b);
  const y = unexpanded(b, x);
  return record(op, [x, y], {})[0];
}

/** The source of a broadcast, if the other operand determines the result's shape: nothing need be expanded. */
function unexpanded(x: Tensor, other: Tensor): Tensor {
  if (x.node.op.name !== 'broadcastTo') return x;
  const [source] = x.node.inputs;
  return sameShape(other.shape, x.shape) ? source : x;
}

/** NumPy's rule: aligned at the end, equal or 1. */
export function broadcastShapes(a: readonly Dim[], b: readonly Dim[]): Dim[] {
  const rank = Math.max(a.length, b.length);
  return Array.from({ length: rank }, (_, i) => {
    const x = a[i - rank + a.length] ?? 1;
    const y = b[i - rank + b.length] ?? 1;
    if (x === 1) return y;
    if (y === 1 || sameDim(x, y)) return x;
    throw new Mismatch(`the shapes ${formatShape(a)} and ${formatShape(b)} do not broadcast`);
  });
}

function binaryType(a: TensorType, b: TensorType, dtype: DType = a.dtype): TensorType {
  if (a.dtype !== b.dtype) throw new Mismatch(`${describeType(a)} and ${describeType(b)} differ in type`);
  return { shape: broadcastShapes(a.shape, b.shape), dtype };
}

type BinaryGradient = (g: Tensor, x: Tensor, y: Tensor, out: Tensor) => readonly [Tensor, Tensor];

function binaryOp(name: string, type: string, gradient: BinaryGradient): Op {
  return {
    name,
    infer: ([a, b]) => [binaryType(a, b)],
    lower: (to, inputs) => [to.op(type, inputs)],
    gradient: ({ inputs: [x, y], outputs: [out] }, [g]) => {
      const [dx, dy] = gradient(g!, x, y, out);
      return [sumTo(dx, x.shape), sumTo(dy, y.shape)];
    },
  };
}

const addOp = binaryOp('add', 'Add', (g) => [g, g]);
const subOp = binaryOp('sub', 'Sub', (g) => [g, neg(g)]);
const mulOp = binaryOp('mul', 'Mul', (g, x, y) => [mul(g, y), mul(g, x)]);
const divOp = binaryOp('div', 'Div', (g, _, y, out) => {
  const dx = div(g, y);
  return [dx, neg(mul(dx, out))];
});
const powOp = binaryOp('pow', 'Pow', (g, x, y, out) => [mul(mul(g, y), pow(x, sub(y, 1))), mul(g, mul(out, log(x)))]);
const maximumOp = binaryOp('maximum', 'Max', (g, x, y) => splitBy(g, greater(y, x)));
const minimumOp = binaryOp('minimum', 'Min', (g, x, y) => splitBy(g, greater(x, y)));

function splitBy(g: Tensor, second: Tensor): [Tensor, Tensor] {
  return [where(second, 0, g), where(second, g, 0)];
}

/** An elementwise operation of one floating-point tensor. */
export function unaryOp(
  name: string,
  lower: string | ((to: Lowering, input: string, node: Node) => string),
  gradient?: (g: Tensor, x: Tensor, out: Tensor, node: Node) => Tensor,
): Op {
  return {
    name,
    infer: ([x]) => {
      if (!isFloat(x.dtype)) throw new Mismatch(`expected f32 or f64, got ${describeType(x)}`);
      return [x];
    },
    lower: (to, [input], node) => [typeof lower === 'string' ? to.op(lower, [input]) : lower(to, input, node)],
    gradient: (node, [g]) => [gradient?.(g!, node.inputs[0], node.outputs[0], node)],
  };
}

const negOp = unaryOp('neg', 'Neg', (g) => neg(g));
const expOp = unaryOp('exp', 'Exp', (g, _, out) => mul(g, out));
const logOp = unaryOp('log', 'Log', (g, x) => div(g, x));
const sqrtOp = unaryOp('sqrt', 'Sqrt', (g, _, out) => div(mul(g, 0.5), out));
const absOp = unaryOp('abs', 'Abs', (g, x) => where(greater(x, 0), g, neg(g)));
const sinOp = unaryOp(
  'sin',
  (to, input) => (to.device === 'cpu' ? to.op('Sin', [input]) : preciseSine(to, input)),
  (g, x) => mul(g, cos(x)),
);
const cosOp = unaryOp(
  'cos',
  (to, input) =>
    to.device === 'cpu' ? to.op('Cos', [input]) : preciseSine(to, to.op('Add', [input, to.scalar('f32', Math.PI / 2)])),
  (g, x) => neg(mul(g, sin(x))),
);

/**
 * Graphics cards have sines with three digits. Here x − kπ lies within ±π/2, where the series up to r¹¹ is accurate to
 * 6e-8, and sin x = (−1)ᵏ sin r.
 */
function preciseSine(to: Lowering, x: string): string {
  const op = (type: string, ...inputs: string[]): string => to.op(type, inputs);
  const number = (value: number): string => to.scalar('f32', value);
  const k = op('Floor', op('Add', op('Mul', x, number(1 / Math.PI)), number(0.5)));
  // π in two parts; the first has few enough bits for an exact product.
  const high = 3.140625;
  const r = op('Sub', op('Sub', x, op('Mul', k, number(high))), op('Mul', k, number(Math.PI - high)));
  const square = op('Mul', r, r);
  const series = [1, -1 / 6, 1 / 120, -1 / 5040, 1 / 362880, -1 / 39916800];
  const sum = series
    .slice(0, -1)
    .reduceRight((rest, term) => op('Add', op('Mul', rest, square), number(term)), number(series[5]));
  const odd = op('Sub', k, op('Mul', op('Floor', op('Mul', k, number(0.5))), number(2)));
  return op('Mul', op('Mul', r, sum), op('Sub', number(1), op('Mul', odd, number(2))));
}
const stopGradientOp = unaryOp('stopGradient', 'Identity');

const clipOp = unaryOp(
  'clip',
  (to, input, { attributes, inputs: [{ dtype }] }) =>
    to.op('Clip', [input, to.scalar(dtype, attributes.low as number), to.scalar(dtype, attributes.high as number)]),
  // Inside the bounds clip changes nothing: equality of output and input marks where the gradient passes.
  (g, x, out) => mul(g, cast(equal(out, x), x.dtype)),
);

/** a = b, as bool. */
export const equal = (a: Tensor, b: Operand): Tensor => record(equalOp, pair(a, b), {})[0];
/** a < b, as bool. */
export const less = (a: Tensor, b: Operand): Tensor => record(lessOp, pair(a, b), {})[0];
/** a ≤ b, as bool. */
export const lessEqual = (a: Tensor, b: Operand): Tensor => record(lessEqualOp, pair(a, b), {})[0];
/** a > b, as bool. */
export const greater = (a: Tensor, b: Operand): Tensor => record(greaterOp, pair(a, b), {})[0];
/** a ≥ b, as bool. */
export const greaterEqual = (a: Tensor, b: Operand): Tensor => record(greaterEqualOp, pair(a, b), {})[0];
/** Both, element by element. */
export const and = (a: Tensor, b: Tensor): Tensor => record(andOp, [a, b], {})[0];
/** At least one of both, element by element. */
export const or = (a: Tensor, b: Tensor): Tensor => record(orOp, [a, b], {})[0];
/** The opposite, element by element. */
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

function logicOp(name: string, lower: string | ((to: Lowering, inputs: readonly string[]) => string)): Op {
  return {
    name,
    infer: (inputs) => {
      const wrong = inputs.find(({ dtype }) => dtype !== 'bool');
      if (wrong !== undefined) throw new Mismatch(`expected bool, got ${describeType(wrong)}`);
      return [{ shape: inputs.map(({ shape }) => shape).reduce(broadcastShapes), dtype: 'bool' }];
    },
    lower: (to, inputs) => [typeof lower === 'string' ? to.op(lower, inputs) : lower(to, inputs)],
  };
}

const equalOp = compareOp('equal', 'Equal');
const lessOp = compareOp('less', 'Less');
const lessEqualOp = compareOp('lessEqual', 'LessOrEqual');
const greaterOp = compareOp('greater', 'Greater');
const greaterEqualOp = compareOp('greaterEqual', 'GreaterOrEqual');
const andOp = logicOp('and', 'And');
const orOp = logicOp('or', (to, inputs) => {
  if (to.device === 'cpu') return to.op('Or', inputs);
  const neither = inputs.map((name) => to.op('Not', [name]));
  return to.op('Not', [to.op('And', neither)]);
});
const notOp = logicOp('not', 'Not');

const castOp: Op<{ dtype: DType }> = {
  name: 'cast',
  infer: ([{ shape }], { dtype }) => [{ shape, dtype }],
  lower: (to, [input], { outputs: [{ dtype }] }) => [to.cast(input, dtype)],
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
