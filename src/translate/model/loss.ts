import type { Feeds, InputTypes, Model } from '../../optim/index.js';
import {
  add,
  cast,
  expandDims,
  f32,
  gather,
  i32,
  less,
  linear,
  linearCrossEntropy,
  mul,
  multiplyDims,
  range,
  reshape,
  sub,
  sum,
  type Tensor,
} from '../../tensor/index.js';
import type { Batch } from '../corpus/batches.js';
import { special } from '../text/vocabulary.js';
import { adapted, type TranslationModel } from './config.js';
import { outputBias, outputWeight, translate } from './transformer.js';

/** What the loss of a batch is computed from. */
export const lossInputs = {
  source: i32('S', 'B'),
  sourceLengths: i32('B'),
  previous: i32('T', 'B'),
  target: i32('T', 'B'),
  targetLengths: i32('B'),
  /** m of wait-m, for each sentence. */
  waits: i32('B'),
  /** Factor of each sentence's loss. */
  weights: f32('B'),
} satisfies InputTypes;

/** How the loss of a translation model is computed. */
export interface LossOptions {
  /** ε of label smoothing, in fairseq's form. */
  readonly smoothing: number;
  /** Whether a sentence waits for the words that `waits` says, or for all of them. Default true. */
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
    const [steps, batch] = target.shape;
    const rows = multiplyDims(steps, batch);
    const x = reshape(states, [rows, model.width]);
    const targets = reshape(wide(target), [rows]);
    const [weight, bias] = [outputWeight(p, model), outputBias(p, model)];
    const smoothed = linearCrossEntropy(x, weight, targets, { smoothing, form: 'fairseq', bias }); // [rows]
    const plain = smoothing === 0 ? smoothed : sub(smoothed, smoothingTerm(x, { weight, bias }, targets, smoothing));

    const real = cast(less(expandDims(range(steps), 1), wide(targetLengths)), x.dtype); // [T, B]
    const perSentence = (losses: Tensor): Tensor => sum(mul(reshape(losses, [steps, batch]), real), { axes: [0] });
    const sentences = perSentence(smoothed);
    return { loss: sum(mul(sentences, weights)), smoothed: sentences, plain: perSentence(plain) };
  };
}

/** A batch as the inputs of the loss, with a wait and a weight for each sentence. */
export function lossFeeds(batch: Batch, waits: Int32Array, weights: Float32Array): Feeds {
  const { size, sourceLength, targetLength } = batch;
  const [source, target, sentences] = [[sourceLength, size], [targetLength, size], [size]];
  return {
    source: { data: batch.source, shape: source },
    sourceLengths: { data: batch.sourceLengths, shape: sentences },
    previous: { data: shifted(batch), shape: target },
    target: { data: batch.target, shape: target },
    targetLengths: { data: batch.targetLengths, shape: sentences },
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

/** Σ wᵢ |yᵢ|, the ends of sentences counted. */
export function targetTokens(batches: readonly Batch[], weights: Float32Array): number {
  let [tokens, at] = [0, 0];
  for (const { targetLengths } of batches) for (const length of targetLengths) tokens += weights[at++] * length;
  if (!(tokens > 0)) throw new RangeError('no sentence of the batch has a weight above 0');
  return tokens;
}

const wide = (x: Tensor): Tensor => cast(x, 'i64');

/**
 * Smoothed minus plain loss. With q_v = ε/(V−1) for v ≠ t and l = logits, both losses contain log Σ exp l once, so that
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
