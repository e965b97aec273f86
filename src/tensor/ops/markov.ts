import type { Dim } from '../dim.js';
import type { Lowering } from '../lowering.js';
import type { OnnxGraph } from '../onnx.js';
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
import { scanSteps } from './monotonic.js';

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
