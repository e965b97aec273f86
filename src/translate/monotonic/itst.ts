import { linear } from '../../nn/index.js';
import type { Arena } from '../../optim/index.js';
import {
  abs,
  add,
  and,
  attention,
  cast,
  concat,
  cumsum,
  div,
  dropout,
  exp,
  greater,
  LOWEST,
  less,
  log,
  maximum,
  mean,
  minimum,
  mul,
  neg,
  type Parameters,
  range,
  reshape,
  slice,
  softmax,
  sqrt,
  square,
  stopGradient,
  sub,
  sum,
  type Tensor,
  where,
} from '../../tensor/index.js';
import type { Size, SourceAttention } from '../decode/steps.js';
import { decode, encode, type Sources } from '../model/transformer.js';
import { attendedBy, energies, movingEnergies, movingKeys, movingQueries, shared } from './attention.js';
import type { MonotonicModel } from './config.js';
import type { Lengths } from './loss.js';

/*
 * Information-transport-based simultaneous translation (Zhang and Feng 2022). In each layer of the decoder source token j
 * transports T_ij = σ(energy) ∈ (0, 1) units of information to target token i, which needs one unit in all. The attention
 * is weighted by it, α_ij ∝ softmax(u)_ij·T_ij, and a token is written once it has received δ.
 *
 * Names: B sentences, H heads, T target and S source positions, L layers, width D.
 */

export interface TransportOptions {
  /** i64 [B]: source tokens of each sentence, including its end. */
  readonly lengths: Tensor;
  /** δ [B]: a target token sees the source until it, or one before it, has received this much. */
  readonly thresholds: Tensor;
}

/** The decoder's states [T, B, D], and log T of every layer, [B, L, T, S], `LOWEST` on padding. */
export function translateByTransport(
  p: Parameters,
  model: MonotonicModel,
  source: Sources,
  previous: Tensor,
  thresholds: Tensor,
): { readonly states: Tensor; readonly information: Tensor } {
  const memory = encode(p, model, source); // [S, B, D]
  const layers: Tensor[] = [];
  const states = decode(p, model, previous, (cross, x) => {
    const attended = transportAttention(cross, x, memory, model, { lengths: source.lengths, thresholds });
    layers.push(attended.information);
    return attended.found;
  });
  return { states, information: concat(layers, 1) };
}

/** What states x [T, B, D] find in `memory` [S, B, D], as [T, B, D], and log T, [B, 1, T, S]. */
export function transportAttention(
  p: Parameters,
  x: Tensor,
  memory: Tensor,
  model: MonotonicModel,
  { lengths, thresholds }: TransportOptions,
): { readonly found: Tensor; readonly information: Tensor } {
  const [source, batch] = memory.shape;
  const { heads, width, attentionDropout } = model;
  const energy = movingEnergies(p, movingQueries(p, x, model), movingKeys(p, memory, model), model); // [B, 1, T, S]
  const real = less(range(source), reshape(lengths, [batch, 1, 1, 1]));
  const information = where(real, logSigmoid(energy), LOWEST);

  const queries = linear(p.under('q_proj'), x, width, shared);
  const keys = linear(p.under('k_proj'), memory, width, shared);
  const seen = and(real, readUntil(exp(stopGradient(information)), reshape(thresholds, [batch, 1, 1, 1])));
  const weighted = add(energies(queries, keys, heads), information); // [B, H, T, S]
  const weights = dropout(softmax(where(seen, weighted, LOWEST)), attentionDropout);
  return { found: attendedBy(p, weights, memory, model), information };
}

/**
 * Queries and keys of the information become those of the attention. From random ones information is the same for all
 * target tokens, and stays so for a long time: the attention alone can learn where to look.
 */
export function copyAttentionToInformation(arena: Arena): void {
  for (const name of arena.names.filter((one) => /\.monotonic_[qk]_proj\./.test(one))) {
    arena.value(name).set(arena.value(name.replace('.monotonic_', '.')) as never);
  }
}

/**
 * What is read when each target token is written, [B, 1, T, S]: source tokens before which less than δ had been received,
 * by this target token or an earlier one, since what is read stays read.
 */
function readUntil(information: Tensor, thresholds: Tensor): Tensor {
  const lacking = cast(less(cumsum(information, { exclusive: true }), thresholds), information.dtype);
  return greater(cumsum(lacking, { axis: 2 }), 0);
}

/** log σ(x), without overflow. */
export function logSigmoid(x: Tensor): Tensor {
  return sub(minimum(x, 0), log(add(exp(neg(abs(x))), 1)));
}

/**
 * The two further losses of each sentence, both [B], from log T [B, L, T, S], with the shares T̂_ij = T_ij/Σ_k T_ik of
 * what a target token receives:
 *
 * - `cost`: Σ_ij T̂_ij · max(|j − i·|x|/|y|| − 1, 0) / (|x|·|y|), i and j from 1, as the mean over the layers: information
 *   from far off the diagonal is expensive.
 * - `distance`: ‖T − T̂‖₂ over all layers: each target token should receive one unit, in which case T = T̂.
 */
export function transportLosses(
  information: Tensor,
  lengths: Lengths,
): { readonly cost: Tensor; readonly distance: Tensor } {
  const { dtype } = information;
  const [batch, , steps, source] = information.shape;
  const each = (x: Tensor): Tensor => reshape(cast(x, dtype), [batch, 1, 1, 1]);
  const [x, y] = [each(lengths.source), each(lengths.target)];
  const places = (size: typeof steps): Tensor => add(range(size, dtype as 'f32' | 'f64'), 1);
  const diagonal = mul(reshape(places(steps), [steps, 1]), div(x, y)); // [B, 1, T, 1]
  const away = div(maximum(sub(abs(sub(places(source), diagonal)), 1), 0), mul(x, y)); // [B, 1, T, S]
  const shares = softmax(information);
  const real = cast(less(range(steps), reshape(lengths.target, [batch, 1, 1])), dtype);
  const perLayer = (values: Tensor): Tensor => sum(mul(sum(values, { axes: [-1] }), real), { axes: [2] }); // [B, L]
  const squared = sum(perLayer(square(sub(exp(information), shares))), { axes: [1] });
  return {
    cost: mean(perLayer(mul(shares, away)), { axes: [1] }),
    distance: sqrt(maximum(squared, SMALLEST)), // √ has no derivative at 0
  };
}

/** Square of a distance that counts as none. */
const SMALLEST = 1e-12;

/**
 * The same attention, step by step, over all source tokens that are visible. Kept of the source, [S, B, D]:
 * `source.moving.<l>` (the keys that T is made of), `source.keys.<l>` and `source.values.<l>`. `readiness` [B] is output:
 * the information that the next token has received in the layer in which it is least.
 */
export function transportSteps(model: MonotonicModel): SourceAttention {
  const { width, heads } = model;
  const project = (p: Parameters, name: string, x: Tensor): Tensor => linear(p.under(name), x, width);
  return {
    source: ['source.moving', 'source.keys', 'source.values'],
    target: [],
    oneByOne: false,
    inputs: {},
    kept: (p, x, [count, batch]) => {
      const encoded = reshape(x, [count, batch, width]);
      return [movingKeys(p, encoded, model), project(p, 'k_proj', encoded), project(p, 'v_proj', encoded)];
    },
    over: (inputs, [added, batch]: Size) => {
      const [source] = inputs['source.keys.0'].shape;
      const visible = less(range(source), reshape(inputs.visible, [batch, 1, 1, 1])); // [B, 1, 1, S]
      const received: Tensor[] = [];
      return {
        layer: (l) => (p, states) => {
          const x = reshape(states, [added, batch, width]);
          const energy = movingEnergies(p, movingQueries(p, x, model), inputs[`source.moving.${l}`], model); // [B, 1, N, S]
          const information = where(visible, logSigmoid(energy), LOWEST);
          received.push(reshape(sum(exp(slice(information, 2, -1, 1)), { axes: [-1] }), [batch]));
          const found = attention(project(p, 'q_proj', x), inputs[`source.keys.${l}`], inputs[`source.values.${l}`], {
            heads,
            bias: information,
          });
          return linear(p.under('out_proj'), reshape(found, states.shape), width);
        },
        outputs: () => ({ readiness: received.reduce((a, b) => minimum(a, b)) }),
      };
    },
  };
}
