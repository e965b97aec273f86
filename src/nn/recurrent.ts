import {
  dropout,
  gru as gruLayer,
  lstm as lstmLayer,
  type Parameters,
  type RecurrentWeights,
  type Tensor,
} from '../tensor/index.js';
import { lastSize, torchUniform } from './layers.js';

/** Size of a recurrent stack. */
export interface RecurrentOptions {
  readonly hidden: number;
  readonly layers: number;
  /** Between the layers, not after the last. Default 0. */
  readonly dropout?: number;
}

/** The states of a recurrent stack. */
export interface RecurrentOutput {
  /** States of the last layer at every step, [T, B, H]. */
  readonly states: Tensor;
  /** Last state of every layer, [B, H] each. */
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

/** A stack of LSTM layers over [T, B, I], with `torch.nn.LSTM`'s parameter names and start. */
export function lstm(
  p: Parameters,
  x: Tensor,
  options: RecurrentOptions & { readonly initial?: readonly { state: Tensor; cell: Tensor }[] },
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

function stack(
  p: Parameters,
  x: Tensor,
  gates: number,
  { hidden, layers, dropout: rate = 0 }: RecurrentOptions,
  layer: Layer,
): RecurrentOutput {
  const last: Tensor[] = [];
  let states = x;
  for (let l = 0; l < layers; l++) {
    const input = l === 0 ? states : dropout(states, rate);
    const read = layer(input, weightsOf(p, `l${l}`, gates, hidden, lastSize(input)), l);
    last.push(read.last);
    states = read.states;
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
