import {
  linear,
  multiHeadAttention,
  residual,
  type TransformerLayerOptions,
  xavierUniform,
  zeros,
} from '../../nn/index.js';
import {
  add,
  broadcastTo,
  type Dim,
  dropout,
  expandDims,
  minimum,
  multiplyDims,
  type Parameters,
  range,
  relu,
  reshape,
  type Tensor,
} from '../../tensor/index.js';
import type { Sources } from './transformer.js';

/**
 * What has been read at every step of the decoder, each as a sentence of its own: sentence b at step i becomes the
 * sentence i·B + b, the first min(i + limit_b + 1, length_b) tokens of it. T times the work of one encoding, which is
 * what Ma et al. (2019) pay for a bidirectional encoder.
 */
export function prefixes({ ids, lengths }: Sources, steps: Dim, limit: Tensor): Sources {
  const [source, batch] = ids.shape;
  const all = multiplyDims(steps, batch);
  const repeated = broadcastTo(expandDims(ids, 1), [source, steps, batch]); // [S, T, B]
  const read = minimum(add(add(expandDims(range(steps), 1), limit), 1), lengths); // [T, B]
  return { ids: reshape(repeated, [source, all]), lengths: reshape(read, [all]) };
}

/**
 * `nn.decoderLayer` with the same parameters, in which each state [T, B, D] attends over a memory of its own: memory
 * [S, T·B, D], and as bias of the attention over it [T·B, 1, 1, S].
 */
export function prefixDecoderLayer(
  p: Parameters,
  x: Tensor,
  memory: Tensor,
  { self, cross }: { self?: Tensor; cross?: Tensor },
  options: TransformerLayerOptions,
  [steps, batch]: readonly [Dim, Dim],
): Tensor {
  const { heads, ffn, attentionDropout, activation = relu, activationDropout = 0 } = options;
  const width = x.shape[2];
  const start = { weight: xavierUniform(), biasStart: zeros };

  const attended = residual(p.under('self_attn_layer_norm'), x, options, (h) =>
    multiHeadAttention(p.under('self_attn'), h, h, { heads, bias: self, dropout: attentionDropout }),
  );
  const translated = residual(p.under('encoder_attn_layer_norm'), attended, options, (h) => {
    const apart = reshape(h, [1, multiplyDims(steps, batch), width]);
    const found = multiHeadAttention(p.under('encoder_attn'), apart, memory, {
      heads,
      bias: cross,
      dropout: attentionDropout,
    });
    return reshape(found, [steps, batch, width]);
  });
  return residual(p.under('final_layer_norm'), translated, options, (h) => {
    const hidden = dropout(activation(linear(p.under('fc1'), h, ffn, start)), activationDropout);
    return linear(p.under('fc2'), hidden, width as number, start);
  });
}
