import { type Dim, formatShape, multiplyDims, sameDim } from '../dim.js';
import type { Lowering } from '../lowering.js';
import { describeType, Mismatch, type Node, type Op, record, type Tensor, type TensorType } from '../tensor.js';

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
): { steps: number; batch: Dim; width: Dim; size: number } {
  const [steps, batch, width] = x.shape;
  const size = hidden.shape[1];
  if (x.shape.length !== 3 || typeof steps !== 'number' || typeof size !== 'number') {
    throw new Mismatch(`expected x [T, B, I] with a static T, got ${formatShape(x.shape)}`);
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

const gruOp: Op = {
  name: 'gru',
  infer: (inputs) => {
    const { steps, batch, size } = recurrentSizes(inputs, 3);
    const { dtype } = inputs[0];
    return [
      { shape: [steps, batch, size], dtype },
      { shape: [batch, size], dtype },
    ];
  },
  lower: (to, inputs, node) =>
    node.inputs[0].dtype === 'f32' ? lowerFused(to, inputs, node) : lowerUnrolled(to, inputs, node),
  gradient: (node, [states, last]) => {
    const hasInitial = node.inputs.length === 6;
    const given = [states, last].filter((g) => g !== undefined);
    const inputs = [...node.inputs, node.outputs[0], ...given];
    const gradients = record(gruGradientOp, inputs, {
      hasInitial,
      hasStates: states !== undefined,
      hasLast: last !== undefined,
    });
    return hasInitial ? gradients : gradients.slice(0, 5);
  },
};

/** ONNX's GRU wants the gates in the order z, r, h. */
function lowerFused(
  to: Lowering,
  [x, input, hidden, inputBias, hiddenBias, initial]: readonly string[],
  node: Node,
): string[] {
  const { size } = recurrentSizes(node.inputs, 3);
  const order = to.ints(rowsOf([1, 0, 2], size));
  const reordered = (name: string): string => to.op('Gather', [name, order], { axis: 0 });
  const leading = (name: string): string => to.op('Unsqueeze', [name, to.ints([0])]);
  const bias = to.op('Concat', [reordered(inputBias), reordered(hiddenBias)], { axis: 0 });
  const operands = [x, leading(reordered(input)), leading(reordered(hidden)), leading(bias)];
  if (initial !== undefined) operands.push('', leading(initial));
  const [states, last] = to.graph.multi('GRU', operands, 2, { hidden_size: size, linear_before_reset: 1 });
  return [to.op('Squeeze', [states, to.ints([1])]), to.op('Squeeze', [last, to.ints([0])])];
}

function lowerUnrolled(to: Lowering, inputs: readonly string[], node: Node): string[] {
  const { steps, batch, size } = recurrentSizes(node.inputs, 3);
  const [x, input, hidden, inputBias, hiddenBias, initial] = inputs;
  const one = to.scalar('f64', 1);
  const thirds = (name: string): string[] => to.graph.multi('Split', [name], 3, { axis: -1, num_outputs: 3 });
  let state = initial ?? to.op('Expand', [to.scalar('f64', 0), to.shape([batch, size])]);
  const states: string[] = [];
  for (let t = 0; t < steps; t++) {
    const now = to.op('Gather', [x, to.scalar('i64', t)], { axis: 0 });
    const [xr, xz, xn] = thirds(to.op('Gemm', [now, input, inputBias], { transB: 1 }));
    const [hr, hz, hn] = thirds(to.op('Gemm', [state, hidden, hiddenBias], { transB: 1 }));
    const r = to.op('Sigmoid', [to.op('Add', [xr, hr])]);
    const z = to.op('Sigmoid', [to.op('Add', [xz, hz])]);
    const n = to.op('Tanh', [to.op('Add', [xn, to.op('Mul', [r, hn])])]);
    state = to.op('Add', [to.op('Mul', [to.op('Sub', [one, z]), n]), to.op('Mul', [z, state])]);
    states.push(to.op('Unsqueeze', [state, to.ints([0])]));
  }
  return [to.op('Concat', states, { axis: 0 }), state];
}

/**
 * Backward pass. The gates of all steps are recomputed in a few large products from the saved states; then with
 * A = (1 − z)(1 − n²), the gate gradients are dh times
 *   C_r = A·(W_hn h + b_hn)·r(1 − r),  C_z = (h′ − n)(1 − z)  [= (h − n)z(1 − z)],  C_n = A·r (hidden side), A (input side),
 * and dh_prev = dh·[C_r | C_z | C_n | z] · [W_h ; identity]: one product a step carries the gradient backwards.
 */
const gruGradientOp: Op<{ hasInitial: boolean; hasStates: boolean; hasLast: boolean }> = {
  name: 'gruGradient',
  infer: (inputs, { hasInitial }) => {
    const [, input, hidden, inputBias, hiddenBias] = inputs;
    const { batch, size } = recurrentSizes(inputs.slice(0, hasInitial ? 6 : 5), 3);
    return [inputs[0], input, hidden, inputBias, hiddenBias, { shape: [batch, size], dtype: inputs[0].dtype }];
  },
  lower: (to, inputs, node) => {
    const { hasInitial, hasStates, hasLast } = node.attributes as Record<string, boolean>;
    const { steps, batch, width, size } = recurrentSizes(node.inputs.slice(0, hasInitial ? 6 : 5), 3);
    const { dtype } = node.inputs[0];
    const [x, input, hidden, inputBias, hiddenBias] = inputs;
    const rest = inputs.slice(5);
    const initial = hasInitial ? rest.shift()! : to.op('Expand', [to.scalar(dtype, 0), to.shape([batch, size])]);
    const states = rest.shift()!;
    const dStates = hasStates ? rest.shift()! : undefined;
    const dLast = hasLast ? rest.shift()! : undefined;

    const rows = multiplyDims(steps, batch);
    const flat = (name: string, last: Dim): string => to.reshape(name, [steps, batch, last], [rows, last]);
    const one = to.scalar(dtype, 1);
    const mul = (a: string, b: string): string => to.op('Mul', [a, b]);
    const complement = (a: string): string => to.op('Sub', [one, a]);

    // Gates again, all steps at once: [T·B, H] each.
    const before = to.op(
      'Concat',
      [
        to.op('Unsqueeze', [initial, to.ints([0])]),
        ...(steps > 1 ? [to.op('Slice', [states, to.ints([0]), to.ints([steps - 1]), to.ints([0])])] : []),
      ],
      { axis: 0 },
    );
    const x2 = flat(x, width);
    const h2 = flat(before, size);
    const thirds = (name: string): string[] => to.graph.multi('Split', [name], 3, { axis: 0, num_outputs: 3 });
    const [wir, wiz, win] = thirds(input);
    const [whr, whz, whn] = thirds(hidden);
    const [bir, biz, bin] = thirds(inputBias);
    const [bhr, bhz, bhn] = thirds(hiddenBias);
    const gate = (wi: string, wh: string, bi: string, bh: string): string => {
      const fromInput = to.op('Gemm', [x2, wi, to.op('Add', [bi, bh])], { transB: 1 });
      return to.op('Sigmoid', [to.op('Gemm', [h2, wh, fromInput], { transB: 1 })]);
    };
    const r = gate(wir, whr, bir, bhr);
    const z = gate(wiz, whz, biz, bhz);
    const hn = to.op('Gemm', [h2, whn, bhn], { transB: 1 });
    const n = to.op('Tanh', [to.op('Add', [to.op('Gemm', [x2, win, bin], { transB: 1 }), mul(r, hn)])]);

    const keep = complement(z);
    const a = mul(keep, complement(mul(n, n)));
    const cz = mul(to.op('Sub', [flat(states, size), n]), keep);
    const cn = mul(a, r);
    const cr = mul(mul(cn, complement(r)), hn);
    const factors = to.reshape(
      to.op('Concat', [cr, cz, cn, z], { axis: 1 }),
      [rows, 4 * size],
      [steps, batch, 4 * size],
    );
    const factorOf = to.graph.multi('Split', [factors], steps, { axis: 0, num_outputs: steps });
    const dStateOf =
      dStates === undefined ? [] : to.graph.multi('Split', [dStates], steps, { axis: 0, num_outputs: steps });
    const square = (name: string): string => to.reshape(name, [1, batch, size], [batch, size]);

    // Backwards through time.
    const identity = to.graph.constant(dtype, identityMatrix(size, dtype), [size, size]);
    const carry = to.op('Concat', [hidden, identity], { axis: 0 }); // [4H, H]
    const products: string[] = [];
    const dHidden: string[] = [];
    let dh = dLast;
    for (let t = steps - 1; t >= 0; t--) {
      if (dStates !== undefined) {
        const here = square(dStateOf[t]);
        dh = dh === undefined ? here : to.op('Add', [dh, here]);
      }
      dHidden.unshift(dh!);
      const four = to.op('Concat', [dh!, dh!, dh!, dh!], { axis: 1 });
      const factor = to.reshape(factorOf[t], [1, batch, 4 * size], [batch, 4 * size]);
      const product = mul(four, factor); // [B, 4H]
      products.unshift(product);
      dh = to.op('MatMul', [product, carry]);
    }

    // Weights, all steps at once.
    const g = to.op('Concat', products, { axis: 0 }); // [T·B, 4H]
    const dn = mul(to.op('Concat', dHidden, { axis: 0 }), a); // [T·B, H]
    const head = (name: string, count: number): string =>
      to.op('Slice', [name, to.ints([0]), to.ints([count]), to.ints([0])]);
    const dWh = head(to.matmul(g, h2, dtype, { transA: true }), 3 * size);
    const sums = to.columnSums(g, rows, 4 * size, dtype);
    const dnSum = to.columnSums(dn, rows, size, dtype);
    const gx = to.op('Slice', [g, to.ints([0]), to.ints([2 * size]), to.ints([1])]); // [T·B, 2H]
    const dWi = to.op(
      'Concat',
      [to.matmul(gx, x2, dtype, { transA: true }), to.matmul(dn, x2, dtype, { transA: true })],
      { axis: 0 },
    );
    const dx = to.op('Gemm', [dn, win, to.op('MatMul', [gx, to.op('Concat', [wir, wiz], { axis: 0 })])]);
    return [
      to.reshape(dx, [rows, width], [steps, batch, width]),
      dWi,
      dWh,
      to.op('Concat', [head(sums, 2 * size), dnSum], { axis: 0 }),
      head(sums, 3 * size),
      dh!,
    ];
  },
};

/** Row numbers that put blocks of `size` rows into another order. */
export function rowsOf(blocks: readonly number[], size: number): number[] {
  return blocks.flatMap((block) => Array.from({ length: size }, (_, i) => block * size + i));
}

export function identityMatrix(size: number, dtype: 'f32' | 'f64' | string): Float32Array | Float64Array {
  const matrix = dtype === 'f64' ? new Float64Array(size * size) : new Float32Array(size * size);
  for (let i = 0; i < size; i++) matrix[i * size + i] = 1;
  return matrix;
}
