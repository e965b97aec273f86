import { add, dropout, type Parameters, relu, type Tensor } from '../tensor/index.js';
import { multiHeadAttention } from './attention.js';
import { xavierUniform, zeros } from './initializers.js';
import { layerNorm } from './layer-norm.js';
import { lastSize, linear } from './linear.js';

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

/** Self-attention and feed-forward (Vaswani et al. 2017) over [T, B, D]; `bias` says who sees whom. */
export function encoderLayer(
  p: Parameters,
  x: Tensor,
  bias: Tensor | undefined,
  options: TransformerLayerOptions,
): Tensor {
  const attended = selfAttention(p, x, bias, options);
  return feedForward(p, attended, options);
}

/** Self-attention, attention over the encoder's output `memory`, feed-forward, over [T, B, D]. */
export function decoderLayer(
  p: Parameters,
  x: Tensor,
  memory: Tensor,
  { self, cross }: { self?: Tensor; cross?: Tensor },
  options: TransformerLayerOptions,
): Tensor {
  const attended = selfAttention(p, x, self, options);
  const translated = residual(p.under('encoder_attn_layer_norm'), attended, options, (h) =>
    multiHeadAttention(p.under('encoder_attn'), h, memory, {
      heads: options.heads,
      bias: cross,
      dropout: options.attentionDropout,
    }),
  );
  return feedForward(p, translated, options);
}

function selfAttention(p: Parameters, x: Tensor, bias: Tensor | undefined, options: TransformerLayerOptions): Tensor {
  return residual(p.under('self_attn_layer_norm'), x, options, (h) =>
    multiHeadAttention(p.under('self_attn'), h, h, { heads: options.heads, bias, dropout: options.attentionDropout }),
  );
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
