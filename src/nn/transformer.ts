import {
  add,
  attention,
  dropout,
  dropoutMask,
  type Initializer,
  multiplyDims,
  type Parameters,
  relu,
  type Tensor,
} from '../tensor/index.js';
import { lastSize, layerNorm, linear, xavierUniform, zeros } from './layers.js';

/** Options of `multiHeadAttention`. */
export interface MultiHeadAttentionOptions {
  readonly heads: number;
  /** Additive bias [1 | B, 1, Tq, Tk] from `attentionBias`. */
  readonly bias?: Tensor;
  /** On the attention probabilities. Default 0. */
  readonly dropout?: number;
}

/**
 * Multi-head attention of time-major queries [Tq, B, D] over [Tk, B, D], with the projections `q_proj`, `k_proj`,
 * `v_proj` (Xavier with gain 1/√2, as fairseq starts them when the three have one width) and `out_proj`.
 */
export function multiHeadAttention(
  p: Parameters,
  query: Tensor,
  memory: Tensor,
  { heads, bias, dropout = 0 }: MultiHeadAttentionOptions,
): Tensor {
  const width = lastSize(query);
  const project = (name: string, x: Tensor, weight: Initializer): Tensor =>
    linear(p.under(name), x, width, { weight, biasStart: zeros });
  const shared = xavierUniform(Math.SQRT1_2);
  const q = project('q_proj', query, shared);
  const k = project('k_proj', memory, shared);
  const v = project('v_proj', memory, shared);
  const [queries, batch] = query.shape;
  const mask =
    dropout === 0
      ? undefined
      : dropoutMask([multiplyDims(batch, heads), queries, memory.shape[0]], dropout, query.dtype);
  return project('out_proj', attention(q, k, v, { heads, bias, mask }), xavierUniform());
}

/** Shape of a Transformer layer, the same for encoder and decoder. */
export interface TransformerLayerOptions {
  readonly heads: number;
  /** Width of the feed-forward layer. */
  readonly ffn: number;
  /** Normalise before each block (`pre`) or after its residual sum (`post`, the original). Default `post`. */
  readonly norm?: 'pre' | 'post';
  /** On the output of each block. Default 0. */
  readonly dropout?: number;
  /** On the attention probabilities. Default 0. */
  readonly attentionDropout?: number;
  /** On the hidden units of the feed-forward block. Default 0. */
  readonly activationDropout?: number;
  /** Default relu. */
  readonly activation?: (x: Tensor) => Tensor;
}

/** The result of attending from the states x, in the shape of x; `p` are the parameters of that attention. */
export type Attend = (p: Parameters, x: Tensor) => Tensor;

/**
 * Self-attention and feed-forward (Vaswani et al. 2017) over [T, B, D]. `self` says who sees whom: the bias of plain
 * self-attention, or a replacement for it, whose states may have any shape that ends with D.
 */
export function encoderLayer(
  p: Parameters,
  x: Tensor,
  self: Tensor | Attend | undefined,
  options: TransformerLayerOptions,
): Tensor {
  const attended = attentionBlock(p, 'self_attn', x, selfAttention(self, options), options);
  return feedForward(p, attended, options);
}

/** Self-attention, the given attention over the source `cross`, feed-forward; `self` as in `encoderLayer`. */
export function decoderLayer(
  p: Parameters,
  x: Tensor,
  { self, cross }: { self?: Tensor | Attend; cross: Attend },
  options: TransformerLayerOptions,
): Tensor {
  const attended = attentionBlock(p, 'self_attn', x, selfAttention(self, options), options);
  return feedForward(p, attentionBlock(p, 'encoder_attn', attended, cross, options), options);
}

/** The usual cross-attention: over the encoder's output `memory` [S, B, D], with a bias that hides part of it. */
export function attentionOver(
  memory: Tensor,
  bias: Tensor | undefined,
  { heads, attentionDropout }: TransformerLayerOptions,
): Attend {
  return (p, x) => multiHeadAttention(p, x, memory, { heads, bias, dropout: attentionDropout });
}

function selfAttention(self: Tensor | Attend | undefined, options: TransformerLayerOptions): Attend {
  return typeof self === 'function' ? self : (p, x) => attentionOver(x, self, options)(p, x);
}

function attentionBlock(
  p: Parameters,
  name: string,
  x: Tensor,
  attend: Attend,
  options: TransformerLayerOptions,
): Tensor {
  return residual(p.under(`${name}_layer_norm`), x, options, (h) => attend(p.under(name), h));
}

function feedForward(p: Parameters, x: Tensor, options: TransformerLayerOptions): Tensor {
  const { ffn, activation = relu, activationDropout = 0 } = options;
  const start = { weight: xavierUniform(), biasStart: zeros };
  return residual(p.under('final_layer_norm'), x, options, (h) => {
    const hidden = dropout(activation(linear(p.under('fc1'), h, ffn, start)), activationDropout);
    return linear(p.under('fc2'), hidden, lastSize(x), start);
  });
}

/** norm(x + block(x)) or x + block(norm(x)) */
export function residual(
  p: Parameters,
  x: Tensor,
  { norm = 'post', dropout: rate = 0 }: Pick<TransformerLayerOptions, 'norm' | 'dropout'>,
  block: (x: Tensor) => Tensor,
): Tensor {
  if (norm === 'pre') return add(x, dropout(block(layerNorm(p, x)), rate));
  return layerNorm(p, add(x, dropout(block(x), rate)));
}
