import { linear, residual, xavierUniform, zeros } from '../../nn/index.js';
import { attention, concat, type Dim, gelu, type Parameters, relu, reshape, type Tensor } from '../../tensor/index.js';
import type { TranslationModel } from '../model/index.js';

/** Keys and values of an attention, [T, B, D] each. */
export interface KeyValues {
  readonly keys: Tensor;
  readonly values: Tensor;
}

/*
 * The blocks of `nn.encoderLayer` and `nn.decoderLayer` with the same parameters, without dropout, in
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
  const kept: KeyValues[] = [];
  const states = residual(p.under('self_attn_layer_norm'), x, { norm: model.norm }, (h) => {
    const fresh = keyValues(own, h, size, model);
    kept.push(fresh);
    const keys = past === undefined ? fresh.keys : concat([past.keys, fresh.keys], 0); // [T + N, B, D]
    const values = past === undefined ? fresh.values : concat([past.values, fresh.values], 0);
    return attend(own, h, size, { keys, values }, bias, model);
  });
  return { states, fresh: kept[0] };
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
  return residual(p.under('encoder_attn_layer_norm'), x, { norm: model.norm }, (h) =>
    attend(p.under('encoder_attn'), h, size, source, bias, model),
  );
}

export function feedForward(p: Parameters, x: Tensor, { ffn, width, norm, activation }: TranslationModel): Tensor {
  return residual(p.under('final_layer_norm'), x, { norm }, (h) => {
    const hidden = linear(p.under('fc1'), h, ffn, start);
    return linear(p.under('fc2'), activation === 'gelu' ? gelu(hidden) : relu(hidden), width, start);
  });
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
