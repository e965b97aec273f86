import type { Feeds } from '../optim/index.js';
import type { Batch } from './corpus/batches.js';
import { lossFeeds } from './model/loss.js';

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
