import * as t from '../tensor/index.js';
import {
  dropout,
  type Initializer,
  layerNorm as normalize,
  type Parameters,
  relu,
  type Tensor,
} from '../tensor/index.js';
import { ones, torchLinear, torchUniform, zeros } from './initializers.js';

export interface LinearOptions {
  /** Default true. */
  readonly bias?: boolean;
  /** Default PyTorch's U(±1/√in). */
  readonly weight?: Initializer;
  /** Start of the bias. Default PyTorch's U(±1/√in). */
  readonly biasStart?: Initializer;
}

/**
 * x·Wᵀ + b over the last axis, parameters `weight` [out, in] and `bias` [out]. With an adapter, W + α/r·B·A in place of W,
 * parameters `lora_A.weight` [r, in] and `lora_B.weight` [out, r], of which B starts at 0.
 */
export function linear(p: Parameters, x: Tensor, out: number, options: LinearOptions = {}): Tensor {
  const size = lastSize(x);
  const weight = p.get('weight', [out, size], options.weight ?? torchLinear);
  const bias = options.bias === false ? undefined : p.get('bias', [out], options.biasStart ?? torchUniform(size));
  const { adapter } = p;
  if (adapter === undefined) return t.linear(x, weight, bias);
  const down = t.linear(x, p.get('lora_A.weight', [adapter.rank, size], torchLinear));
  const up = t.linear(down, p.get('lora_B.weight', [out, adapter.rank], zeros));
  return t.add(t.linear(x, weight, bias), t.mul(up, adapter.alpha / adapter.rank));
}

export interface MlpOptions {
  /** Widths of the hidden layers. */
  readonly hidden: readonly number[];
  readonly out: number;
  /** Default relu. */
  readonly activation?: (x: Tensor) => Tensor;
  /** After each hidden activation. Default 0. */
  readonly dropout?: number;
}

/** Linear layers `0`, `1`, … with an activation between them. */
export function mlp(
  p: Parameters,
  x: Tensor,
  { hidden, out, activation = relu, dropout: rate = 0 }: MlpOptions,
): Tensor {
  const last = hidden.reduce((h, size, i) => dropout(activation(linear(p.under(i), h, size)), rate), x);
  return linear(p.under(hidden.length), last, out);
}

/** The static size of the last axis. */
export function lastSize(x: Tensor): number {
  const size = x.shape.at(-1);
  if (typeof size !== 'number') throw new RangeError(`the last axis must have a static size, got ${size}`);
  return size;
}

/** Layer normalisation over the last axis, parameters `weight` and `bias`. */
export function layerNorm(p: Parameters, x: Tensor, eps = 1e-5): Tensor {
  const size = lastSize(x);
  return normalize(x, p.get('weight', [size], ones), p.get('bias', [size], zeros), eps);
}
