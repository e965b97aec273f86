import { layerNorm, linear, multiHeadAttention, xavierUniform, zeros } from '../../nn/index.js';
import { add, attentionBias, concat, dropout, type Parameters, relu, type Tensor } from '../../tensor/index.js';
import { embed, encode, type Sources } from '../model/transformer.js';
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
    const { heads, dropout: rate, attentionDropout, activationDropout, ffn, width } = model;
    const residual = (norm: string, before: Tensor, block: Tensor): Tensor =>
      layerNorm(layer.under(norm), add(before, dropout(block, rate)));

    const own = multiHeadAttention(layer.under('self_attn'), x, x, { heads, bias: self, dropout: attentionDropout });
    x = residual('self_attn_layer_norm', x, own);

    const options = { lengths: source.lengths, noise };
    const crossed = monotonicAttention(layer.under('encoder_attn'), x, memory, model, options);
    delays.push(crossed.delays);
    x = residual('encoder_attn_layer_norm', x, crossed.found);

    const hidden = dropout(relu(linear(layer.under('fc1'), x, ffn, start)), activationDropout);
    x = residual('final_layer_norm', x, linear(layer.under('fc2'), hidden, width, start));
  }
  return { states: x, delays: concat(delays, 1) };
}

const start = { weight: xavierUniform(), biasStart: zeros };
