import type { InputTypes, Outputs } from '../../optim/index.js';
import {
  add,
  and,
  attentionBias,
  concat,
  constant,
  type Dim,
  dimension,
  expandDims,
  f32,
  fill,
  greaterEqual,
  i64,
  LOWEST,
  lessEqual,
  linear,
  logSoftmax,
  multiplyDims,
  type Parameters,
  range,
  reshape,
  slice,
  squeeze,
  sub,
  type Tensor,
  type TensorType,
  topK,
  where,
} from '../../tensor/index.js';
import { embed, lastNorm, outputWeight, type TranslationModel } from '../model/index.js';
import { special } from '../text/vocabulary.js';
import { newName } from './cache.js';
import {
  cachedCrossAttention,
  cachedSelfAttention,
  feedForward,
  type KeyValues,
  keyValues,
  type Size,
} from './cached-layers.js';

/*
 * The two programs of incremental translation, over the parameters of `model/transformer.ts`. Everything is time-major:
 * B sentences, N new tokens, T tokens before them, S source tokens that have been encoded, width D.
 *
 * Sentences of different lengths end together: the T steps of a cache hold the last `lengths[b]` ones of sentence b and
 * anything before them.
 */

/** A program: its inputs, and what it does with them. */
export interface Step {
  readonly inputs: InputTypes;
  readonly model: (p: Parameters, inputs: Readonly<Record<string, Tensor>>) => Outputs;
}

/** Names of the tensors of a cache: `<owner>.keys.<layer>` and `<owner>.values.<layer>`. */
export function cacheNames(owner: 'encoder' | 'source' | 'decoder', layers: number): string[] {
  return Array.from({ length: layers }, (_, l) => [`${owner}.keys.${l}`, `${owner}.values.${l}`]).flat();
}

/**
 * Encodes N new source tokens.
 *
 * - `tokens` i64 [N, B]
 * - `lengths` i64 [B]: unidirectional, tokens of each sentence that are encoded already; bidirectional, tokens of each
 *   sentence among `tokens`, which are then all that have been read
 * - `encoder.keys.<l>`, `encoder.values.<l>` [T, B, D]: those tokens (unidirectional alone)
 *
 * Outputs: `new.encoder.….<l>` [N, B, D], to be appended (unidirectional alone), and `new.source.….<l>` [N, B, D], the
 * keys and values through which layer l of the decoder sees them.
 */
export function encoderStep(model: TranslationModel): Step {
  const causal = model.encoder === 'unidirectional';
  const caches = causal ? cacheTypes('encoder', model.encoderLayers, 'T', model) : {};
  return {
    inputs: { tokens: i64('N', 'B'), lengths: i64('B'), ...caches },
    model: (p, inputs) => {
      const { tokens, lengths } = inputs;
      const [count, batch] = tokens.shape;
      const size: Size = [count, batch];
      const bias = causal
        ? pastBias(lengths, count, inputs['encoder.keys.0'])
        : attentionBias(count, count, { lengths });
      const outputs: Record<string, Tensor> = {};
      let x = embedAt(p, model, 'encoder', tokens, causal ? lengths : undefined); // [N·B, D]
      for (let l = 0; l < model.encoderLayers; l++) {
        const layer = p.under('encoder').under('layers').under(l);
        const past = causal ? cacheOf(inputs, 'encoder', l) : undefined;
        const { states, fresh } = cachedSelfAttention(layer, x, size, past, bias, model);
        if (causal) addCache(outputs, 'encoder', l, fresh);
        x = feedForward(layer, states, model);
      }
      x = lastNorm(p, model, 'encoder', x);
      for (let l = 0; l < model.decoderLayers; l++) {
        const layer = p.under('decoder').under('layers').under(l);
        addCache(outputs, 'source', l, keyValues(layer.under('encoder_attn'), x, size, model));
      }
      return outputs;
    },
  };
}

/**
 * Takes in N more target tokens, the first of a sentence being `</s>`, and proposes the next one.
 *
 * - `tokens` i64 [N, B]
 * - `lengths` i64 [B]: tokens of each sentence that were taken in before
 * - `decoder.keys.<l>`, `decoder.values.<l>` [T, B, D]: those tokens
 * - `visible` i64 [B]: source tokens that each sentence may see, the first ones of
 * - `source.keys.<l>`, `source.values.<l>` [S, B, D]
 *
 * Outputs: `new.decoder.….<l>` [N, B, D], to be appended; `logProbabilities` [B, V] of the next token, and the best of
 * them, `candidates` i64 and `scores` [B, C], in falling order. Padding and `<s>` are never proposed.
 */
export function decoderStep(model: TranslationModel, candidates: number): Step {
  const count = Math.min(candidates, model.vocabulary.target);
  return {
    inputs: {
      tokens: i64('N', 'B'),
      lengths: i64('B'),
      visible: i64('B'),
      ...cacheTypes('decoder', model.decoderLayers, 'T', model),
      ...cacheTypes('source', model.decoderLayers, 'S', model),
    },
    model: (p, inputs) => {
      const { tokens, lengths, visible } = inputs;
      const [added, batch] = tokens.shape;
      const size: Size = [added, batch];
      const self = pastBias(lengths, added, inputs['decoder.keys.0']);
      const cross = attentionBias(1, inputs['source.keys.0'].shape[0], { lengths: visible })!;
      const outputs: Record<string, Tensor> = {};
      let x = embedAt(p, model, 'decoder', tokens, lengths); // [N·B, D]
      for (let l = 0; l < model.decoderLayers; l++) {
        const layer = p.under('decoder').under('layers').under(l);
        const { states, fresh } = cachedSelfAttention(layer, x, size, cacheOf(inputs, 'decoder', l), self, model);
        addCache(outputs, 'decoder', l, fresh);
        const source = cacheOf(inputs, 'source', l);
        x = feedForward(layer, cachedCrossAttention(layer, states, size, source, cross, model), model);
      }
      x = lastNorm(p, model, 'decoder', x);
      const last = squeeze(slice(reshape(x, [added, batch, model.width]), 0, -1, 1), 0); // [B, D]
      const logProbabilities = add(logSoftmax(linear(last, outputWeight(p, model))), neverProposed(model)); // [B, V]
      const best = topK(logProbabilities, count);
      return { ...outputs, logProbabilities, candidates: best.indices, scores: best.values };
    },
  };
}

function cacheTypes(
  owner: 'encoder' | 'source' | 'decoder',
  layers: number,
  steps: string,
  { width }: TranslationModel,
): Record<string, TensorType> {
  return Object.fromEntries(cacheNames(owner, layers).map((name) => [name, f32(steps, 'B', width)]));
}

function cacheOf(inputs: Readonly<Record<string, Tensor>>, owner: string, layer: number): KeyValues {
  return { keys: inputs[`${owner}.keys.${layer}`], values: inputs[`${owner}.values.${layer}`] };
}

function addCache(outputs: Record<string, Tensor>, owner: string, layer: number, { keys, values }: KeyValues): void {
  outputs[newName(`${owner}.keys.${layer}`)] = keys;
  outputs[newName(`${owner}.values.${layer}`)] = values;
}

/** New token i sees the step j of T + N iff T − length ≤ j ≤ T + i. As a bias [B, 1, N, T + N]. */
export function pastBias(lengths: Tensor, added: Dim, past: Tensor): Tensor {
  const [before] = past.shape;
  const steps = concat([sub(range(before), dimension(before)), range(added)], 0); // −T … N − 1
  const j = reshape(steps, [1, 1, steps.shape[0]]);
  const i = reshape(range(added), [1, added, 1]);
  const first = reshape(sub(0, lengths), [lengths.shape[0], 1, 1]);
  return expandDims(where(and(lessEqual(j, i), greaterEqual(j, first)), fill(0, []), LOWEST), 1);
}

/** Embedded tokens [N·B, D] of [N, B]; the first of sentence b stands at position lengths[b], or at 0. */
export function embedAt(
  p: Parameters,
  model: TranslationModel,
  side: 'encoder' | 'decoder',
  tokens: Tensor,
  lengths?: Tensor,
): Tensor {
  const [added, batch] = tokens.shape;
  const all = multiplyDims(added, batch);
  if (lengths === undefined) return reshape(embed(p, model, side, tokens), [all, model.width]);
  const positions = add(reshape(range(added), [added, 1]), lengths); // [N, B]
  return reshape(embed(p, model, side, reshape(tokens, [all, 1]), reshape(positions, [all])), [all, model.width]);
}

/** A row [V] to be added to log-probabilities. */
export function neverProposed({ vocabulary }: TranslationModel): Tensor {
  const row = new Float32Array(vocabulary.target);
  for (const id of [special.pad, special.bos]) row[id] = LOWEST;
  return constant(row);
}
