import { layerNorm, linear, xavierUniform, zeros } from '../../nn/index.js';
import { add, attention, concat, type Dim, type Parameters, relu, reshape, type Tensor } from '../../tensor/index.js';
import type { TranslationModel } from '../model/index.js';

/** Keys and values of an attention, [T, B, D] each. */
export interface KeyValues {
  readonly keys: Tensor;
  readonly values: Tensor;
}

/*
 * The blocks of `nn.encoderLayer` and `nn.decoderLayer` with the same parameters, post-norm and without dropout, in
 * which the keys and values of earlier steps are given instead of computed. States are matrices [N·B, D], time-major: at
 * one token for each sentence, changes of shape would be a third of the operations.
 */

/** N new steps of B sentences. */
export type Size = readonly [steps: Dim, batch: Dim];

/** Self-attention of new states x over `past` and themselves; `fresh` [N, B, D] is what the next step will need too. */
export function cachedSelfAttention(
  p: Parameters,
  x: Tensor,
  size: Size,
  past: KeyValues | undefined,
  bias: Tensor | undefined,
  model: TranslationModel,
): { readonly states: Tensor; readonly fresh: KeyValues } {
  const own = p.under('self_attn');
  const fresh = keyValues(own, x, size, model);
  const keys = past === undefined ? fresh.keys : concat([past.keys, fresh.keys], 0); // [T + N, B, D]
  const values = past === undefined ? fresh.values : concat([past.values, fresh.values], 0);
  const found = attend(own, x, size, { keys, values }, bias, model);
  return { states: layerNorm(p.under('self_attn_layer_norm'), add(x, found)), fresh };
}

/** Attention of states x over the keys and values of the source. */
export function cachedCrossAttention(
  p: Parameters,
  x: Tensor,
  size: Size,
  source: KeyValues,
  bias: Tensor,
  model: TranslationModel,
): Tensor {
  const found = attend(p.under('encoder_attn'), x, size, source, bias, model);
  return layerNorm(p.under('encoder_attn_layer_norm'), add(x, found));
}

export function feedForward(p: Parameters, x: Tensor, { ffn, width }: TranslationModel): Tensor {
  const hidden = relu(linear(p.under('fc1'), x, ffn, start));
  return layerNorm(p.under('final_layer_norm'), add(x, linear(p.under('fc2'), hidden, width, start)));
}

/** What an attention needs of the states it looks at, [N, B, D]. */
export function keyValues(p: Parameters, x: Tensor, [steps, batch]: Size, { width }: TranslationModel): KeyValues {
  const projected = (name: string): Tensor => reshape(linear(p.under(name), x, width, start), [steps, batch, width]);
  return { keys: projected('k_proj'), values: projected('v_proj') };
}

function attend(
  p: Parameters,
  x: Tensor,
  [steps, batch]: Size,
  { keys, values }: KeyValues,
  bias: Tensor | undefined,
  { width, heads }: TranslationModel,
): Tensor {
  const query = reshape(linear(p.under('q_proj'), x, width, start), [steps, batch, width]);
  const found = attention(query, keys, values, { heads, bias });
  return linear(p.under('out_proj'), reshape(found, x.shape), width, start);
}

const start = { weight: xavierUniform(), biasStart: zeros };
