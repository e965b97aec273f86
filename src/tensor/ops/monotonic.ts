import { addDims, type Dim, multiplyDims } from '../dim.js';
import type { Lowering } from '../lowering.js';
import { OnnxGraph } from '../onnx.js';
import {
  type DType,
  describeType,
  isFloat,
  Mismatch,
  type Op,
  record,
  type Tensor,
  type TensorType,
} from '../tensor.js';

/**
 * Expected alignment of hard monotonic attention (Raffel et al. 2017): p [R, T, S] holds the probability that at target
 * step i the attention, being at source position j, stops there; α [R, T, S] is the probability that it does:
 *
 *     q_ij = (1 − p_i,j−1)·q_i,j−1 + α_i−1,j        α_ij = p_ij·q_ij        α_−1 = (1, 0, 0, …)
 *
 * This is p·cumprod(1 − p)·cumsum(α_i−1 / cumprod(1 − p)) without its products and quotients, so that nothing can
 * overflow or vanish, however long the sentence. q_ij needs what lies to the left of it and above it alone: all elements
 * with the same i + j are computed at once, in T + S − 1 steps.
 */
export function monotonicAlignment(p: Tensor): Tensor {
  return record(alignmentOp, [p], {})[0];
}

/** Outputs: α, and the tape of the gradient: p and q by diagonals, [T, T + S − 1, R]. */
const alignmentOp: Op = {
  name: 'monotonicAlignment',
  infer: ([p]) => {
    if (p.shape.length !== 3 || !isFloat(p.dtype)) {
      throw new Mismatch(`expected probabilities [R, T, S], got ${describeType(p)}`);
    }
    const [rows, steps] = p.shape;
    const tape = { shape: [steps, diagonals(p), rows], dtype: p.dtype };
    return [p, tape, tape];
  },
  lower: (to, [input], { inputs: [p] }) => {
    const [rows, steps] = p.shape;
    const one = to.op('Expand', [to.scalar(p.dtype, 1), to.shape([1, rows])]);
    const start = pad(to, one, p, 0, [0, addDims(steps, -1)]); // q of the first diagonal, [T, R]
    const skewed = skew(to, input, p);
    const [, alpha, q] = scan(to, p, start, [skewed], 'forward', (body, state, [now]) => {
      const stopped = body.op('Mul', [state, now]);
      // What stops at step i begins step i + 1 at the same position: one row further on the next diagonal.
      const next = body.op('Add', [body.op('Sub', [state, stopped]), shift(body, p, stopped, [1, -1])]);
      return [next, stopped, body.op('Identity', [state])];
    });
    return [unskew(to, alpha, p), skewed, q];
  },
  gradient: ({ inputs: [p], outputs: [, skewed, q] }, [g]) => record(alignmentGradientOp, [p, skewed, q, g!], {}),
};

/**
 * With dq′ the gradient of the next diagonal's q, and ↑ one row back: u = g − dq′ + ↑dq′, dq = dq′ + u·p, dp = u·q.
 */
const alignmentGradientOp: Op = {
  name: 'monotonicAlignmentGradient',
  infer: ([p]) => [p],
  lower: (to, [, skewed, q, g], { inputs: [p] }) => {
    const [rows, steps] = p.shape;
    const start = to.zeros(p.dtype, [steps, rows]);
    const [, u] = scan(to, p, start, [skewed, skew(to, g, p)], 'backward', (body, state, [now, given]) => {
      const change = body.op('Add', [body.op('Sub', [given, state]), shift(body, p, state, [-1, 1])]);
      return [body.op('Add', [state, body.op('Mul', [change, now])]), change];
    });
    return [unskew(to, to.op('Mul', [u, q]), p)];
  },
};

function diagonals({ shape: [, steps, source] }: TensorType): Dim {
  return addDims(addDims(steps, source), -1);
}

/**
 * [R, T, S] → [T, T + S − 1, R] with element (i, j) at (i, i + j) and zeros elsewhere: rows of T + S, the last T of them
 * zeros, read as rows one shorter.
 */
function skew(to: Lowering, name: string, p: TensorType): string {
  const [rows, steps, source] = p.shape;
  const wide = addDims(steps, source);
  const padded = pad(to, to.op('Transpose', [name], { perm: [1, 2, 0] }), p, 1, [0, steps]); // [T, T + S, R]
  const flat = to.op('Reshape', [padded, to.shape([multiplyDims(steps, wide), rows])]);
  const length = multiplyDims(steps, diagonals(p));
  const cut = to.op('Slice', [flat, to.ints([0]), to.size(length), to.ints([0])]);
  return to.op('Reshape', [cut, to.shape([steps, diagonals(p), rows])]);
}

/** The inverse of `skew`. */
function unskew(to: Lowering, name: string, p: TensorType): string {
  const [rows, steps, source] = p.shape;
  const flat = to.op('Reshape', [name, to.shape([multiplyDims(steps, diagonals(p)), rows])]);
  const padded = pad(to, flat, p, 0, [0, steps]);
  const apart = to.op('Reshape', [padded, to.shape([steps, addDims(steps, source), rows])]);
  const kept = to.op('Slice', [apart, to.ints([0]), to.size(source), to.ints([1])]); // [T, S, R]
  return to.op('Transpose', [kept], { perm: [2, 0, 1] });
}

function pad(to: Lowering, name: string, { dtype }: TensorType, axis: number, [before, after]: [Dim, Dim]): string {
  const pads = to.op('Concat', [to.size(before), to.size(after)], { axis: 0 });
  return to.op('Pad', [name, pads, to.scalar(dtype, 0), to.ints([axis])]);
}

/** Rows moved by one place, a zero row in the place that is left: a negative pad takes a row away. */
function shift(body: OnnxGraph, { dtype }: TensorType, name: string, pads: readonly [number, number]): string {
  const ints = (values: readonly number[]): string =>
    body.constant('i64', BigInt64Array.from(values, BigInt), [values.length]);
  const zero = body.constant(dtype, dtype === 'f64' ? new Float64Array(1) : new Float32Array(1), []);
  return body.op('Pad', [name, ints(pads), zero, ints([0])]);
}

/**
 * The diagonals of `inputs` [T, T + S − 1, R] one after the other: `step` makes of the state [T, R] and the slices the
 * next state and any number of results. Returns the last state and the results [T, T + S − 1, R].
 */
function scan(
  to: Lowering,
  { shape: [rows, steps], dtype }: TensorType,
  start: string,
  inputs: readonly string[],
  direction: 'forward' | 'backward',
  step: (body: OnnxGraph, state: string, slices: readonly string[]) => readonly string[],
): string[] {
  const slice = [steps, rows];
  return scanSteps(
    to,
    { dtype, axis: 1, direction, state: slice, slices: inputs.map(() => slice) },
    start,
    inputs,
    step,
  );
}

/** What is the same in all steps of a recurrence. */
export interface ScanShape {
  readonly dtype: DType;
  /** Axis of the inputs that the recurrence runs along. */
  readonly axis: number;
  readonly direction: 'forward' | 'backward';
  readonly state: readonly Dim[];
  /** Of each input, without the axis. */
  readonly slices: readonly (readonly Dim[])[];
  /** Of each result. Default: that of the state. */
  readonly results?: readonly (readonly Dim[])[];
}

/** A recurrence over a length that is known only when it runs. Returns the last state and the results along the axis. */
export function scanSteps(
  to: Lowering,
  { dtype, axis, direction, state, slices, results: shapes = [] }: ScanShape,
  start: string,
  inputs: readonly string[],
  step: (body: OnnxGraph, state: string, slices: readonly string[]) => readonly string[],
): string[] {
  const prefix = `${to.graph.fresh('Scan')}.`;
  const body = new OnnxGraph(prefix);
  const given = (name: string, shape: readonly Dim[]): string => body.input(prefix + name, dtype, shape);
  const results = step(
    body,
    given('state', state),
    slices.map((shape, i) => given(`slice.${i}`, shape)),
  );
  results.forEach((name, i) => {
    body.output(`${prefix}result.${i}`, name, dtype, i === 0 ? state : (shapes[i - 1] ?? state));
  });
  const outputs = results.length - 1;
  const flag = Number(direction === 'backward');
  return to.graph.multi('Scan', [start, ...inputs], results.length, {
    body: { body },
    num_scan_inputs: inputs.length,
    scan_input_axes: inputs.map(() => axis),
    scan_input_directions: inputs.map(() => flag),
    scan_output_axes: Array.from({ length: outputs }, () => axis),
    scan_output_directions: Array.from({ length: outputs }, () => flag),
  });
}
