import { linear } from '../../nn/index.js';
import {
  add,
  and,
  attention,
  broadcastTo,
  cast,
  concat,
  equal,
  expandDims,
  fill,
  greaterEqual,
  i64,
  LOWEST,
  less,
  lessEqual,
  max,
  minimum,
  multiplyDims,
  neg,
  or,
  type Parameters,
  range,
  reshape,
  slice,
  sub,
  type Tensor,
  where,
} from '../../tensor/index.js';
import { newName } from '../decode/cache.js';
import type { SourceAttention } from '../decode/steps.js';
import { movingEnergies, movingKeys, movingQueries } from './attention.js';
import { lookback, type MonotonicModel, movingHeads } from './config.js';
import { momentSteps } from './hmt-steps.js';
import { transportSteps } from './itst.js';

/** The attention of a model that learns when to read, step by step. */
export function decidingAttention(model: MonotonicModel): SourceAttention {
  if (model.attention === 'itst') return transportSteps(model);
  return model.attention === 'hmt' ? momentSteps(model) : stoppingAttention(model);
}

/**
 * Attention with heads that stop, one target token at a time.
 *
 * Kept of the source, [S, B, D]: `source.moving.<l>` (keys of the moving heads), `source.keys.<l>` (of the soft
 * attention, if there is one) and `source.values.<l>`. Kept of the target besides keys and values: `decoder.places.<l>`
 * [T, B, D]; the first entries of a row are the source tokens at which the moving heads stand. `ended` i64 [B] is 1
 * where the visible source tokens are all. `needed` [B] is put out: the source tokens that the heads have to see, which
 * is more than `visible` where one of them has not found a place to stop.
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
  // Every head is a sentence of its own: each sees another part of the source.
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
