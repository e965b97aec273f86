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
import type { Feeds, InputTypes, Model } from '../../optim/index.js';
import {
  add,
  attentionBias,
  broadcastTo,
  cast,
  constant,
  type Dim,
  dropout,
  equal,
  expandDims,
  f32,
  gather,
  gelu,
  i32,
  less,
  linear,
  linearCrossEntropy,
  minimum,
  mul,
  multiplyDims,
  type Parameters,
  range,
  relu,
  reshape,
  sigmoid,
  sub,
  sum,
  type Tensor,
  where,
} from '../../tensor/index.js';
import type { Batch } from '../corpus/batches.js';
import { special } from '../text/vocabulary.js';
import { type Activation, adapted, type TranslationModel } from './config.js';

/*
 * The Transformer of the paper (appendices A and B): post-norm, ReLU, sinusoidal positions as in fairseq, embeddings
 * scaled by √d, unless the model differs.
 * Everything is time-major. The parameters have fairseq's names:
 *
 *     encoder.embed_tokens.weight          encoder.layers.<l>.{self_attn, self_attn_layer_norm, fc1, fc2, final_layer_norm}
 *     decoder.embed_tokens.weight          decoder.layers.<l>.{…, encoder_attn, encoder_attn_layer_norm}
 *     decoder.output_projection.weight     with pre-norm: encoder.layer_norm, decoder.layer_norm after the last layer
 *     decoder.output_projection.bias       with `outputBias`
 *
 * A shared table is stored once, under its first name.
 */

/** Sentences as the model reads them. */
export interface Sources {
  /** i64 [S, B], padded at the right. */
  readonly ids: Tensor;
  /** i64 [B], including its end. */
  readonly lengths: Tensor;
}

/**
 * The decoder's states [T, B, D] before each token of the target, for the target so far: `previous` i64 [T, B] begins
 * with `</s>`, regardless of the model's start token (`embed`). With `limit` i64 [B], state i of sentence b depends on
 * the source tokens j ≤ i + limit_b and no others: wait-m is the limit m − 1. Without it, on all of them.
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

/** The first min(i + limit_b + 1, length_b) tokens of sentence b for each step i, as their own sentences. */
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

/** Bias of the logits, [V]; undefined if there is none. */
export function outputBias(p: Parameters, { outputBias: has, vocabulary }: TranslationModel): Tensor | undefined {
  return has ? p.get('decoder.output_projection.bias', [vocabulary.target], zeros) : undefined;
}

/**
 * Embedded tokens [T, B, D] of i64 ids [T, B]. `positions`, i64 [T], says where in their sentences they stand;
 * default 0, 1, 2, … The decoder is always given `</s>` first. If the model starts with another token, it is
 * substituted here: after its first token a target has no other `</s>` that anything depends on.
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

/** With pre-norm the sum of all blocks is not normalised after the last layer: this does it. */
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

/** Sentence pairs as inputs of a program. */
export const sentenceInputs = {
  source: i32('S', 'B'),
  sourceLengths: i32('B'),
  previous: i32('T', 'B'),
  target: i32('T', 'B'),
  targetLengths: i32('B'),
} satisfies InputTypes;

/** What the loss of a batch is computed from. */
export const lossInputs = {
  ...sentenceInputs,
  /** m of wait-m, for each sentence. */
  waits: i32('B'),
  /** Factor of each sentence's loss. */
  weights: f32('B'),
} satisfies InputTypes;

/** How the loss of a translation model is computed. */
export interface LossOptions {
  /** ε of label smoothing, in fairseq's form. */
  readonly smoothing: number;
  /** Whether a sentence waits for the number of words in `waits`, or for all of them. Default true. */
  readonly limited?: boolean;
}

/**
 * The training loss `loss` = Σ_b w_b Σ_i ℓ_bi with the label-smoothed loss ℓ_bi of token i, and for each sentence the
 * sums over its tokens, in nats: `smoothed`, and without smoothing `plain`, both [B].
 */
export function lossModel(
  model: TranslationModel,
  { smoothing, limited = true }: LossOptions,
): Model<typeof lossInputs> {
  return (parameters, { source, sourceLengths, previous, target, targetLengths, waits, weights }) => {
    const p = adapted(parameters, model);
    const sources = { ids: wide(source), lengths: wide(sourceLengths) };
    const limit = limited ? sub(wide(waits), 1) : undefined;
    const states = translate(p, model, sources, wide(previous), limit); // [T, B, D]
    const { smoothed, plain } = sentenceLosses(p, model, states, wide(target), wide(targetLengths), smoothing);
    return { loss: sum(mul(smoothed, weights)), smoothed, plain };
  };
}

/** Sums over the tokens of each sentence [B], in nats, from states [T, B, D], targets i64 [T, B] and lengths i64 [B]. */
export function sentenceLosses(
  p: Parameters,
  model: TranslationModel,
  states: Tensor,
  target: Tensor,
  lengths: Tensor,
  smoothing: number,
): { smoothed: Tensor; plain: Tensor } {
  const [steps, batch] = target.shape;
  const rows = multiplyDims(steps, batch);
  const x = reshape(states, [rows, model.width]);
  const targets = reshape(target, [rows]);
  const [weight, bias] = [outputWeight(p, model), outputBias(p, model)];
  const smoothed = linearCrossEntropy(x, weight, targets, { smoothing, form: 'fairseq', bias }); // [rows]
  const plain = smoothing === 0 ? smoothed : sub(smoothed, smoothingTerm(x, { weight, bias }, targets, smoothing));
  const real = cast(less(expandDims(range(steps), 1), lengths), x.dtype); // [T, B]
  const perSentence = (losses: Tensor): Tensor => sum(mul(reshape(losses, [steps, batch]), real), { axes: [0] });
  return { smoothed: perSentence(smoothed), plain: perSentence(plain) };
}

/** A batch as the inputs `sentenceInputs`. */
export function sentenceFeeds(batch: Batch) {
  const { size, sourceLength, targetLength } = batch;
  const [source, target, sentences] = [[sourceLength, size], [targetLength, size], [size]];
  return {
    source: { data: batch.source, shape: source },
    sourceLengths: { data: batch.sourceLengths, shape: sentences },
    previous: { data: shifted(batch), shape: target },
    target: { data: batch.target, shape: target },
    targetLengths: { data: batch.targetLengths, shape: sentences },
  } satisfies Feeds;
}

/** A batch as the inputs of the loss, with a wait and a weight for each sentence. */
export function lossFeeds(batch: Batch, waits: Int32Array, weights: Float32Array): Feeds {
  const sentences = [batch.size];
  return {
    ...sentenceFeeds(batch),
    waits: { data: waits, shape: sentences },
    weights: { data: weights, shape: sentences },
  };
}

/** The batches of an update as inputs of the loss, with the wait and the weight of each pair, counted over all of them. */
export function updateFeeds(batches: readonly Batch[], wait: (i: number) => number, weights: Float32Array): Feeds[] {
  let start = 0;
  return batches.map((batch) => {
    const first = start;
    start += batch.size;
    const waits = Int32Array.from({ length: batch.size }, (_, b) => wait(first + b));
    return lossFeeds(batch, waits, weights.subarray(first, start));
  });
}

/** Σ wᵢ |yᵢ|, including sentence ends. */
export function targetTokens(batches: readonly Batch[], weights: Float32Array): number {
  let [tokens, at] = [0, 0];
  for (const { targetLengths } of batches) for (const length of targetLengths) tokens += weights[at++] * length;
  if (!(tokens > 0)) throw new RangeError('no sentence of the batch has a weight above 0');
  return tokens;
}

/** Ids and lengths as i64, for the operations. */
export const wide = (x: Tensor): Tensor => cast(x, 'i64');

/**
 * Smoothed minus plain loss. With q_v = ε/(V−1) for v ≠ t and l = logits, both losses contain log Σ exp l once, so
 * what is left is (ε + ε/(V−1))·l_t − ε/(V−1)·Σ_v l_v, where l_v = x·w_v + b_v: no second tensor [rows, V] is needed.
 */
export function smoothingTerm(
  x: Tensor,
  { weight, bias }: { readonly weight: Tensor; readonly bias?: Tensor },
  targets: Tensor,
  smoothing: number,
): Tensor {
  const other = smoothing / ((weight.shape[0] as number) - 1);
  const ofTarget = sum(mul(x, gather(weight, targets)), { axes: [1] }); // l_t without b_t
  const ofAll = reshape(linear(x, sum(weight, { axes: [0], keepDims: true })), [x.shape[0]]); // Σ_v l_v without b_v
  const [target, all] =
    bias === undefined ? [ofTarget, ofAll] : [add(ofTarget, gather(bias, targets)), add(ofAll, sum(bias))];
  return sub(mul(target, smoothing + other), mul(all, other));
}

/** The target one step later: `</s>` first, as in fairseq. */
function shifted({ target, size }: Pick<Batch, 'target' | 'size'>): Int32Array {
  const previous = new Int32Array(target.length).fill(special.eos, 0, size);
  previous.set(target.subarray(0, target.length - size), size);
  return previous;
}
