import {
  type Attend,
  attentionOver,
  decoderLayer,
  embedding,
  embeddingNormal,
  encoderLayer,
  layerNorm,
  sinusoidalTable,
  type TransformerLayerOptions,
  zeros,
} from '../../nn/index.js';
import {
  add,
  attentionBias,
  broadcastTo,
  constant,
  type Dim,
  dropout,
  equal,
  expandDims,
  gather,
  gelu,
  minimum,
  mul,
  multiplyDims,
  type Parameters,
  range,
  relu,
  reshape,
  sigmoid,
  type Tensor,
  where,
} from '../../tensor/index.js';
import { special } from '../text/vocabulary.js';
import type { Activation, TranslationModel } from './config.js';

/*
 * The Transformer of the paper (appendices A and B): post-norm, ReLU, sinusoidal positions as in fairseq, embeddings
 * scaled with √d, unless the model says otherwise.
 * Everything is time-major. The parameters have fairseq's names:
 *
 *     encoder.embed_tokens.weight          encoder.layers.<l>.{self_attn, self_attn_layer_norm, fc1, fc2, final_layer_norm}
 *     decoder.embed_tokens.weight          decoder.layers.<l>.{…, encoder_attn, encoder_attn_layer_norm}
 *     decoder.output_projection.weight     with pre-norm: encoder.layer_norm, decoder.layer_norm after the last layer
 *     decoder.output_projection.bias       with `outputBias`
 *
 * A table that is shared is there once, under the first of the names that it would have.
 */

/** Sentences as the model reads them. */
export interface Sources {
  /** i64 [S, B], padded at the right. */
  readonly ids: Tensor;
  /** i64 [B], the end of the sentence counted. */
  readonly lengths: Tensor;
}

/**
 * The decoder's states [T, B, D] before each token of the target, for the target so far: `previous` i64 [T, B] begins
 * with `</s>`, whatever the model starts with (`embed`). With `limit` i64 [B], state i of sentence b depends on the source tokens j ≤ i + limit_b and no others:
 * wait-m is the limit m − 1. Without it, on all of them.
 */
export function translate(
  p: Parameters,
  model: TranslationModel,
  source: Sources,
  previous: Tensor,
  limit?: Tensor,
): Tensor {
  const reencodes = model.encoder === 'bidirectional' && limit !== undefined;
  if (reencodes) return decodePrefixes(p, model, source, previous, limit);
  const memory = encode(p, model, source); // [S, B, D]
  const visible = attentionBias(previous.shape[0], memory.shape[0], { limit, lengths: source.lengths }, p.dtype);
  return decode(p, model, previous, attentionOver(memory, visible, layerOptions(model)));
}

/** The encoder's output [S, B, D]. */
export function encode(p: Parameters, model: TranslationModel, { ids, lengths }: Sources): Tensor {
  const [steps] = ids.shape;
  // Padding is at the right, where a unidirectional encoder does not look.
  const seen = model.encoder === 'unidirectional' ? { causal: true } : { lengths };
  const bias = attentionBias(steps, steps, seen, p.dtype);
  let x = embed(p, model, 'encoder', ids);
  for (let l = 0; l < model.encoderLayers; l++) {
    x = encoderLayer(p.under('encoder').under('layers').under(l), x, bias, layerOptions(model));
  }
  return lastNorm(p, model, 'encoder', x);
}

/** The decoder's states [T, B, D], with `cross` as the attention of each layer over the source. */
export function decode(p: Parameters, model: TranslationModel, previous: Tensor, cross: Attend): Tensor {
  const [steps] = previous.shape;
  const self = attentionBias(steps, steps, { causal: true }, p.dtype);
  let x = embed(p, model, 'decoder', previous);
  for (let l = 0; l < model.decoderLayers; l++) {
    x = decoderLayer(p.under('decoder').under('layers').under(l), x, { self, cross }, layerOptions(model));
  }
  return lastNorm(p, model, 'decoder', x);
}

/**
 * The decoder over an encoder that re-encodes the source with every token (Ma et al. 2019): state i sees the encoding of the
 * first i + limit + 1 source tokens on their own. Sentence b at step i is encoded as the sentence i·B + b, which is T
 * times the work of one encoding.
 */
function decodePrefixes(
  p: Parameters,
  model: TranslationModel,
  source: Sources,
  previous: Tensor,
  limit: Tensor,
): Tensor {
  const [steps, batch] = previous.shape;
  const all = multiplyDims(steps, batch);
  const read = prefixes(source, steps, limit);
  const memory = encode(p, model, read); // [S, T·B, D]
  const visible = attentionBias(1, memory.shape[0], { lengths: read.lengths }, p.dtype); // [T·B, 1, 1, S]
  const over = attentionOver(memory, visible, layerOptions(model));
  return decode(p, model, previous, (cross, x) =>
    reshape(over(cross, reshape(x, [1, all, model.width])), [steps, batch, model.width]),
  );
}

/** The first min(i + limit_b + 1, length_b) tokens of sentence b for each step i, as sentences of their own. */
function prefixes({ ids, lengths }: Sources, steps: Dim, limit: Tensor): Sources {
  const [source, batch] = ids.shape;
  const all = multiplyDims(steps, batch);
  const repeated = broadcastTo(expandDims(ids, 1), [source, steps, batch]); // [S, T, B]
  const read = minimum(add(add(expandDims(range(steps), 1), limit), 1), lengths); // [T, B]
  return { ids: reshape(repeated, [source, all]), lengths: reshape(read, [all]) };
}

/** The output projection [V, D]; logits are states·weightᵀ. */
export function outputWeight(p: Parameters, model: TranslationModel): Tensor {
  if (model.sharedEmbeddings !== 'none') return table(p, model, 'decoder');
  return p.get('decoder.output_projection.weight', [model.vocabulary.target, model.width], embeddingNormal());
}

/** Added to the logits, [V]; undefined if nothing is. */
export function outputBias(p: Parameters, { outputBias: has, vocabulary }: TranslationModel): Tensor | undefined {
  return has ? p.get('decoder.output_projection.bias', [vocabulary.target], zeros) : undefined;
}

/**
 * Embedded tokens [T, B, D] of i64 ids [T, B]. `positions`, i64 [T], says where in their sentences they stand;
 * default 0, 1, 2, … The decoder is always given `</s>` first. Where the model starts with another token, that is put
 * in its place here: after its first token a target has no other `</s>` that anything depends on.
 */
export function embed(
  p: Parameters,
  model: TranslationModel,
  side: 'encoder' | 'decoder',
  ids: Tensor,
  positions: Tensor = range(ids.shape[0]),
): Tensor {
  const { width, vocabulary, maxPositions, positions: kind = 'fairseq', scaleEmbeddings = true } = model;
  const startsWithPadding = side === 'decoder' && model.start === 'pad';
  const known = startsWithPadding ? where(equal(ids, special.eos), constant([special.pad], 'i64', []), ids) : ids;
  const tokens = embedding(tableOwner(p, model, side), known, vocabulary[SIDES[side]], width, {
    padding: special.pad,
    scale: scaleEmbeddings ? Math.sqrt(width) : 1,
  });
  const angles = sinusoidalTable(maxPositions, width, { ...POSITIONS[kind], dtype: p.dtype }); // [P, D]
  return dropout(add(tokens, expandDims(gather(angles, positions), 1)), model.dropout);
}

/** Options of `nn.encoderLayer` and `nn.decoderLayer`. */
export function layerOptions(model: TranslationModel): TransformerLayerOptions {
  const { heads, ffn, dropout: rate, attentionDropout, activationDropout, norm } = model;
  return {
    heads,
    ffn,
    dropout: rate,
    attentionDropout,
    activationDropout,
    norm,
    activation: ACTIVATIONS[model.activation ?? 'relu'],
  };
}

/** With pre-norm, nothing has normalised the sum of all blocks after the last layer: this does. */
export function lastNorm(p: Parameters, { norm }: TranslationModel, side: 'encoder' | 'decoder', x: Tensor): Tensor {
  return norm === 'pre' ? layerNorm(p.under(side).under('layer_norm'), x) : x;
}

const ACTIVATIONS: Readonly<Record<Activation, (x: Tensor) => Tensor>> = {
  relu,
  gelu: (x) => gelu(x),
  swish: (x) => mul(x, sigmoid(x)),
};

/** fairseq numbers positions from the padding's id + 1. */
const POSITIONS = {
  fairseq: { first: special.pad + 1, form: 'fairseq' },
  marian: { first: 0, form: 'marian' },
} as const;

const SIDES = { encoder: 'source', decoder: 'target' } as const;

function tableOwner(p: Parameters, { sharedEmbeddings }: TranslationModel, side: 'encoder' | 'decoder'): Parameters {
  return p.under(sharedEmbeddings === 'all' ? 'encoder' : side).under('embed_tokens');
}

function table(p: Parameters, model: TranslationModel, side: 'encoder' | 'decoder'): Tensor {
  const shape = [model.vocabulary[SIDES[side]], model.width];
  return tableOwner(p, model, side).get('weight', shape, embeddingNormal(special.pad));
}
