import { type Dim, formatShape, sameDim } from '../dim.js';
import type { Lowering } from '../lowering.js';
import {
  describeType,
  Mismatch,
  type Node,
  type Op,
  record,
  type Tensor,
  type TensorType,
  typedArray,
} from '../tensor.js';

/** Weights of one direction of a recurrent layer, laid out as PyTorch's: gates stacked along the rows. */
export interface RecurrentWeights {
  /** [gates·H, I] */
  readonly input: Tensor;
  /** [gates·H, H] */
  readonly hidden: Tensor;
  /** [gates·H] */
  readonly inputBias: Tensor;
  /** [gates·H] */
  readonly hiddenBias: Tensor;
}

/**
 * Gated recurrent unit (Cho et al. 2014) in PyTorch's form, over a static number of steps, time-major:
 * r = σ(W_ir x + b_ir + W_hr h + b_hr), z = σ(W_iz x + b_iz + W_hz h + b_hz),
 * n = tanh(W_in x + b_in + r·(W_hn h + b_hn)), h′ = (1 − z)·n + z·h; rows of the weights in the order r, z, n.
 * Returns all states [T, B, H] and the last one [B, H].
 */
export function gru(x: Tensor, weights: RecurrentWeights, initial?: Tensor): { states: Tensor; last: Tensor } {
  const { input, hidden, inputBias, hiddenBias } = weights;
  const inputs = [x, input, hidden, inputBias, hiddenBias, ...(initial === undefined ? [] : [initial])];
  const [states, last] = record(gruOp, inputs, {});
  return { states, last };
}

/** T, B, I and H of a recurrent layer's inputs, checked. */
export function recurrentSizes(
  [x, input, hidden, inputBias, hiddenBias, ...initial]: readonly TensorType[],
  gates: number,
): { steps: number; batch: Dim; width: number; size: number } {
  const [steps, batch, width] = x.shape;
  const size = hidden.shape[1];
  if (x.shape.length !== 3 || typeof steps !== 'number' || typeof width !== 'number' || typeof size !== 'number') {
    throw new Mismatch(`expected x [T, B, I] with static T and I, got ${formatShape(x.shape)}`);
  }
  const expected: [TensorType, Dim[]][] = [
    [input, [gates * size, width]],
    [hidden, [gates * size, size]],
    [inputBias, [gates * size]],
    [hiddenBias, [gates * size]],
    ...initial.map((state): [TensorType, Dim[]] => [state, [batch, size]]),
  ];
  for (const [type, shape] of expected) {
    const fits = type.shape.length === shape.length && type.shape.every((d, i) => sameDim(d, shape[i]));
    if (!fits || type.dtype !== x.dtype) {
      throw new Mismatch(`expected ${x.dtype}${formatShape(shape)}, got ${describeType(type)}`);
    }
  }
  return { steps, batch, width, size };
}

/** What the backward pass needs again from each step, [B, H] each. */
const TAPE = ['reset gate', 'update gate', 'candidate', 'reset', 'kept'] as const;

/** Outputs: all states, the last one, and the tape of every step, which costs nothing unless it is read. */
const gruOp: Op = {
  name: 'gru',
  infer: (inputs) => {
    const { steps, batch, size } = recurrentSizes(inputs, 3);
    const { dtype } = inputs[0];
    const state = { shape: [batch, size], dtype };
    return [{ shape: [steps, batch, size], dtype }, state, ...Array<TensorType>(steps * TAPE.length).fill(state)];
  },
  lower: lowerUnrolled,
  gradient: (node, [states, last]) => {
    const hasInitial = node.inputs.length === 6;
    const [all, , ...tape] = node.outputs;
    const given = [states, last].filter((g) => g !== undefined);
    const gradients = record(gruGradientOp, [...node.inputs, all, ...tape, ...given], {
      hasInitial,
      hasStates: states !== undefined,
      hasLast: last !== undefined,
    });
    return hasInitial ? gradients : gradients.slice(0, 5);
  },
};

/**
 * Step by step, on tensors small enough to stay in the cache, keeping what the backward pass needs. Also without a
 * gradient: it takes half the time of the runtime's own recurrence.
 */
function lowerUnrolled(to: Lowering, inputs: readonly string[], node: Node): string[] {
  const { steps, batch, size } = recurrentSizes(node.inputs, 3);
  const { dtype } = node.inputs[0];
  const [x, input, hidden, inputBias, hiddenBias, initial] = inputs;
  const gates = (name: string): string[] => to.graph.multi('Split', [name, to.ints([2 * size, size])], 2, { axis: 0 });
  const [wiGates, wiNew] = gates(input);
  const [whGates, whNew] = gates(hidden);
  const [biGates, biNew] = gates(inputBias);
  const [bhGates, bhNew] = gates(hiddenBias);
  const gateBias = to.op('Add', [biGates, bhGates]);
  const inputsNow = to.steps(x, steps);
  let state = initial ?? to.zeros(dtype, [batch, size]);
  const states: string[] = [];
  const tape: string[] = [];
  for (const now of inputsNow) {
    const fromInput = to.op('Gemm', [now, wiGates, gateBias], { transB: 1 });
    const both = to.op('Sigmoid', [to.op('Gemm', [state, whGates, fromInput], { transB: 1 })]); // [B, 2H]
    const [r, z] = to.graph.multi('Split', [both], 2, { axis: 1, num_outputs: 2 });
    const hn = to.op('Gemm', [state, whNew, bhNew], { transB: 1 });
    const newInput = to.op('Gemm', [now, wiNew, biNew], { transB: 1 });
    const reset = to.op('Mul', [r, hn]);
    const candidate = to.op('Add', [newInput, reset]);
    const n = to.op('Tanh', [candidate]);
    const kept = to.op('Mul', [z, to.op('Sub', [state, n])]);
    state = to.op('Add', [n, kept]); // (1 − z)·n + z·h
    states.push(state);
    tape.push(r, z, n, reset, kept);
  }
  return [to.stackSteps(states), state, ...tape];
}

/**
 * Backward pass, with dh the gradient of h′ = n + z·(h − n):
 * dn = dh·(1 − z)(1 − n²), dz = dh·z(h − n)(1 − z), the candidate's hidden part dn·r, dr = (dn − dn·r)·r(W_hn h + b_hn),
 * dh_prev = dh·z + [dr | dz | dn·r]·W_h; on the input side the gates' gradients are [dr | dz | dn].
 */
const gruGradientOp: Op<{ hasInitial: boolean; hasStates: boolean; hasLast: boolean }> = {
  name: 'gruGradient',
  infer: (inputs, { hasInitial }) => {
    const { batch, size } = recurrentSizes(inputs.slice(0, hasInitial ? 6 : 5), 3);
    return [...inputs.slice(0, 5), { shape: [batch, size], dtype: inputs[0].dtype }];
  },
  lower: (to, inputs, node) => {
    const { hasInitial, hasStates, hasLast } = node.attributes as Record<string, boolean>;
    const { steps, batch, width, size } = recurrentSizes(node.inputs.slice(0, hasInitial ? 6 : 5), 3);
    const { dtype } = node.inputs[0];
    const [x, input, hidden] = inputs;
    const rest = inputs.slice(5);
    const initial = hasInitial ? rest.shift()! : to.zeros(dtype, [batch, size]);
    const states = to.steps(rest.shift()!, steps);
    const tape = rest.splice(0, steps * TAPE.length);
    const dStates = hasStates ? to.steps(rest.shift()!, steps) : undefined;
    let dh = hasLast ? rest.shift() : undefined;

    const one = to.scalar(dtype, 1);
    const mul = (a: string, b: string): string => to.op('Mul', [a, b]);
    const sub = (a: string, b: string): string => to.op('Sub', [a, b]);
    const concat = (parts: readonly string[], axis: number): string => to.op('Concat', parts, { axis });
    const noRows = (columns: number): string =>
      to.graph.constant(dtype, typedArray(dtype, new Float64Array(size * columns)), [size, columns]);
    const [wiGates, wiNew] = to.graph.multi('Split', [input, to.ints([2 * size, size])], 2, { axis: 0 });
    // The factors of the gate gradients, [dr | dz | dn·r | dn], on either side: [4H, I] and [4H, H].
    const toInput = concat([wiGates, noRows(width), wiNew], 0);
    const toHidden = concat([hidden, noRows(size)], 0);
    const before = [initial, ...states];
    const ones = to.once(`ones of ${dtype} [${batch}, 1]`, () => to.op('Expand', [one, to.shape([batch, 1])]));
    const seen = to.steps(x, steps).map((now, t) => concat([now, before[t], ones], 1)); // [B, I + H + 1]
    const ofGates: string[] = [];
    const dx: string[] = [];

    for (let t = steps - 1; t >= 0; t--) {
      const [r, z, n, reset, kept] = tape.slice(t * TAPE.length, (t + 1) * TAPE.length);
      if (dStates !== undefined) dh = dh === undefined ? dStates[t] : to.op('Add', [dh, dStates[t]]);
      const through = mul(dh!, z);
      const toNew = sub(dh!, through);
      const dn = mul(toNew, sub(one, mul(n, n)));
      const dz = mul(toNew, kept);
      const dhn = mul(dn, r);
      const dr = mul(sub(dn, dhn), reset);
      const gates = concat([dr, dz, dhn, dn], 1); // [B, 4H]
      ofGates.unshift(gates);
      dx.unshift(to.op('MatMul', [gates, toInput]));
      dh = to.op('Gemm', [gates, toHidden, through]);
    }
    // The gradients of all parameters, [I + H + 1, 4H], as one sum over the steps. The runtime first computes the input
    // of a node that was written last: written after all gates, each product of this sum is computed while its gates
    // are still in the cache. One product for ten steps is no faster, and its parts would have to be copied.
    let sum: string | undefined;
    for (let t = steps - 1; t >= 0; t--) {
      sum = to.op('Gemm', [seen[t], ofGates[t], ...(sum === undefined ? [] : [sum])], { transA: 1 });
    }
    const [ofInput, ofHidden, ofBias] = to.graph
      .multi('Split', [sum!, to.ints([width, size, 1])], 3, { axis: 0 })
      .map((part) => to.graph.multi('Split', [part], 4, { axis: 1, num_outputs: 4 }));
    const weights = ([dr, dz, last]: readonly string[]): string =>
      to.op('Transpose', [concat([dr, dz, last], 1)], { perm: [1, 0] });
    const bias = ([dr, dz, last]: readonly string[]): string =>
      to.reshape(concat([dr, dz, last], 1), [1, 3 * size], [3 * size]);
    const atInput = ([dr, dz, , dn]: readonly string[]): string[] => [dr, dz, dn];
    return [to.stackSteps(dx), weights(atInput(ofInput)), weights(ofHidden), bias(atInput(ofBias)), bias(ofBias), dh!];
  },
};
