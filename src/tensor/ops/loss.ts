import { formatShape, sameDim } from '../dim.js';
import type { Lowering } from '../lowering.js';
import { describeType, Mismatch, type Op, record, type Tensor } from '../tensor.js';
import { square, sub } from './elementwise.js';
import { mean } from './reduce.js';

export interface CrossEntropyOptions {
  /** ε: mass taken from the target. Default 0. */
  readonly smoothing?: number;
  /**
   * Where the mass goes: `fairseq` spreads ε/(V−1) over the other classes, `torch` ε/V over all.
   * Default `fairseq`.
   */
  readonly form?: 'fairseq' | 'torch';
}

/**
 * Label-smoothed cross-entropy of each row, −Σ_v q_v log softmax(logits)_v, in nats: [rows, V] and i64 targets [rows]
 * give [rows]. Padding is the caller's: weight the rows.
 */
export function crossEntropy(logits: Tensor, targets: Tensor, options: CrossEntropyOptions = {}): Tensor {
  return record(crossEntropyOp, [logits, targets], smoothingOf(options))[0];
}

export interface Smoothing {
  readonly smoothing: number;
  readonly form: 'fairseq' | 'torch';
  readonly [key: string]: unknown;
}

/** The options with their defaults, checked. */
export function smoothingOf({ smoothing = 0, form = 'fairseq' }: CrossEntropyOptions): Smoothing {
  if (!(smoothing >= 0 && smoothing < 1)) throw new RangeError(`smoothing must lie in [0, 1), got ${smoothing}`);
  return { smoothing, form };
}

/** Mean of the squared differences. */
export function meanSquaredError(prediction: Tensor, target: Tensor): Tensor {
  return mean(square(sub(prediction, target)));
}

/** q of a class that is not the target, and what the target has on top of it. */
export function masses({ smoothing, form }: Smoothing, classes: number): { other: number; extra: number } {
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
const crossEntropyOp: Op<Smoothing> = {
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
    const { other, extra } = masses(attributes as Smoothing, classes);
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
    record(crossEntropyGradientOp, [probabilities, targets, g!], attributes as Smoothing)[0],
    undefined,
  ],
};

/** g·(p − q): the uniform part everywhere, then the target's element replaced, which the runtime does in place. */
const crossEntropyGradientOp: Op<Smoothing> = {
  name: 'crossEntropyGradient',
  infer: ([probabilities]) => {
    if (typeof probabilities.shape[1] !== 'number')
      throw new Mismatch(`no static classes in ${formatShape(probabilities.shape)}`);
    return [probabilities];
  },
  lower: (to, [probabilities, targets, g], { attributes, inputs: [p] }) => {
    const [rows, classes] = p.shape as [(typeof p.shape)[0], number];
    const { other, extra } = masses(attributes as Smoothing, classes);
    const weight = to.reshape(g, [rows], [rows, 1]);
    const centred = other === 0 ? probabilities : to.op('Sub', [probabilities, to.scalar(p.dtype, other)]);
    const weighted = to.op('Mul', [centred, weight]);
    const column = to.op('Unsqueeze', [targets, to.ints([1])]);
    const chosen = to.op('GatherElements', [weighted, column], { axis: 1 });
    const moved = to.op('Sub', [chosen, extra === 1 ? weight : to.op('Mul', [weight, to.scalar(p.dtype, extra)])]);
    return [to.op('ScatterElements', [weighted, column, moved], { axis: 1 })];
  },
};
