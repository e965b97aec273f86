import {
  add,
  attentionBias,
  cast,
  div,
  expandDims,
  less,
  max,
  mean,
  mul,
  range,
  reshape,
  softmax,
  square,
  sub,
  sum,
  type Tensor,
  transpose,
} from '../../tensor/index.js';

export interface Lengths {
  /** |x|, i64 [B], the end of the sentence counted. */
  readonly source: Tensor;
  /** |y|, i64 [B], the end of the sentence counted. */
  readonly target: Tensor;
}

/**
 * The two latency losses of each sentence, both [B], from the expected delays g [B, N, T] of its N moving heads:
 *
 * - `lagging`: the differentiable average lagging of the heads' mean delay, weighted with softmax(g) over the heads (Ma
 *   et al. 2020): the head that is furthest on keeps the others waiting.
 * - `variance`: (1/|y|) Σ_i Var(g_i) over the heads, which keeps them together.
 */
export function latencyLosses(
  delays: Tensor,
  lengths: Lengths,
): { readonly lagging: Tensor; readonly variance: Tensor } {
  const g = transpose(delays, [0, 2, 1]); // [B, T, N]
  const weighted = sum(mul(softmax(g), g), { axes: [-1] }); // [B, T]
  const spread = mean(square(sub(g, mean(g, { axes: [-1], keepDims: true }))), { axes: [-1] });
  return { lagging: differentiableLagging(weighted, lengths), variance: meanOverTarget(spread, lengths.target) };
}

/**
 * DAL (Arivazhagan et al. 2019) of delays g [B, T], as [B]: (1/|y|) Σ_i (g′_i − i/γ) with γ = |y|/|x|, i from 0 and
 * g′_i = max(g_i, g′_i−1 + 1/γ). Unrolled, g′_i − i/γ is the largest g_k − k/γ of all k ≤ i.
 */
export function differentiableLagging(g: Tensor, { source, target }: Lengths): Tensor {
  const [batch, steps] = g.shape;
  const rate = expandDims(div(cast(source, g.dtype), cast(target, g.dtype)), 1); // 1/γ, [B, 1]
  const lags = sub(g, mul(rate, range(steps, g.dtype as 'f32' | 'f64')));
  const past = reshape(attentionBias(steps, steps, { causal: true }, g.dtype)!, [1, steps, steps]);
  const largest = max(add(reshape(lags, [batch, 1, steps]), past), { axes: [-1] }); // [B, T]
  return meanOverTarget(largest, target);
}

/** Mean over the steps of [B, T] that are not padding. */
function meanOverTarget(x: Tensor, lengths: Tensor): Tensor {
  const real = cast(less(range(x.shape[1]), expandDims(lengths, 1)), x.dtype); // [B, T]
  return div(sum(mul(x, real), { axes: [1] }), cast(lengths, x.dtype));
}
