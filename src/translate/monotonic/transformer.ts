import { linear, multiHeadAttention, residual, xavierUniform, zeros } from '../../nn/index.js';
import { attentionBias, concat, dropout, type Parameters, type Tensor } from '../../tensor/index.js';
import { embed, encode, lastNorm, layerOptions, type Sources } from '../model/transformer.js';
import { monotonicAttention } from './attention.js';
import type { MonotonicModel } from './config.js';

/**
 * The decoder's states [T, B, D] in expectation over where its heads stop, and the source tokens that each moving head
 * of each layer is expected to have read at each step, [B, L·M, T]. The parameters are those of `model/transformer.ts`,
 * and in each `encoder_attn` besides: `monotonic_q_proj`, `monotonic_k_proj` and `monotonic_bias`; `mma-h` has no
 * `q_proj` and `k_proj`.
 */
export function translateMonotonically(
  p: Parameters,
  model: MonotonicModel,
  source: Sources,
  previous: Tensor,
  { noise }: { readonly noise: boolean },
): { readonly states: Tensor; readonly delays: Tensor } {
  const memory = encode(p, model, source); // [S, B, D]
  const [steps] = previous.shape;
  const self = attentionBias(steps, steps, { causal: true }, p.dtype)!;
  const delays: Tensor[] = [];
  let x = embed(p, model, 'decoder', previous);
  for (let l = 0; l < model.decoderLayers; l++) {
    const layer = p.under('decoder').under('layers').under(l);
    const block = layerOptions(model);
    const { heads, attentionDropout, activationDropout, ffn, width } = model;
    x = residual(layer.under('self_attn_layer_norm'), x, block, (h) =>
      multiHeadAttention(layer.under('self_attn'), h, h, { heads, bias: self, dropout: attentionDropout }),
    );
    x = residual(layer.under('encoder_attn_layer_norm'), x, block, (h) => {
      const options = { lengths: source.lengths, noise };
      const crossed = monotonicAttention(layer.under('encoder_attn'), h, memory, model, options);
      delays.push(crossed.delays);
      return crossed.found;
    });
    x = residual(layer.under('final_layer_norm'), x, block, (h) => {
      const hidden = dropout(block.activation!(linear(layer.under('fc1'), h, ffn, start)), activationDropout);
      return linear(layer.under('fc2'), hidden, width, start);
    });
  }
  return { states: lastNorm(p, model, 'decoder', x), delays: concat(delays, 1) };
}

const start = { weight: xavierUniform(), biasStart: zeros };
