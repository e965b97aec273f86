import { gru, linear } from '../nn/index.js';
import type { InputTypes, Model } from '../optim/index.js';
import { f32, mul, type Parameters, square, sub, sum, type Tensor } from '../tensor/index.js';

export interface NetworkOptions {
  readonly hidden: number;
  readonly layers: number;
  /** T. */
  readonly window: number;
  /** D. */
  readonly columns: number;
  /** K. */
  readonly tasks: number;
}

/** A GRU over the window and a linear output for each task, as programs. */
export interface Network {
  /** `x` [T, B, D]. */
  readonly inputs: InputTypes;
  /** Output `forecasts` [B, K]. */
  readonly forward: Model<InputTypes>;
  /** Further inputs `labels` and `weights`, [B, K]. */
  readonly trainingInputs: InputTypes;
  /** Output `loss` = Σ weights·(forecast − label)². */
  readonly training: Model<InputTypes>;
}

export function createNetwork({ hidden, layers, window, columns, tasks }: NetworkOptions): Network {
  const inputs = { x: f32(window, 'B', columns) };
  const forecasts = (p: Parameters, x: Tensor): Tensor => {
    const { last } = gru(p.under('trunk'), x, { hidden, layers });
    return linear(p.under('output'), last[layers - 1], tasks); // [B, K]
  };
  return {
    inputs,
    forward: (p, { x }) => ({ forecasts: forecasts(p, x) }),
    trainingInputs: { ...inputs, labels: f32('B', tasks), weights: f32('B', tasks) },
    training: (p, { x, labels, weights }) => ({ loss: sum(mul(weights, square(sub(forecasts(p, x), labels)))) }),
  };
}
