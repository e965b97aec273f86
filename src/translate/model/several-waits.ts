import { attentionOver } from '../../nn/index.js';
import type { Feeds, InputTypes, Model } from '../../optim/index.js';
import {
  add,
  attentionBias,
  broadcastTo,
  type Dim,
  expandDims,
  i32,
  multiplyDims,
  type Parameters,
  range,
  reshape,
  sub,
  type Tensor,
} from '../../tensor/index.js';
import type { Batch } from '../corpus/batches.js';
import { adapted, type TranslationModel } from './config.js';
import {
  decode,
  encode,
  type LossOptions,
  layerOptions,
  type Sources,
  sentenceFeeds,
  sentenceInputs,
  sentenceLosses,
  translate,
  wide,
} from './transformer.js';

/** What the losses of a batch under several waits are computed from. */
export const severalWaitsInputs = {
  ...sentenceInputs,
  /** m of each wait-m. */
  waits: i32('A'),
} satisfies InputTypes;

/** −log P of each sentence under each of several waits, `plain` [A, B] in nats: what `lossModel` says of each pair. */
export function severalWaitsModel(
  model: TranslationModel,
  { smoothing, limited = true }: LossOptions,
): Model<typeof severalWaitsInputs> {
  return (parameters, { source, sourceLengths, previous, target, targetLengths, waits }) => {
    const p = adapted(parameters, model);
    const sources = { ids: wide(source), lengths: wide(sourceLengths) };
    const [count] = waits.shape;
    const limits = limited ? sub(wide(waits), 1) : undefined;
    const states = translateSeveral(p, model, sources, wide(previous), count, limits); // [T, A·B, D]
    const targets = repeated(wide(target), count);
    const lengths = repeated(wide(targetLengths), count);
    const { plain } = sentenceLosses(p, model, states, targets, lengths, smoothing);
    return { plain: reshape(plain, [count, target.shape[1]]) };
  };
}

/** A batch as the inputs of its losses under these waits. */
export function severalWaitsFeeds(batch: Batch, waits: readonly number[]): Feeds {
  return { ...sentenceFeeds(batch), waits: { data: Int32Array.from(waits), shape: [waits.length] } };
}

/**
 * The decoder's states [T, A·B, D] under A limits i64 [A], or none: sentence b under limit a is column a·B + b. With an
 * encoder that sees the past alone, its output and what cross-attention makes of it are computed once: time-major, the
 * states under all limits are queries t·A + a of the same B sentences, without a copy.
 */
function translateSeveral(
  p: Parameters,
  model: TranslationModel,
  source: Sources,
  previous: Tensor,
  count: Dim,
  limits: Tensor | undefined,
): Tensor {
  const [steps, batch] = previous.shape;
  const all = multiplyDims(count, batch);
  if (model.encoder === 'bidirectional' && limits !== undefined) {
    const sources = { ids: repeated(source.ids, count), lengths: repeated(source.lengths, count) };
    const limit = reshape(broadcastTo(expandDims(limits, 1), [count, batch]), [all]);
    return translate(p, model, sources, repeated(previous, count), limit);
  }
  const memory = encode(p, model, source); // [S, B, D]
  const queries = multiplyDims(steps, count);
  const reach = limits && reshape(add(expandDims(range(steps), 1), limits), [queries]);
  const visible = attentionBias(queries, memory.shape[0], { reach, lengths: source.lengths }, p.dtype);
  const over = attentionOver(memory, visible, layerOptions(model));
  return decode(p, model, repeated(previous, count), (cross, x) =>
    reshape(over(cross, reshape(x, [queries, batch, model.width])), [steps, all, model.width]),
  );
}

/** […, B] as […, A·B]: all columns, A times. */
function repeated(x: Tensor, count: Dim): Tensor {
  const [outer, batch] = [x.shape.slice(0, -1), x.shape[x.shape.length - 1]];
  const wider = broadcastTo(expandDims(x, -2), [...outer, count, batch]);
  return reshape(wider, [...outer, multiplyDims(count, batch)]);
}
