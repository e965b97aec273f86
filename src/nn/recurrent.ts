import {
  add,
  broadcastTo,
  cast,
  concat,
  dropout,
  expandDims,
  gru as gruLayer,
  less,
  lstm as lstmLayer,
  mul,
  type Parameters,
  type RecurrentWeights,
  range,
  reshape,
  sub,
  type Tensor,
  takeAlong,
  where,
} from '../tensor/index.js';
import { torchUniform } from './initializers.js';
import { lastSize } from './linear.js';

export interface RecurrentOptions {
  readonly hidden: number;
  readonly layers: number;
  /** Between the layers, not after the last. Default 0. */
  readonly dropout?: number;
  /** Read the steps in both directions and put the two states side by side. Default false. */
  readonly bidirectional?: boolean;
  /** i64 [B]: steps beyond a sample's length give zeros and leave its last state alone. Default: all steps count. */
  readonly lengths?: Tensor;
}

export interface RecurrentOutput {
  /** States of the last layer at every step, [T, B, H] or [T, B, 2H]. */
  readonly states: Tensor;
  /** Last state of every layer (and direction), [B, H] each. */
  readonly last: readonly Tensor[];
}

/** A stack of GRU layers over [T, B, I], with `torch.nn.GRU`'s parameter names and start. */
export function gru(
  p: Parameters,
  x: Tensor,
  options: RecurrentOptions & { readonly initial?: readonly Tensor[] },
): RecurrentOutput {
  return stack(p, x, 3, options, (input, weights, index) => gruLayer(input, weights, options.initial?.[index]));
}

/** A stack of LSTM layers over [T, B, I], with `torch.nn.LSTM`'s parameter names and start. Without `lengths`. */
export function lstm(
  p: Parameters,
  x: Tensor,
  options: Omit<RecurrentOptions, 'lengths'> & { readonly initial?: readonly { state: Tensor; cell: Tensor }[] },
): RecurrentOutput & { readonly cells: readonly Tensor[] } {
  const cells: Tensor[] = [];
  const output = stack(p, x, 4, options, (input, weights, index) => {
    const { states, last, cell } = lstmLayer(input, weights, options.initial?.[index]);
    cells.push(cell);
    return { states, last };
  });
  return { ...output, cells };
}

type Layer = (x: Tensor, weights: RecurrentWeights, index: number) => { states: Tensor; last: Tensor };

function stack(p: Parameters, x: Tensor, gates: number, options: RecurrentOptions, layer: Layer): RecurrentOutput {
  const { hidden, layers, dropout: rate = 0, bidirectional = false, lengths } = options;
  const last: Tensor[] = [];
  let states = x;
  for (let l = 0; l < layers; l++) {
    const input = l === 0 ? states : dropout(states, rate);
    const directions = (bidirectional ? ['', '_reverse'] : ['']).map((suffix) => {
      const weights = weightsOf(p, `l${l}${suffix}`, gates, hidden, lastSize(input));
      const reversed = suffix !== '';
      const read = layer(reversed ? reverse(input, lengths) : input, weights, last.length);
      const all = lengths === undefined ? read.states : zeroBeyond(read.states, lengths);
      last.push(lengths === undefined ? read.last : stateAt(read.states, lengths));
      return reversed ? reverse(all, lengths) : all;
    });
    states = concat(directions, 2);
  }
  return { states, last };
}

function weightsOf(p: Parameters, suffix: string, gates: number, hidden: number, width: number): RecurrentWeights {
  const start = torchUniform(hidden);
  return {
    input: p.get(`weight_ih_${suffix}`, [gates * hidden, width], start),
    hidden: p.get(`weight_hh_${suffix}`, [gates * hidden, hidden], start),
    inputBias: p.get(`bias_ih_${suffix}`, [gates * hidden], start),
    hiddenBias: p.get(`bias_hh_${suffix}`, [gates * hidden], start),
  };
}

/** Steps as a column [T, 1]. */
const steps = (x: Tensor): Tensor => expandDims(range(x.shape[0]), 1);

/** The order of steps turned round, within each sample's length when lengths are given. */
function reverse(x: Tensor, lengths?: Tensor): Tensor {
  const t = steps(x); // [T, 1]
  const from =
    lengths === undefined ? sub((x.shape[0] as number) - 1, t) : where(less(t, lengths), sub(sub(lengths, 1), t), t); // [T, B]
  return takeAlong(x, broadcastTo(expandDims(from, 2), x.shape), 0);
}

function zeroBeyond(states: Tensor, lengths: Tensor): Tensor {
  return mul(states, expandDims(cast(less(steps(states), lengths), states.dtype), 2));
}

/** The state after each sample's last step, [B, H]. */
function stateAt(states: Tensor, lengths: Tensor): Tensor {
  const [, batch, size] = states.shape;
  const at = broadcastTo(reshape(add(lengths, -1), [1, batch, 1]), [1, batch, size]);
  return reshape(takeAlong(states, at, 0), [batch, size]);
}
