import type { Feeds } from '../optim/index.js';
import type { Batch } from './corpus/batches.js';
import { lossFeeds } from './model/loss.js';
import { special } from './text/vocabulary.js';

/** Batches whose gradients make one update. */
export interface TranslationBatch {
  readonly parts: readonly Batch[];
  /** Sentence pairs of all parts. */
  readonly size: number;
  readonly split: 'train' | 'valid';
}

export function translationBatch(parts: readonly Batch[], split: TranslationBatch['split']): TranslationBatch {
  return { parts, size: parts.reduce((sum, part) => sum + part.size, 0), split };
}

/** Σ wᵢ |yᵢ|, the ends of sentences counted. */
export function targetTokens({ parts }: TranslationBatch, weights: Float32Array): number {
  let [tokens, at] = [0, 0];
  for (const { targetLengths } of parts) for (const length of targetLengths) tokens += weights[at++] * length;
  if (!(tokens > 0)) throw new RangeError('no sentence of the batch has a weight above 0');
  return tokens;
}

/** The parts as inputs of the loss, with the wait and the weight of each sentence, counted over all parts. */
export function batchFeeds({ parts }: TranslationBatch, wait: (i: number) => number, weights: Float32Array): Feeds[] {
  let start = 0;
  return parts.map((part) => {
    const first = start;
    start += part.size;
    const waits = Int32Array.from({ length: part.size }, (_, b) => wait(first + b));
    return lossFeeds(part, waits, weights.subarray(first, start));
  });
}

/** Some pairs of a batch, by their places in it, counted over all parts, padded as one. */
export function pairsOf({ parts }: TranslationBatch, places: Int32Array): Omit<Batch, 'epoch'> {
  const chosen = Array.from(places, (place) => {
    let [part, b] = [0, place];
    while (b >= parts[part].size) b -= parts[part++].size;
    return { part: parts[part], b };
  });
  const size = chosen.length;
  const longest = (side: 'sourceLengths' | 'targetLengths') => Math.max(...chosen.map(({ part, b }) => part[side][b]));
  const [sourceLength, targetLength] = [longest('sourceLengths'), longest('targetLengths')];
  const [source, target] = [sourceLength, targetLength].map((n) => new Int32Array(n * size).fill(special.pad));
  chosen.forEach(({ part, b }, i) => {
    for (let t = 0; t < part.sourceLengths[b]; t++) source[t * size + i] = part.source[t * part.size + b];
    for (let t = 0; t < part.targetLengths[b]; t++) target[t * size + i] = part.target[t * part.size + b];
  });
  const column = (side: 'sourceLengths' | 'targetLengths' | 'indices') =>
    Int32Array.from(chosen, ({ part, b }) => part[side][b]);
  return {
    ...{ source, target, size, sourceLength, targetLength },
    sourceLengths: column('sourceLengths'),
    targetLengths: column('targetLengths'),
    indices: column('indices'),
  };
}
