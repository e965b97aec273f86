import { type Arena, type Feeds, Inference } from '../optim/index.js';
import type { Ranks } from '../ranks.js';
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
  private estimation: Inference | undefined;

  private constructor(
    private readonly inference: Inference,
    private readonly compileEstimation: () => Promise<Inference>,
  ) {}

  static async create(
    model: TranslationModel,
    arena: Arena,
    options: LossOptions & { readonly threads?: number; readonly ranks?: Ranks },
  ): Promise<LossEvaluation> {
    const { threads, ranks, ...loss } = options;
    const compile = (what: LossOptions, eightBit: boolean): Promise<Inference> => {
      const evaluated = lossModel(evaluationMode(model), what);
      return Inference.create({ model: evaluated, inputs: lossInputs, arena, threads, ranks, eightBit });
    };
    return new LossEvaluation(await compile(loss, false), () => compile({ ...loss, smoothing: 0 }, true));
  }

  /** Of every sentence, with one wait for all or a wait for each. */
  async sentences(batch: Omit<Batch, 'epoch'>, wait: number | Int32Array): Promise<SentenceLosses> {
    const feeds = typeof wait === 'number' ? sameWait(batch, wait) : lossFeeds(batch, wait, noWeights(batch));
    const { plain, smoothed } = await this.inference.run(feeds, { outputs: ['plain', 'smoothed'] });
    return { plain: plain.data as Float32Array, smoothed: smoothed.data as Float32Array };
  }

  /**
   * −log P of every sentence with the same wait, [B], with products in 8 bits: half the time, and right to about 0.01
   * nats per token, where the sentences of a batch differ by 1.
   */
  async estimates(batch: Omit<Batch, 'epoch'>, wait: number): Promise<Float32Array> {
    this.estimation ??= await this.compileEstimation();
    const { plain } = await this.estimation.run(sameWait(batch, wait), { outputs: ['plain'] });
    return plain.data as Float32Array;
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

  async close(): Promise<void> {
    await this.estimation?.close();
    await this.inference.close();
  }
}

function sameWait(batch: Omit<Batch, 'epoch'>, wait: number): Feeds {
  return lossFeeds(batch, new Int32Array(batch.size).fill(wait), noWeights(batch));
}

/** Of the training loss, which is not asked for. */
const noWeights = ({ size }: Omit<Batch, 'epoch'>): Float32Array => new Float32Array(size);

/** All pairs of a split, by length. A sentence longer than the bound has a batch of its own. */
export function inOrder(pairs: PairedSequences, maxTokens: number): Generator<Batch> {
  const longest = pairs.target.lengths.reduce((a, b) => Math.max(a, b), 1);
  return new Batches(pairs, { maxTokens: Math.max(maxTokens, longest), seed: 0, shuffle: false }).rest();
}
