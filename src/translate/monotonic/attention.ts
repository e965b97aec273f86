import { linear, normal, xavierUniform, zeros } from '../../nn/index.js';
import {
  add,
  and,
  attention,
  attentionBias,
  broadcastTo,
  cast,
  concat,
  cumsum,
  type Dim,
  div,
  dropout,
  equal,
  exp,
  expandDims,
  fill,
  greaterEqual,
  i64,
  LOWEST,
  less,
  lessEqual,
  matmul,
  max,
  maximum,
  minimum,
  monotonicAlignment,
  mul,
  multiplyDims,
  neg,
  normalNoise,
  or,
  type Parameters,
  range,
  reshape,
  sigmoid,
  slice,
  stopGradient,
  sub,
  sum,
  type Tensor,
  transpose,
  where,
} from '../../tensor/index.js';
import { newName } from '../decode/step-model.js';
import type { SourceAttention } from '../decode/steps.js';
import { decode, encode, type Sources } from '../model/transformer.js';
import { lookback, type MonotonicModel, movingHeads } from './config.js';

/*
 * A decoder whose attention over the source has heads that only move forward: in expectation over where they stop, as
 * for training, and with heads that actually stop, for decoding (`stoppingAttention`).
 *
 * Names: B sentences, H heads, M of them that move (`movingHeads`), T target and S source positions, width D.
 */

/**
 * The decoder's states [T, B, D] in expectation over where its heads stop, and the source tokens that each moving head
 * of each layer is expected to have read at each step, [B, L·M, T]. The parameters are those of `model/transformer.ts`,
 * plus in each `encoder_attn`: `monotonic_q_proj`, `monotonic_k_proj` and `monotonic_bias`; `mma-h` has no
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
  const delays: Tensor[] = [];
  const states = decode(p, model, previous, (cross, x) => {
    const crossed = monotonicAttention(cross, x, memory, model, { lengths: source.lengths, noise });
    delays.push(crossed.delays);
    return crossed.found;
  });
  return { states, delays: concat(delays, 1) };
}

export interface MonotonicAttentionOptions {
  /** i64 [B]: source tokens of each sentence, including its end. */
  readonly lengths: Tensor;
  /** Add standard normal noise to the energies, which teaches the heads to be decisive. */
  readonly noise: boolean;
}

/**
 * States x [T, B, D] attend over `memory` [S, B, D]. Returns what they find, [T, B, D], and how many source tokens each
 * moving head is expected to have read at each step, g_i = Σ_j j·α_ij with j from 1, as [B, M, T].
 */
export function monotonicAttention(
  p: Parameters,
  x: Tensor,
  memory: Tensor,
  model: MonotonicModel,
  { lengths, noise }: MonotonicAttentionOptions,
): { readonly found: Tensor; readonly delays: Tensor } {
  const [steps, batch] = x.shape;
  const [source] = memory.shape;
  const { attentionDropout } = model;
  const moving = movingHeads(model);
  const alpha = expectedAlignment(p, x, memory, model, { lengths, noise }); // [B, M, T, S]

  const weights = lookback(model) ? expectedLookback(alpha, softEnergies(p, x, memory, model, lengths)) : alpha; // [B, H, T, S]
  const found = attendedBy(p, dropout(weights, attentionDropout), memory, model);

  const places = add(range(source, p.dtype), 1);
  const delays = reshape(sum(mul(alpha, places), { axes: [-1] }), [batch, moving, steps]);
  return { found, delays };
}

/** What weights [B, H, T, S] find in `memory` [S, B, D], with the heads side by side: [T, B, D]. */
export function attendedBy(p: Parameters, weights: Tensor, memory: Tensor, { heads, width }: MonotonicModel): Tensor {
  const [batch, , steps, source] = weights.shape;
  const values = byHead(linear(p.under('v_proj'), memory, width, shared), heads); // [B·H, S, D/H]
  const context = matmul(reshape(weights, [multiplyDims(batch, heads), steps, source]), values);
  const joined = reshape(transpose(context, [1, 0, 2]), [steps, batch, width]);
  return linear(p.under('out_proj'), joined, width, out);
}

/** Initial energies of the moving heads: σ(−2) ≈ 0.12, so an untrained head moves about 7 tokens per step. */
const ENERGY_START = -2;

/**
 * Energies of the moving heads: p = σ(energy) is the probability to stop. Queries [T, B, D], keys [S, B, D]; [B, M, T,
 * S].
 */
export function movingEnergies(p: Parameters, queries: Tensor, keys: Tensor, model: MonotonicModel): Tensor {
  const moving = movingHeads(model);
  const bias = p.get('monotonic_bias', [moving], normal(ENERGY_START, 0));
  return add(energies(queries, keys, moving), reshape(bias, [moving, 1, 1]));
}

export function movingQueries(p: Parameters, x: Tensor, { width }: MonotonicModel): Tensor {
  return linear(p.under('monotonic_q_proj'), x, width, shared);
}

export function movingKeys(p: Parameters, memory: Tensor, { width }: MonotonicModel): Tensor {
  return linear(p.under('monotonic_k_proj'), memory, width, shared);
}

/** α [B, M, T, S]: the probability that a head stops at a token. A head that passes all others stops at the last. */
function expectedAlignment(
  p: Parameters,
  x: Tensor,
  memory: Tensor,
  model: MonotonicModel,
  { lengths, noise }: MonotonicAttentionOptions,
): Tensor {
  const energy = movingEnergies(p, movingQueries(p, x, model), movingKeys(p, memory, model), model);
  const [batch, moving, steps, source] = energy.shape;
  const noisy = noise ? add(energy, normalNoise(energy.shape, p.dtype)) : energy;
  const last = reshape(sub(lengths, 1), [batch, 1, 1, 1]);
  const j = range(source);
  const before = cast(less(j, last), p.dtype); // [B, 1, 1, S]
  const stop = add(mul(sigmoid(noisy), before), cast(equal(j, last), p.dtype)); // 1 at the last token, 0 on padding
  const rows = multiplyDims(batch, moving);
  return reshape(monotonicAlignment(reshape(stop, [rows, steps, source])), [batch, moving, steps, source]);
}

/** u [B, H, T, S] of the soft attention, far below all others on padding. */
function softEnergies(p: Parameters, x: Tensor, memory: Tensor, model: MonotonicModel, lengths: Tensor): Tensor {
  const { heads, width } = model;
  const queries = linear(p.under('q_proj'), x, width, shared);
  const keys = linear(p.under('k_proj'), memory, width, shared);
  const padding = attentionBias(x.shape[0], memory.shape[0], { lengths }, p.dtype)!; // [B, 1, 1, S]
  return add(energies(queries, keys, heads), padding);
}

/** Largest difference of soft energies that counts. e^60 and its products with gradients are far from overflowing. */
const RANGE = 60;

/**
 * Infinite lookback (Arivazhagan et al. 2019): a head that stops at k attends softly over all l ≤ k, so that in
 * expectation β_ij = Σ_{k≥j} α_ik·e^{u_ij} / Σ_{l≤k} e^{u_il}. Energies are raised to at most `RANGE` below the largest
 * of their row, which bounds every quotient.
 */
export function expectedLookback(alpha: Tensor, energy: Tensor): Tensor {
  const largest = stopGradient(max(energy, { axes: [-1], keepDims: true }));
  const e = exp(maximum(sub(energy, largest), -RANGE));
  return mul(e, cumsum(div(alpha, cumsum(e)), { reverse: true }));
}

/** Scaled products of queries [T, B, D] and keys [S, B, D], as [B, heads, T, S]. */
export function energies(queries: Tensor, keys: Tensor, heads: number): Tensor {
  const [steps, batch, width] = queries.shape;
  const scale = 1 / Math.sqrt((width as number) / heads);
  const product = matmul(byHead(mul(queries, scale), heads), byHead(keys, heads), { transB: true });
  return reshape(product, [batch, heads, steps, keys.shape[0]]);
}

/** [T, B, D] → [B·heads, T, D/heads] */
function byHead(x: Tensor, heads: number): Tensor {
  const [steps, batch, width] = x.shape as [Dim, Dim, number];
  return transpose(reshape(x, [steps, multiplyDims(batch, heads), width / heads]), [1, 0, 2]);
}

// As `nn.multiHeadAttention` starts them.
export const shared = { weight: xavierUniform(Math.SQRT1_2), biasStart: zeros };
export const out = { weight: xavierUniform(), biasStart: zeros };

/**
 * Attention with heads that stop, one target token at a time.
 *
 * Cached for the source, [S, B, D]: `source.moving.<l>` (keys of the moving heads), `source.keys.<l>` (of the soft
 * attention, if there is one) and `source.values.<l>`. Cached for the target besides keys and values: `decoder.places.<l>`
 * [T, B, D]; the first entries of a row are the source tokens at which the moving heads stand. `ended` i64 [B] is 1
 * where the visible source tokens are all. `needed` [B] is output: the source tokens that the heads have to see, which
 * is more than `visible` if one of them has not found a place to stop.
 */
export function stoppingAttention(model: MonotonicModel): SourceAttention {
  const soft = lookback(model);
  const project = (p: Parameters, name: string, x: Tensor): Tensor => linear(p.under(name), x, model.width);
  return {
    source: ['source.moving', ...(soft ? ['source.keys'] : []), 'source.values'],
    target: ['decoder.places'],
    oneByOne: true,
    inputs: { ended: i64('B') },
    kept: (p, x, [count, batch]) => {
      const encoded = reshape(x, [count, batch, model.width]);
      const keys = soft ? [project(p, 'k_proj', encoded)] : [];
      return [movingKeys(p, encoded, model), ...keys, project(p, 'v_proj', encoded)];
    },
    over: (inputs) => {
      const furthest: Tensor[] = [];
      return {
        layer: (l, outputs) => (p, x) => {
          const { found, places, wanted } = stop(p, x, inputs, l, model);
          outputs[newName(`decoder.places.${l}`)] = widened(places, model);
          furthest.push(wanted);
          return found;
        },
        outputs: () => ({ needed: add(max(concat(furthest, 1), { axes: [1] }), 1) }),
      };
    },
  };
}

/**
 * What states [B, D] find where the heads of layer l stop: at the first token from their last place on for which
 * p ≥ ½, or at the end of the source. A head that finds none stands at the last visible token and wants the next.
 * `places` [B, M] and `wanted` [B, M] count from 0.
 */
function stop(
  p: Parameters,
  states: Tensor,
  inputs: Readonly<Record<string, Tensor>>,
  l: number,
  model: MonotonicModel,
): { readonly found: Tensor; readonly places: Tensor; readonly wanted: Tensor } {
  const { heads, width } = model;
  const moving = movingHeads(model);
  const [keys, values] = [inputs[`source.moving.${l}`], inputs[`source.values.${l}`]]; // [S, B, D]
  const [source, batch] = keys.shape;
  const step = expandDims(states, 0); // [1, B, D]
  const query = movingQueries(p, step, model);
  const energy = reshape(movingEnergies(p, query, keys, model), [batch, moving, source]);

  const j = range(source, 'f32');
  const perSentence = (name: string): Tensor => reshape(cast(inputs[name], 'f32'), [batch, 1, 1]);
  const visible = perSentence('visible');
  const atEnd = and(equal(perSentence('ended'), 1), equal(j, sub(visible, 1)));
  const stops = or(greaterEqual(energy, 0), atEnd); // p = σ(energy) ≥ ½
  const open = and(greaterEqual(j, lastPlaces(inputs[`decoder.places.${l}`], moving)), less(j, visible));
  const wanted = neg(max(where(and(open, stops), neg(j), neg(visible)), { axes: [-1] })); // [B, M]
  const places = minimum(wanted, reshape(sub(visible, 1), [batch, 1]));

  const soft = lookback(model);
  const at = expandDims(places, -1);
  const seen = soft ? lessEqual(j, at) : equal(j, at); // [B, M, S]
  const rows = multiplyDims(batch, heads);
  const bias = broadcastTo(where(seen, fill(0, []), LOWEST), [batch, heads, source]);
  // Every head is its own sentence: each sees another part of the source.
  const apart = (x: Tensor): Tensor => reshape(x, [x.shape[0], rows, width / heads]);
  const context = attention(
    apart(soft ? linear(p.under('q_proj'), step, width) : query),
    apart(soft ? inputs[`source.keys.${l}`] : keys),
    apart(values),
    { heads: 1, bias: reshape(bias, [rows, 1, 1, source]) },
  ); // [1, B·H, D/H]
  return { found: linear(p.under('out_proj'), reshape(context, [batch, width]), width), places, wanted };
}

/** Where the moving heads stopped last, [B, M, 1]; before the first token at 0. */
function lastPlaces(places: Tensor, moving: number): Tensor {
  const [, batch, width] = places.shape;
  const last = slice(concat([fill(0, [1, batch, width]), places], 0), 0, -1, 1); // [1, B, D]
  return reshape(slice(last, 2, 0, moving), [batch, moving, 1]);
}

/** [B, M] as a step [1, B, D] of a cache. */
function widened(places: Tensor, { width }: MonotonicModel): Tensor {
  const [batch, moving] = places.shape as [Tensor['shape'][0], number];
  const rest = width - moving;
  const row = rest === 0 ? places : concat([places, fill(0, [batch, rest])], 1);
  return expandDims(row, 0);
}
