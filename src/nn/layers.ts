import * as t from '../tensor/index.js';
import {
  add,
  constant,
  type DimLike,
  dropout,
  expandDims,
  gather,
  gru as gruLayer,
  type Initializer,
  lstm as lstmLayer,
  mul,
  layerNorm as normalize,
  type Parameters,
  type RecurrentWeights,
  range,
  relu,
  type Tensor,
} from '../tensor/index.js';

/** Options of `linear`. */
export interface LinearOptions {
  /** Default true. */
  readonly bias?: boolean;
  /** Default PyTorch's U(±1/√in). */
  readonly weight?: Initializer;
  /** Start of the bias. Default PyTorch's U(±1/√in). */
  readonly biasStart?: Initializer;
}

/**
 * x·Wᵀ + b over the last axis, parameters `weight` [out, in] and `bias` [out]. With an adapter, W + α/r·B·A instead of W,
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

/** Widths and activation of `mlp`. */
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

/** Options of `embedding`. */
export interface EmbeddingOptions {
  /** Id whose row starts at zero. */
  readonly padding?: number;
  /** Factor of the looked-up rows, √width in a Transformer. Default 1. */
  readonly scale?: number;
  readonly weight?: Initializer;
}

/** Rows of `weight` [vocabulary, width] for i64 ids. */
export function embedding(
  p: Parameters,
  ids: Tensor,
  vocabulary: number,
  width: number,
  options: EmbeddingOptions = {},
): Tensor {
  const { padding, scale = 1, weight = embeddingNormal(padding) } = options;
  const rows = gather(p.get('weight', [vocabulary, width], weight), ids);
  return scale === 1 ? rows : mul(rows, scale);
}

/**
 * Sinusoidal positions as a constant [positions, width]: columns sin(pos·ω_i), then cos(pos·ω_i), for pos = `first`,
 * `first` + 1, …, with ω_i = 10000^(−i/(width/2 − 1)) in fairseq's form and 10000^(−i/(width/2)) in Marian's.
 */
export function sinusoidalTable(
  positions: number,
  width: number,
  { first = 0, form = 'fairseq', dtype = 'f32' }: SinusoidalOptions = {},
): Tensor {
  if (width % 2 !== 0 || width < 4) throw new RangeError(`sinusoidal positions need an even width ≥ 4, got ${width}`);
  const half = width / 2;
  const steps = form === 'fairseq' ? half - 1 : half;
  const values = new Float64Array(positions * width);
  for (let row = 0; row < positions; row++) {
    for (let i = 0; i < half; i++) {
      const angle = (first + row) * 10000 ** (-i / steps);
      values[row * width + i] = Math.sin(angle);
      values[row * width + half + i] = Math.cos(angle);
    }
  }
  return constant(values, dtype, [positions, width]);
}

/** First position, and form of the wavelengths. */
export interface SinusoidalOptions {
  /** Position of the first row. Default 0. */
  readonly first?: number;
  /** Default fairseq. */
  readonly form?: 'fairseq' | 'marian';
  readonly dtype?: 'f32' | 'f64';
}

/** Adds the first T rows of a position table to a time-major tensor [T, B, D]. */
export function addPositions(x: Tensor, table: Tensor, steps: DimLike = x.shape[0]): Tensor {
  return add(x, expandDims(gather(table, range(steps)), 1));
}

/** 0 everywhere. */
export const zeros: Initializer = (values) => values.fill(0);
/** 1 everywhere. */
export const ones: Initializer = (values) => values.fill(1);

/** U(low, high) */
export function uniform(low: number, high: number): Initializer {
  return (values, _, random) => random.fillUniform(values, low, high);
}

/** N(mean, std²) */
export function normal(mean: number, std: number): Initializer {
  return (values, _, random) => random.fillNormal(values, mean, std);
}

/** U(±gain·√(6/(fan_in + fan_out))) for a weight [out, in] (Glorot & Bengio 2010); fairseq's linear layers. */
export function xavierUniform(gain = 1): Initializer {
  return (values, shape, random) => {
    const bound = gain * Math.sqrt(6 / (fanIn(shape) + shape[0]));
    random.fillUniform(values, -bound, bound);
  };
}

/** N(0, gain²·2/(fan_in + fan_out)) */
export function xavierNormal(gain = 1): Initializer {
  return (values, shape, random) => {
    random.fillNormal(values, 0, gain * Math.sqrt(2 / (fanIn(shape) + shape[0])));
  };
}

/** U(±1/√fan_in): what `torch.nn.Linear` starts its weight with (kaiming_uniform with a = √5). */
export const torchLinear: Initializer = (values, shape, random) => {
  const bound = 1 / Math.sqrt(fanIn(shape));
  random.fillUniform(values, -bound, bound);
};

/** U(±1/√fan): for biases of `torch.nn.Linear` and all parameters of `torch.nn.GRU` (fan = hidden size). */
export function torchUniform(fan: number): Initializer {
  return uniform(-1 / Math.sqrt(fan), 1 / Math.sqrt(fan));
}

/** N(0, 1/width) with a row of zeros for padding: fairseq's embeddings. */
export function embeddingNormal(padding?: number): Initializer {
  return (values, [, width], random) => {
    random.fillNormal(values, 0, 1 / Math.sqrt(width));
    if (padding !== undefined) values.fill(0, padding * width, (padding + 1) * width);
  };
}

const fanIn = (shape: readonly number[]): number => shape.slice(1).reduce((a, b) => a * b, 1);

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
