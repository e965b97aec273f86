import { type Dim, multiplyDims } from '../dim.js';
import type { Lowering } from '../lowering.js';
import { type Node, type Op, record, type Tensor } from '../tensor.js';
import { type RecurrentWeights, recurrentSizes } from './gru.js';

/**
 * Long short-term memory (Hochreiter & Schmidhuber 1997) in PyTorch's form, over a static number of steps, time-major:
 * i, f, o = σ(…), g = tanh(…), c′ = f·c + i·g, h′ = o·tanh(c′); rows of the weights in the order i, f, g, o.
 * Returns all states [T, B, H], the last one and the last cell [B, H].
 */
export function lstm(
  x: Tensor,
  weights: RecurrentWeights,
  initial?: { readonly state: Tensor; readonly cell: Tensor },
): { states: Tensor; last: Tensor; cell: Tensor } {
  const { input, hidden, inputBias, hiddenBias } = weights;
  const start = initial === undefined ? [] : [initial.state, initial.cell];
  const [states, last, cell] = record(lstmOp, [x, input, hidden, inputBias, hiddenBias, ...start], {});
  return { states, last, cell };
}

const lstmOp: Op = {
  name: 'lstm',
  infer: (inputs) => {
    const { steps, batch, size } = recurrentSizes(inputs, 4);
    const state = { shape: [batch, size], dtype: inputs[0].dtype };
    return [{ shape: [steps, batch, size], dtype: inputs[0].dtype }, state, state];
  },
  lower: (to, inputs, node) =>
    node.inputs[0].dtype === 'f32' && to.device === 'cpu'
      ? lowerFused(to, inputs, node)
      : lowerUnrolled(to, inputs, node),
  gradient: (node, given) => {
    const hasInitial = node.inputs.length === 7;
    const flags = { hasInitial, hasStates: !!given[0], hasLast: !!given[1], hasCell: !!given[2] };
    const inputs = [...node.inputs, node.outputs[0], ...given.filter((g) => g !== undefined)];
    const gradients = record(lstmGradientOp, inputs, flags);
    return hasInitial ? gradients : gradients.slice(0, 5);
  },
};

/** ONNX's LSTM wants the gates in the order i, o, f, c. */
function lowerFused(to: Lowering, inputs: readonly string[], node: Node): string[] {
  const [x, input, hidden, inputBias, hiddenBias, state, cell] = inputs;
  const { size } = recurrentSizes(node.inputs, 4);
  const order = to.ints(rowsOf([0, 3, 1, 2], size));
  const reordered = (name: string): string => to.op('Gather', [name, order], { axis: 0 });
  const leading = (name: string): string => to.op('Unsqueeze', [name, to.ints([0])]);
  const bias = to.op('Concat', [reordered(inputBias), reordered(hiddenBias)], { axis: 0 });
  const operands = [x, leading(reordered(input)), leading(reordered(hidden)), leading(bias)];
  if (state !== undefined) operands.push('', leading(state), leading(cell));
  const [states, last, lastCell] = to.graph.multi('LSTM', operands, 3, { hidden_size: size });
  const squeeze = (name: string, axis: number): string => to.op('Squeeze', [name, to.ints([axis])]);
  return [squeeze(states, 1), squeeze(last, 0), squeeze(lastCell, 0)];
}

function lowerUnrolled(to: Lowering, inputs: readonly string[], node: Node): string[] {
  const { steps, batch, size } = recurrentSizes(node.inputs, 4);
  const [x, input, hidden, inputBias, hiddenBias] = inputs;
  const zeros = (): string => to.zeros(node.inputs[0].dtype, [batch, size]);
  let state = inputs[5] ?? zeros();
  let cell = inputs[6] ?? zeros();
  const states: string[] = [];
  for (const now of to.steps(x, steps)) {
    const fromInput = to.op('Gemm', [now, input, inputBias], { transB: 1 });
    const fromState = to.op('Gemm', [state, hidden, hiddenBias], { transB: 1 });
    const sums = to.op('Add', [fromInput, fromState]);
    const [i, f, g, o] = to.graph.multi('Split', [sums], 4, { axis: -1, num_outputs: 4 });
    const kept = to.op('Mul', [to.op('Sigmoid', [f]), cell]);
    cell = to.op('Add', [kept, to.op('Mul', [to.op('Sigmoid', [i]), to.op('Tanh', [g])])]);
    state = to.op('Mul', [to.op('Sigmoid', [o]), to.op('Tanh', [cell])]);
    states.push(to.op('Unsqueeze', [state, to.ints([0])]));
  }
  return [to.op('Concat', states, { axis: 0 }), state, cell];
}

/**
 * Backward pass. The gates of all steps are recomputed at once from the saved states and the cells by their
 * elementwise recurrence; then per step, with dc the gradient of the cell,
 * dc += dh·o(1 − tanh²c), gates' gradients dc·[g·i(1−i) | c_prev·f(1−f) | i(1−g²)] and dh·tanh(c)·o(1−o),
 * dh_prev = gates·W_h, dc_prev = dc·f.
 */
const lstmGradientOp: Op<{ hasInitial: boolean; hasStates: boolean; hasLast: boolean; hasCell: boolean }> = {
  name: 'lstmGradient',
  infer: (inputs, { hasInitial }) => {
    const { batch, size } = recurrentSizes(inputs.slice(0, hasInitial ? 7 : 5), 4);
    const state = { shape: [batch, size], dtype: inputs[0].dtype };
    return [...inputs.slice(0, 5), state, state];
  },
  lower: (to, inputs, node) => {
    const { hasInitial, hasStates, hasLast, hasCell } = node.attributes as Record<string, boolean>;
    const { steps, batch, width, size } = recurrentSizes(node.inputs.slice(0, hasInitial ? 7 : 5), 4);
    const { dtype } = node.inputs[0];
    const [x, input, hidden, inputBias, hiddenBias] = inputs;
    const rest = inputs.slice(5);
    const zeros = (): string => to.zeros(dtype, [batch, size]);
    const [state0, cell0] = hasInitial ? [rest.shift()!, rest.shift()!] : [zeros(), zeros()];
    const states = rest.shift()!;
    const dStates = hasStates ? rest.shift()! : undefined;
    const dLast = hasLast ? rest.shift()! : undefined;
    const dCell = hasCell ? rest.shift()! : undefined;

    const rows = multiplyDims(steps, batch);
    const flat = (name: string, last: Dim): string => to.reshape(name, [steps, batch, last], [rows, last]);
    const one = to.scalar(dtype, 1);
    const mul = (a: string, b: string): string => to.op('Mul', [a, b]);
    const complement = (a: string): string => to.op('Sub', [one, a]);
    const perStep = (name: string, last: number): string[] =>
      to
        .slices(to.reshape(name, [rows, last], [steps, batch, last]), steps)
        .map((part) => to.reshape(part, [1, batch, last], [batch, last]));

    // Gates again, all steps at once: [T·B, H] each.
    const before = to.op(
      'Concat',
      [
        to.op('Unsqueeze', [state0, to.ints([0])]),
        ...(steps > 1 ? [to.op('Slice', [states, to.ints([0]), to.ints([steps - 1]), to.ints([0])])] : []),
      ],
      { axis: 0 },
    );
    const x2 = flat(x, width);
    const h2 = flat(before, size);
    const fromInput = to.op('Gemm', [x2, input, to.op('Add', [inputBias, hiddenBias])], { transB: 1 });
    const sums = to.op('Gemm', [h2, hidden, fromInput], { transB: 1 });
    const [iSum, fSum, gSum, oSum] = to.graph.multi('Split', [sums], 4, { axis: 1, num_outputs: 4 });
    const [i, f, o] = [iSum, fSum, oSum].map((name) => to.op('Sigmoid', [name]));
    const g = to.op('Tanh', [gSum]);
    const added = perStep(mul(i, g), size);
    const forget = perStep(f, size);
    const cells = [cell0];
    for (let t = 0; t < steps; t++) cells.push(to.op('Add', [mul(forget[t], cells[t]), added[t]]));
    const cellBefore = to.op('Concat', cells.slice(0, -1), { axis: 0 });
    const tanhCell = to.op('Tanh', [to.op('Concat', cells.slice(1), { axis: 0 })]);

    const ofCell = perStep(
      to.op(
        'Concat',
        [mul(g, mul(i, complement(i))), mul(cellBefore, mul(f, complement(f))), mul(i, complement(mul(g, g)))],
        { axis: 1 },
      ),
      3 * size,
    );
    const ofOutput = perStep(mul(tanhCell, mul(o, complement(o))), size);
    const toCell = perStep(mul(o, complement(mul(tanhCell, tanhCell))), size);
    const dStateOf = dStates === undefined ? [] : perStep(dStates, size);

    // Backwards through time.
    const products: string[] = [];
    let dh = dLast;
    let dc = dCell;
    for (let t = steps - 1; t >= 0; t--) {
      if (dStates !== undefined) dh = dh === undefined ? dStateOf[t] : to.op('Add', [dh, dStateOf[t]]);
      if (dh !== undefined) {
        const through = mul(dh, toCell[t]);
        dc = dc === undefined ? through : to.op('Add', [dc, through]);
      }
      const ofGates = mul(to.op('Concat', [dc!, dc!, dc!], { axis: 1 }), ofCell[t]);
      const ofO = dh === undefined ? zeros() : mul(dh, ofOutput[t]);
      const product = to.op('Concat', [ofGates, ofO], { axis: 1 }); // [B, 4H]
      products.unshift(product);
      dh = to.op('MatMul', [product, hidden]);
      dc = mul(dc!, forget[t]);
    }

    // Weights, all steps at once.
    const all = to.op('Concat', products, { axis: 0 }); // [T·B, 4H]
    const bias = to.columnSums(all, rows, 4 * size, dtype);
    return [
      to.reshape(to.op('MatMul', [all, input]), [rows, width], [steps, batch, width]),
      to.matmul(all, x2, dtype, { transA: true }),
      to.matmul(all, h2, dtype, { transA: true }),
      bias,
      bias,
      dh!,
      dc!,
    ];
  },
};

/** Row numbers that put blocks of `size` rows into another order. */
function rowsOf(blocks: readonly number[], size: number): number[] {
  return blocks.flatMap((block) => Array.from({ length: size }, (_, i) => block * size + i));
}
