import { layerNorm, linear, xavierUniform, zeros } from '../../nn/index.js';
import { add, attention, concat, type Parameters, relu, type Tensor } from '../../tensor/index.js';
import type { TranslationModel } from '../model/index.js';

/** Keys and values of an attention, [T, B, D] each. */
export interface KeyValues {
  readonly keys: Tensor;
  readonly values: Tensor;
}

/*
 * The blocks of `nn.encoderLayer` and `nn.decoderLayer` with the same parameters, post-norm and without dropout, in
 * which the keys and values of earlier steps are given instead of computed.
 */

/** Self-attention of new states x [N, B, D] over `past` and themselves; `fresh` is what the next step will need too. */
export function cachedSelfAttention(
  p: Parameters,
  x: Tensor,
  past: KeyValues | undefined,
  bias: Tensor | undefined,
  model: TranslationModel,
): { readonly states: Tensor; readonly fresh: KeyValues } {
  const own = p.under('self_attn');
  const fresh = keyValues(own, x, model);
  const keys = past === undefined ? fresh.keys : concat([past.keys, fresh.keys], 0); // [T + N, B, D]
  const values = past === undefined ? fresh.values : concat([past.values, fresh.values], 0);
  const found = attend(own, x, { keys, values }, bias, model);
  return { states: layerNorm(p.under('self_attn_layer_norm'), add(x, found)), fresh };
}

/** Attention of states [N, B, D] over the keys and values of the source. */
export function cachedCrossAttention(
  p: Parameters,
  x: Tensor,
  source: KeyValues,
  bias: Tensor,
  model: TranslationModel,
): Tensor {
  const found = attend(p.under('encoder_attn'), x, source, bias, model);
  return layerNorm(p.under('encoder_attn_layer_norm'), add(x, found));
}

export function feedForward(p: Parameters, x: Tensor, { ffn, width }: TranslationModel): Tensor {
  const hidden = relu(linear(p.under('fc1'), x, ffn, start));
  return layerNorm(p.under('final_layer_norm'), add(x, linear(p.under('fc2'), hidden, width, start)));
}

/** What an attention needs of the states it looks at. */
export function keyValues(p: Parameters, x: Tensor, { width }: TranslationModel): KeyValues {
  return { keys: linear(p.under('k_proj'), x, width, start), values: linear(p.under('v_proj'), x, width, start) };
}

function attend(
  p: Parameters,
  x: Tensor,
  { keys, values }: KeyValues,
  bias: Tensor | undefined,
  { width, heads }: TranslationModel,
): Tensor {
  const query = linear(p.under('q_proj'), x, width, start);
  return linear(p.under('out_proj'), attention(query, keys, values, { heads, bias }), width, start);
}

const start = { weight: xavierUniform(), biasStart: zeros };
