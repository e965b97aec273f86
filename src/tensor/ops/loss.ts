import { formatShape, sameDim } from '../dim.js';
import type { Lowering } from '../lowering.js';
import { describeType, Mismatch, type Op, record, type Tensor } from '../tensor.js';
import { mul, square, sub } from './elementwise.js';
import { scatterAdd } from './gather.js';
import { matmul } from './matmul.js';
import { mean, sum } from './reduce.js';
import { expandDims, reshape } from './shape.js';

/** Label smoothing of a cross-entropy. */
export interface CrossEntropyOptions {
  /** ε: mass taken from the target. Default 0. */
  readonly smoothing?: number;
  /**
   * How the mass is spread: `fairseq` ε/(V−1) over the other classes, `torch` ε/V over all.
   * Default `fairseq`.
   */
  readonly form?: 'fairseq' | 'torch';
}

/**
 * Label-smoothed cross-entropy of each row, −Σ_v q_v log softmax(logits)_v, in nats: [rows, V] and i64 targets [rows]
 * give [rows]. The caller handles padding by weighting the rows.
 */
export function crossEntropy(logits: Tensor, targets: Tensor, options: CrossEntropyOptions = {}): Tensor {
  return record(crossEntropyOp, [logits, targets], smoothingOf(options))[0];
}

export interface LabelSmoothing {
  readonly smoothing: number;
  readonly form: 'fairseq' | 'torch';
  readonly [key: string]: unknown;
}

/** The options with their defaults, checked. */
function smoothingOf({ smoothing = 0, form = 'fairseq' }: CrossEntropyOptions): LabelSmoothing {
  if (!(smoothing >= 0 && smoothing < 1)) throw new RangeError(`smoothing must lie in [0, 1), got ${smoothing}`);
  return { smoothing, form };
}

/** Mean of the squared differences. */
export function meanSquaredError(prediction: Tensor, target: Tensor): Tensor {
  return mean(square(sub(prediction, target)));
}

/** q of a non-target class, and what the target has in addition. */
function masses({ smoothing, form }: LabelSmoothing, classes: number): { other: number; extra: number } {
  const other = form === 'fairseq' ? smoothing / (classes - 1) : smoothing / classes;
  return { other, extra: form === 'fairseq' ? 1 - smoothing - other : 1 - smoothing };
}

/**
 * log Σ exp l of each row, [rows, 1], as max l − log max p with p the softmax: exact, because max p ≥ 1/V never
 * underflows, and no second [rows, V] tensor of logarithms is made.
 */
function logSumExp(to: Lowering, logits: string, probabilities: string): string {
  const largest = (name: string): string => to.op('ReduceMax', [name, to.ints([1])], { keepdims: 1 });
  return to.op('Sub', [largest(logits), to.op('Log', [largest(probabilities)])]);
}

/** Outputs: the losses, and the probabilities that the gradient needs again. */
const crossEntropyOp: Op<LabelSmoothing> = {
  name: 'crossEntropy',
  infer: ([logits, targets]) => {
    const fits =
      logits.shape.length === 2 &&
      typeof logits.shape[1] === 'number' &&
      targets.shape.length === 1 &&
      targets.dtype === 'i64' &&
      sameDim(logits.shape[0], targets.shape[0]);
    if (!fits) {
      throw new Mismatch(
        `expected logits [rows, V] and i64 targets [rows], got ${describeType(logits)}, ${describeType(targets)}`,
      );
    }
    return [{ shape: [logits.shape[0]], dtype: logits.dtype }, logits];
  },
  lower: (to, [logits, targets], { attributes, inputs: [x] }) => {
    const [rows, classes] = x.shape as [(typeof x.shape)[0], number];
    const { other, extra } = masses(attributes as LabelSmoothing, classes);
    const probabilities = to.op('Softmax', [logits], { axis: -1 });
    const logSum = logSumExp(to, logits, probabilities);
    const column = to.op('Unsqueeze', [targets, to.ints([1])]);
    const chosen = to.op('GatherElements', [logits, column], { axis: 1 });
    const scaled = (name: string, by: number): string =>
      by === 1 ? name : to.op('Mul', [name, to.scalar(x.dtype, by)]);
    // Σ q_v (logSum − l_v) = logSum·Σ q − extra·l_target − other·Σ l_v, and Σ q = 1
    let loss = to.op('Sub', [scaled(logSum, extra + other * classes), scaled(chosen, extra)]);
    if (other !== 0) {
      const ones = to.op('Expand', [to.scalar(x.dtype, other), to.ints([classes, 1])]);
      loss = to.op('Sub', [loss, to.op('MatMul', [logits, ones])]);
    }
    return [to.reshape(loss, [rows, 1], [rows]), probabilities];
  },
  gradient: ({ inputs: [, targets], outputs: [, probabilities], attributes }, [g]) => [
    record(crossEntropyGradientOp, [probabilities, targets, g!], attributes as LabelSmoothing)[0],
    undefined,
  ],
};

/** g·(p − q): the uniform part everywhere, then the target's element replaced, which the runtime does in place. */
const crossEntropyGradientOp: Op<LabelSmoothing> = {
  name: 'crossEntropyGradient',
  infer: ([probabilities]) => {
    if (typeof probabilities.shape[1] !== 'number')
      throw new Mismatch(`no static classes in ${formatShape(probabilities.shape)}`);
    return [probabilities];
  },
  lower: (to, [probabilities, targets, g], { attributes, inputs: [p] }) => {
    const [rows, classes] = p.shape as [(typeof p.shape)[0], number];
    const { other, extra } = masses(attributes as LabelSmoothing, classes);
    const weight = to.reshape(g, [rows], [rows, 1]);
    const centred = other === 0 ? probabilities : to.op('Sub', [probabilities, to.scalar(p.dtype, other)]);
    const weighted = to.op('Mul', [centred, weight]);
    const column = to.op('Unsqueeze', [targets, to.ints([1])]);
    const chosen = to.op('GatherElements', [weighted, column], { axis: 1 });
    const moved = to.op('Sub', [chosen, extra === 1 ? weight : to.op('Mul', [weight, to.scalar(p.dtype, extra)])]);
    return [to.op('ScatterElements', [weighted, column, moved], { axis: 1 })];
  },
};

export interface LinearCrossEntropyOptions extends CrossEntropyOptions {
  /** [V], added to the logits. Default none. */
  readonly bias?: Tensor;
}

/**
 * `crossEntropy(linear(x, weight, bias), targets)` in one operation: x [rows, D], weight [V, D], i64 targets [rows] give
 * the losses [rows]. With a large vocabulary the tensor [rows, V] costs more to pass over than to compute, so here it is
 * written once by the product and once by the softmax, and never scaled, shifted, scattered into or read for a
 * maximum: the logarithm comes from the target's probability. A loss beyond 87 nats, where that probability underflows
 * in f32, is reported as 87.3; its gradient is exact.
 */
export function linearCrossEntropy(
  x: Tensor,
  weight: Tensor,
  targets: Tensor,
  { bias, ...options }: LinearCrossEntropyOptions = {},
): Tensor {
  const inputs = bias === undefined ? [x, weight, targets] : [x, weight, targets, bias];
  return record(linearCrossEntropyOp, inputs, smoothingOf(options))[0];
}

/** Outputs: the losses, and the probabilities that the gradient needs again. */
const linearCrossEntropyOp: Op<LabelSmoothing> = {
  name: 'linearCrossEntropy',
  infer: ([x, weight, targets, bias]) => {
    const [rows, width] = x.shape;
    const [classes, otherWidth] = weight.shape;
    const fits =
      x.shape.length === 2 &&
      weight.shape.length === 2 &&
      targets.shape.length === 1 &&
      targets.dtype === 'i64' &&
      x.dtype === weight.dtype &&
      typeof classes === 'number' &&
      sameDim(width, otherWidth) &&
      sameDim(rows, targets.shape[0]) &&
      (bias === undefined || (bias.dtype === x.dtype && bias.shape.length === 1 && bias.shape[0] === classes));
    if (!fits) {
      const types = [x, weight, targets, ...(bias === undefined ? [] : [bias])].map(describeType).join(', ');
      throw new Mismatch(
        `expected x [rows, D], weight [V, D], i64 targets [rows] and a bias [V], if any, got ${types}`,
      );
    }
    return [
      { shape: [rows], dtype: x.dtype },
      { shape: [rows, classes], dtype: x.dtype },
    ];
  },
  lower: (to, [x, weight, targets, bias], { attributes, inputs: [{ shape, dtype }, { shape: weightShape }] }) => {
    const [rows] = shape;
    const [classes, width] = weightShape as [number, number];
    const { other, extra } = masses(attributes as LabelSmoothing, classes);
    const logits = to.op('Gemm', bias === undefined ? [x, weight] : [x, weight, bias], { transB: 1 }); // [rows, V]
    const probabilities = to.op('Softmax', [logits], { axis: -1 });
    const column = to.op('Unsqueeze', [targets, to.ints([1])]);
    const chosen = (name: string): string => to.op('GatherElements', [name, column], { axis: 1 }); // [rows, 1]
    const safe = to.op('Max', [chosen(probabilities), to.scalar(dtype, dtype === 'f32' ? 1.2e-38 : 1e-300)]);
    let loss = to.op('Neg', [to.op('Log', [safe])]);
    if (other !== 0) {
      // Σ_v q_v (log Σ exp l − l_v) = −log p_t + (1 − extra)·l_t − other·Σ_v l_v, with Σ_v l_v = x·Σ_v w_v + Σ_v b_v
      const weightSum = to.reshape(to.columnSums(weight, classes, width, dtype), [width], [width, 1]);
      const scaled = (name: string, by: number): string => to.op('Mul', [name, to.scalar(dtype, by)]);
      loss = to.op('Add', [loss, scaled(chosen(logits), 1 - extra)]);
      const product = to.op('MatMul', [x, weightSum]);
      const sum = bias === undefined ? product : to.op('Add', [product, to.op('ReduceSum', [bias], { keepdims: 0 })]);
      loss = to.op('Sub', [loss, scaled(sum, other)]);
    }
    return [to.reshape(loss, [rows, 1], [rows]), probabilities];
  },
  gradient: ({ inputs: [x, weight, targets, bias], outputs: [, probabilities], attributes }, [g]) => [
    ...record(linearCrossEntropyGradientOp, [x, weight, targets, probabilities, g!], attributes as LabelSmoothing),
    undefined,
    ...(bias === undefined ? [] : [biasGradient(bias, targets, probabilities, g!, attributes as LabelSmoothing)]),
  ],
};

/** db_v = Σ_i g_i·(P_iv − other) − Σ over the rows whose target is v of extra·g_i */
function biasGradient(
  bias: Tensor,
  targets: Tensor,
  probabilities: Tensor,
  g: Tensor,
  attributes: LabelSmoothing,
): Tensor {
  const [classes] = bias.shape as [number];
  const { other, extra } = masses(attributes, classes);
  const ofAll = reshape(matmul(probabilities, expandDims(g, 1), { transA: true }), [classes]);
  const centred = other === 0 ? ofAll : sub(ofAll, mul(sum(g), other));
  return scatterAdd(centred, targets, mul(g, -extra));
}

/**
 * With P the probabilities and q = other everywhere + extra at the target t:
 * dx_i = g_i·(Σ_v P_iv w_v − other·Σ_v w_v − extra·w_t), dW = Pᵀ(g·x) − other·1⊗Σ_i g_i x_i − scatter_t(extra·g·x).
 */
const linearCrossEntropyGradientOp: Op<LabelSmoothing> = {
  name: 'linearCrossEntropyGradient',
  infer: ([x, weight]) => {
    if (typeof weight.shape[1] !== 'number') throw new Mismatch(`no static width in ${formatShape(weight.shape)}`);
    return [x, weight];
  },
  lower: (
    to,
    [x, weight, targets, probabilities, g],
    { attributes, inputs: [{ shape, dtype }, { shape: weightShape }] },
  ) => {
    const [rows] = shape;
    const [classes, width] = weightShape as [number, number];
    const { other, extra } = masses(attributes as LabelSmoothing, classes);
    const column = to.reshape(g, [rows], [rows, 1]);
    const scaled = (name: string, by: number): string => (by === 1 ? name : to.op('Mul', [name, to.scalar(dtype, by)]));
    const minus = (a: string, b: string): string => to.op('Sub', [a, b]);

    const weighted = to.op('Mul', [x, column]); // g·x, [rows, D]
    const ofTargets = scaled(to.op('Gather', [weight, targets], { axis: 0 }), extra); // [rows, D]
    let dx = minus(to.op('MatMul', [probabilities, weight]), ofTargets);
    // (g·x)ᵀP [D, V], transposed: the runtime would read Pᵀ in short pieces, once for every 128 columns of x.
    const across = to.op('Mul', [to.op('Transpose', [x], { perm: [1, 0] }), to.reshape(g, [rows], [1, rows])]);
    let dWeight = to.op('Transpose', [to.op('MatMul', [across, probabilities])], { perm: [1, 0] }); // [V, D]
    if (other !== 0) {
      dx = minus(dx, scaled(to.columnSums(weight, classes, width, dtype), other));
      dWeight = minus(dWeight, scaled(to.columnSums(weighted, rows, width, dtype), other));
    }
    const moved = to.op('Mul', [weighted, to.scalar(dtype, -extra)]);
    const rowTypes = { indices: { shape: [rows], dtype: 'i64' }, updates: { shape, dtype } } as const;
    return [to.op('Mul', [dx, column]), to.scatterRows(dWeight, targets, moved, rowTypes)];
  },
};
