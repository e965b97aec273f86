import type { Arena } from '../optim/index.js';
import { Inference } from '../optim/index.js';
import { type Batch, Batches } from './corpus/batches.js';
import type { PairedSequences } from './corpus/corpus.js';
import { evaluationMode, type TranslationModel } from './model/config.js';
import { type LossOptions, lossFeeds, lossInputs, lossModel } from './model/loss.js';

/** Losses of sentences, each the sum over its tokens, in nats. */
export interface SentenceLosses {
  /** −log P, [B]. */
  readonly plain: Float32Array;
  /** With label smoothing, [B]. */
  readonly smoothed: Float32Array;
}

/** Mean losses per target token, ends of sentences counted, in nats. */
export interface CorpusLoss {
  readonly plain: number;
  readonly smoothed: number;
  readonly tokens: number;
}

/** The loss of a model in evaluation mode, with the current parameters of an arena. */
export class LossEvaluation {
  private constructor(private readonly inference: Inference) {}

  static async create(
    model: TranslationModel,
    arena: Arena,
    options: LossOptions & { readonly threads?: number },
  ): Promise<LossEvaluation> {
    const inference = await Inference.create({
      model: lossModel(evaluationMode(model), options),
      inputs: lossInputs,
      arena,
      threads: options.threads,
    });
    return new LossEvaluation(inference);
  }

  /** Of every sentence, with the same wait. */
  async sentences(batch: Omit<Batch, 'epoch'>, wait: number): Promise<SentenceLosses> {
    const { size } = batch;
    const feeds = lossFeeds(batch, new Int32Array(size).fill(wait), new Float32Array(size));
    const { plain, smoothed } = await this.inference.run(feeds, { outputs: ['plain', 'smoothed'] });
    return { plain: plain.data as Float32Array, smoothed: smoothed.data as Float32Array };
  }

  /** Of a whole split, in batches of at most so many tokens. */
  async corpus(pairs: PairedSequences, wait: number, maxTokens: number): Promise<CorpusLoss> {
    let [plain, smoothed, tokens] = [0, 0, 0];
    for (const batch of inOrder(pairs, maxTokens)) {
      const losses = await this.sentences(batch, wait);
      for (let b = 0; b < batch.size; b++) {
        plain += losses.plain[b];
        smoothed += losses.smoothed[b];
        tokens += batch.targetLengths[b];
      }
    }
    return { plain: plain / tokens, smoothed: smoothed / tokens, tokens };
  }

  close(): Promise<void> {
    return this.inference.close();
  }
}

/** All pairs of a split, by length. A sentence longer than the bound has a batch of its own. */
export function inOrder(pairs: PairedSequences, maxTokens: number): Generator<Batch> {
  const longest = pairs.target.lengths.reduce((a, b) => Math.max(a, b), 1);
  return new Batches(pairs, { maxTokens: Math.max(maxTokens, longest), seed: 0, shuffle: false }).rest();
}
