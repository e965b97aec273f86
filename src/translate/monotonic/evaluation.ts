import { type Arena, Inference } from '../../optim/index.js';
import type { Batch } from '../corpus/batches.js';
import type { PairedSequences } from '../corpus/corpus.js';
import { inOrder } from '../loss-evaluation.js';
import { evaluationMode } from '../model/config.js';
import { lossFeeds, lossInputs } from '../model/loss.js';
import type { MonotonicModel } from './config.js';
import { type MonotonicLossOptions, monotonicLossModel } from './loss.js';

/** Of each sentence, [B]: losses as sums over its tokens, in nats, and the expected latency. */
export interface SentenceFigures {
  /** −log P. */
  readonly plain: Float32Array;
  /** With label smoothing. */
  readonly smoothed: Float32Array;
  /** DAL. */
  readonly lagging: Float32Array;
  readonly variance: Float32Array;
}

/** Means over a corpus. */
export interface CorpusFigures {
  /** What is trained, without noise and dropout, per target token, in nats. */
  readonly objective: number;
  /** Losses per target token, in nats. */
  readonly plain: number;
  readonly smoothed: number;
  /** Expected latency per sentence. */
  readonly lagging: number;
  readonly variance: number;
}

/** The losses of a model in evaluation mode, with the current parameters of an arena. */
export class MonotonicEvaluation {
  private constructor(
    private readonly inference: Inference,
    private readonly options: MonotonicLossOptions,
  ) {}

  static async create(
    model: MonotonicModel,
    arena: Arena,
    { threads, ...options }: MonotonicLossOptions & { readonly threads?: number },
  ): Promise<MonotonicEvaluation> {
    const still = { ...evaluationMode(model), attention: model.attention };
    const inference = await Inference.create({
      model: monotonicLossModel(still, { ...options, evaluation: true }),
      inputs: lossInputs,
      arena,
      threads,
    });
    return new MonotonicEvaluation(inference, options);
  }

  async sentences(batch: Omit<Batch, 'epoch'>): Promise<SentenceFigures> {
    const feeds = lossFeeds(batch, new Int32Array(batch.size), new Float32Array(batch.size));
    const found = await this.inference.run(feeds, { outputs: FIGURES });
    const floats = (name: (typeof FIGURES)[number]): Float32Array => found[name].data as Float32Array;
    return {
      plain: floats('plain'),
      smoothed: floats('smoothed'),
      lagging: floats('lagging'),
      variance: floats('variance'),
    };
  }

  /** Of a whole split, in batches of at most so many tokens. */
  async corpus(pairs: PairedSequences, maxTokens: number): Promise<CorpusFigures> {
    const sums = { plain: 0, smoothed: 0, lagging: 0, variance: 0 };
    let [tokens, sentences] = [0, 0];
    for (const batch of inOrder(pairs, maxTokens)) {
      const figures = await this.sentences(batch);
      for (const name of FIGURES) for (const value of figures[name]) sums[name] += value;
      for (const length of batch.targetLengths) tokens += length;
      sentences += batch.size;
    }
    const { latencyWeight, varianceWeight } = this.options;
    const objective = sums.smoothed + latencyWeight * sums.lagging + varianceWeight * sums.variance;
    return {
      objective: objective / tokens,
      plain: sums.plain / tokens,
      smoothed: sums.smoothed / tokens,
      lagging: sums.lagging / sentences,
      variance: sums.variance / sentences,
    };
  }

  close(): Promise<void> {
    return this.inference.close();
  }
}

const FIGURES = ['plain', 'smoothed', 'lagging', 'variance'] as const;
