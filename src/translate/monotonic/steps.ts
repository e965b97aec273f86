import { linear, residual } from '../../nn/index.js';
import type { InputTypes } from '../../optim/index.js';
import {
  add,
  and,
  attention,
  broadcastTo,
  cast,
  concat,
  equal,
  expandDims,
  f32,
  fill,
  greaterEqual,
  i32,
  LOWEST,
  less,
  lessEqual,
  logSoftmax,
  max,
  minimum,
  multiplyDims,
  neg,
  or,
  type Parameters,
  linear as product,
  range,
  reshape,
  slice,
  sub,
  type Tensor,
  topK,
  where,
} from '../../tensor/index.js';
import { newName } from '../decode/cache.js';
import { cachedSelfAttention, feedForward } from '../decode/cached-layers.js';
import { cacheNames, embedAt, neverProposed, pastBias, type Step } from '../decode/steps.js';
import { lastNorm, outputWeight } from '../model/transformer.js';
import { movingEnergies, movingKeys, movingQueries } from './attention.js';
import { lookback, type MonotonicModel, movingHeads } from './config.js';

/*
 * The two programs of incremental translation with heads that stop, over the parameters of `transformer.ts`. As in
 * `decode/steps.ts`, everything is time-major, and sentences of different lengths end together in a cache.
 */

/** Names of what is kept, by whom it is looked at; each is [steps, B, D]. */
export function monotonicCaches(model: MonotonicModel): Record<'encoder' | 'source' | 'decoder', readonly string[]> {
  const { encoderLayers, decoderLayers } = model;
  const perLayer = (...stems: string[]): string[] =>
    Array.from({ length: decoderLayers }, (_, l) => stems.map((stem) => `${stem}.${l}`)).flat();
  return {
    encoder: cacheNames('encoder', encoderLayers),
    source: perLayer('source.moving', ...(lookback(model) ? ['source.keys'] : []), 'source.values'),
    decoder: perLayer('decoder.keys', 'decoder.values', 'decoder.places'),
  };
}

/**
 * Encodes N new source tokens.
 *
 * - `tokens` i32 [N, B], `lengths` i32 [B]: tokens of each sentence that are encoded already
 * - `encoder.keys.<l>`, `encoder.values.<l>` [T, B, D]: those tokens
 *
 * Outputs, to be appended: `new.encoder.….<l>`, and for layer l of the decoder `new.source.moving.<l>` (keys of the
 * moving heads), `new.source.keys.<l>` (of the soft attention, if there is one) and `new.source.values.<l>`, [N, B, D].
 */
export function monotonicEncoderStep(model: MonotonicModel): Step {
  return {
    inputs: { tokens: i32('N', 'B'), lengths: i32('B'), ...cacheTypes(monotonicCaches(model).encoder, 'T', model) },
    model: (p, inputs) => {
      const [tokens, lengths] = [cast(inputs.tokens, 'i64'), cast(inputs.lengths, 'i64')];
      const bias = pastBias(lengths, tokens.shape[0], inputs['encoder.keys.0']);
      const outputs: Record<string, Tensor> = {};
      const [count, batch] = tokens.shape;
      let x = embedAt(p, model, 'encoder', tokens, lengths); // [N·B, D]
      for (let l = 0; l < model.encoderLayers; l++) {
        const layer = p.under('encoder').under('layers').under(l);
        const past = { keys: inputs[`encoder.keys.${l}`], values: inputs[`encoder.values.${l}`] };
        const { states, fresh } = cachedSelfAttention(layer, x, [count, batch], past, bias, model);
        outputs[newName(`encoder.keys.${l}`)] = fresh.keys;
        outputs[newName(`encoder.values.${l}`)] = fresh.values;
        x = feedForward(layer, states, model);
      }
      const encoded = reshape(lastNorm(p, model, 'encoder', x), [count, batch, model.width]);
      for (let l = 0; l < model.decoderLayers; l++) {
        const cross = p.under('decoder').under('layers').under(l).under('encoder_attn');
        outputs[newName(`source.moving.${l}`)] = movingKeys(cross, encoded, model);
        if (lookback(model)) outputs[newName(`source.keys.${l}`)] = linear(cross.under('k_proj'), encoded, model.width);
        outputs[newName(`source.values.${l}`)] = linear(cross.under('v_proj'), encoded, model.width);
      }
      return outputs;
    },
  };
}

/**
 * Takes in one more target token, the first of a sentence being `</s>`, and proposes the next one.
 *
 * - `tokens` i32 [1, B], `lengths` i32 [B]: tokens of each sentence that were taken in before
 * - `decoder.keys.<l>`, `decoder.values.<l>`, `decoder.places.<l>` [T, B, D]: those tokens; the first entries of a row
 *   of places are the source tokens at which the moving heads stand
 * - `visible` i32 [B]: source tokens that each sentence may see; `ended` i32 [B]: 1 where these are all
 * - `source.moving.<l>`, `source.keys.<l>`, `source.values.<l>` [S, B, D]
 *
 * Outputs: `new.decoder.….<l>` [1, B, D], to be appended; `needed` [B], the source tokens that the heads have to see,
 * which is more than `visible` where one of them has not found a place to stop; and of the next token the best
 * `candidates` i64 and their `scores` [B, C].
 */
export function monotonicDecoderStep(model: MonotonicModel, candidates: number): Step {
  const caches = monotonicCaches(model);
  const inputTypes: InputTypes = {
    tokens: i32(1, 'B'),
    lengths: i32('B'),
    visible: i32('B'),
    ended: i32('B'),
    ...cacheTypes(caches.decoder, 'T', model),
    ...cacheTypes(caches.source, 'S', model),
  };
  return {
    inputs: inputTypes,
    model: (p, inputs) => {
      const [tokens, lengths] = [cast(inputs.tokens, 'i64'), cast(inputs.lengths, 'i64')];
      const self = pastBias(lengths, 1, inputs['decoder.keys.0']);
      const outputs: Record<string, Tensor> = {};
      const furthest: Tensor[] = [];
      const [, batch] = tokens.shape;
      let x = embedAt(p, model, 'decoder', tokens, lengths); // [B, D]
      for (let l = 0; l < model.decoderLayers; l++) {
        const layer = p.under('decoder').under('layers').under(l);
        const past = { keys: inputs[`decoder.keys.${l}`], values: inputs[`decoder.values.${l}`] };
        const { states, fresh } = cachedSelfAttention(layer, x, [1, batch], past, self, model);
        outputs[newName(`decoder.keys.${l}`)] = fresh.keys;
        outputs[newName(`decoder.values.${l}`)] = fresh.values;

        const { norm } = model;
        const translated = residual(layer.under('encoder_attn_layer_norm'), states, { norm }, (h) => {
          const { found, places, wanted } = stoppingAttention(layer.under('encoder_attn'), h, inputs, l, model);
          outputs[newName(`decoder.places.${l}`)] = widened(places, model);
          furthest.push(wanted);
          return found;
        });
        x = feedForward(layer, translated, model);
      }
      const needed = add(max(concat(furthest, 1), { axes: [1] }), 1); // [B]
      const logits = product(lastNorm(p, model, 'decoder', x), outputWeight(p, model));
      const best = topK(add(logSoftmax(logits), neverProposed(model)), Math.min(candidates, model.vocabulary.target));
      return { ...outputs, needed, candidates: best.indices, scores: best.values };
    },
  };
}

/**
 * What states [B, D] find where the heads of layer l stop: at the first token from their last place on for which
 * p ≥ ½, or at the end of the source. A head that finds none stands at the last visible token and wants the next.
 * `places` [B, M] and `wanted` [B, M] count from 0.
 */
function stoppingAttention(
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

function cacheTypes(names: readonly string[], steps: string, { width }: MonotonicModel): InputTypes {
  return Object.fromEntries(names.map((name) => [name, f32(steps, 'B', width)]));
}
