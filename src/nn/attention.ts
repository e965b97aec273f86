import {
  attention,
  dropoutMask,
  type Initializer,
  multiplyDims,
  type Parameters,
  type Tensor,
} from '../tensor/index.js';
import { xavierUniform, zeros } from './initializers.js';
import { lastSize, linear } from './linear.js';

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
