import { InputError } from '../../errors.js';
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
import { LOWEST } from './activations.js';

/**
 * Expected alignment of hard monotonic attention (Raffel et al. 2017): p [R, T, S] holds the probability that at target
 * step i the attention, being at source position j, stops there; α [R, T, S] is the probability that it does:
 *
 *     q_ij = (1 − p_i,j−1)·q_i,j−1 + α_i−1,j        α_ij = p_ij·q_ij        α_−1 = (1, 0, 0, …)
 *
 * This is p·cumprod(1 − p)·cumsum(α_i−1 / cumprod(1 − p)) without its products and quotients, so that nothing can
 * overflow or underflow, however long the sentence. q_ij depends only on its left and upper neighbours: all elements
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

/** Shifts rows by one, filling with a zero row: a negative pad removes a row. */
function shift(body: OnnxGraph, { dtype }: TensorType, name: string, pads: readonly [number, number]): string {
  const ints = (values: readonly number[]): string =>
    body.constant('i64', BigInt64Array.from(values, BigInt), [values.length]);
  const zero = body.constant(dtype, dtype === 'f64' ? new Float64Array(1) : new Float32Array(1), []);
  return body.op('Pad', [name, ints(pads), zero, ints([0])]);
}

/**
 * Scans the diagonals of `inputs` [T, T + S − 1, R]: `step` turns the state [T, R] and the slices into the
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
function scanSteps(
  to: Lowering,
  { dtype, axis, direction, state, slices, results: shapes = [] }: ScanShape,
  start: string,
  inputs: readonly string[],
  step: (body: OnnxGraph, state: string, slices: readonly string[]) => readonly string[],
): string[] {
  if (to.device !== 'cpu') {
    throw new InputError(
      `this model processes sentences step by step, which only the CPU supports, not ${to.device}: expected cpu`,
      { key: 'device' },
    );
  }
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

/**
 * The forward algorithm of a hidden Markov model: m [T, R, K, K] holds the logarithm of the transition from state k′ at
 * step i − 1 to state k at step i, times what state k gives to the observation at i. The result [T, R, K] is the logarithm
 * of the sum over all ways to state k,
 *
 *     a_ik = log Σ_k′ exp(a_i−1,k′ + m_ik′k)        a_−1 = (0, −∞, …)
 *
 * so that the first step begins in row k′ = 0 of m. An impossible transition is `LOWEST`.
 */
export function forwardAlgorithm(m: Tensor): Tensor {
  return record(forwardOp, [m], {})[0];
}

const forwardOp: Op = {
  name: 'forwardAlgorithm',
  infer: ([m]) => {
    const [steps, rows, from, to] = m.shape;
    if (m.shape.length !== 4 || typeof to !== 'number' || from !== to || !isFloat(m.dtype)) {
      throw new Mismatch(`expected logarithms [T, R, K, K], got ${describeType(m)}`);
    }
    return [{ shape: [steps, rows, to], dtype: m.dtype }];
  },
  lower: (to, [input], { inputs: [m] }) => {
    const { state, step, dtype } = sizesOf(m);
    const shape = { dtype, axis: 0, direction: 'forward', state, slices: [step] } as const;
    const [, all] = scanSteps(to, shape, beginning(to, m), [input], (body, before, [now]) => {
      const ways = body.op('Add', [body.op('Unsqueeze', [before, axes(body, [2])]), now]); // [R, K′, K]
      const sums = logSum(body, ways);
      return [sums, body.op('Identity', [sums])];
    });
    return [all];
  },
  gradient: ({ inputs: [m], outputs: [a] }, [g]) => record(forwardGradientOp, [m, a, g!], {}),
};

/** With u_ik the gradient of a_ik: dm_ik′k = u_ik·exp(a_i−1,k′ + m_ik′k − a_ik), u_i−1,k′ = g_i−1,k′ + Σ_k dm_ik′k. */
const forwardGradientOp: Op = {
  name: 'forwardAlgorithmGradient',
  infer: ([m]) => [m],
  lower: (to, [input, a, g], { inputs: [m] }) => {
    const { state, step, dtype } = sizesOf(m);
    const first = to.op('Unsqueeze', [beginning(to, m), to.ints([0])]);
    const all = to.op('Concat', [first, a], { axis: 0 }); // [T + 1, R, K]
    const before = to.op('Slice', [all, to.ints([0]), to.ints([-1]), to.ints([0])]);
    const slices = [step, state, state, state];
    const shape = { dtype, axis: 0, direction: 'backward', state, slices, results: [step] } as const;
    const start = to.zeros(dtype, state);
    const [, dm] = scanSteps(to, shape, start, [input, before, a, g], (body, later, [now, from, here, given]) => {
      const wide = (name: string, axis: number): string => body.op('Unsqueeze', [name, axes(body, [axis])]);
      const u = body.op('Add', [later, given]);
      const log = body.op('Sub', [body.op('Add', [wide(from, 2), now]), wide(here, 1)]);
      const share = body.op('Mul', [body.op('Exp', [log]), wide(u, 1)]); // [R, K′, K]
      return [body.op('ReduceSum', [share, axes(body, [2])], { keepdims: 0 }), body.op('Identity', [share])];
    });
    return [dm];
  },
};

interface Sizes {
  readonly dtype: DType;
  /** [R, K] */
  readonly state: readonly Dim[];
  /** [R, K, K] */
  readonly step: readonly Dim[];
}

function sizesOf({ dtype, shape: [, rows, states] }: TensorType): Sizes {
  return { dtype, state: [rows, states], step: [rows, states, states] };
}

/** a_−1, [R, K]: 0 for the first state, `LOWEST` for the others. */
function beginning(to: Lowering, { dtype, shape: [, rows, states] }: TensorType): string {
  const row = Array.from({ length: states as number }, (_, k) => (k === 0 ? 0 : LOWEST));
  const data = dtype === 'f64' ? Float64Array.from(row) : Float32Array.from(row);
  const one = to.graph.constant(dtype, data, [1, row.length]);
  return to.op('Expand', [one, to.shape([rows, 1])]);
}

function axes(body: OnnxGraph, values: readonly number[]): string {
  return body.constant('i64', BigInt64Array.from(values, BigInt), [values.length]);
}

/** log Σ exp over axis 1 of [R, K′, K]. */
function logSum(body: OnnxGraph, ways: string): string {
  const top = body.op('ReduceMax', [ways, axes(body, [1])], { keepdims: 1 });
  const sum = body.op('ReduceSum', [body.op('Exp', [body.op('Sub', [ways, top])]), axes(body, [1])], { keepdims: 0 });
  return body.op('Add', [body.op('Log', [sum]), body.op('Squeeze', [top, axes(body, [1])])]);
}
