import type { LearningRate, Training } from '../../optim/index.js';
import type { Snapshot } from '../../run/index.js';
import {
  type Assignment,
  captureTraining,
  joinSnapshots,
  type Problem,
  partOf,
  restoreTraining,
  type Task,
} from '../../schedule/index.js';
import { type Batch, pairCount } from '../corpus/batches.js';
import { targetTokens } from '../model/loss.js';
import { saveMonotonic, warmStartMonotonic } from '../trained.js';
import { createTraining, learningRateOf, type ProblemOptions, TrainingData } from '../training.js';
import {
  latencyWeights,
  type MonotonicConfig,
  type MonotonicKind,
  type MonotonicModel,
  monotonicModel,
  policyOf,
  thresholdAt,
} from './config.js';
import {
  type CorpusFigures,
  MonotonicEvaluation,
  monotonicFeeds,
  monotonicInputs,
  monotonicLossModel,
} from './loss.js';

/**
 * Translation with monotonic attention as a problem. There is one task: when to read is learned together with the model,
 * and the weights of the latency losses say where it ends up between early and right.
 */
export class MonotonicProblem implements Problem<readonly Batch[]> {
  readonly tasks: readonly Task[];
  readonly main = 0;
  readonly features = [];

  private constructor(
    private readonly config: MonotonicConfig,
    private readonly parts: Parts,
  ) {
    this.tasks = [{ name: config.attention, number: 1 }];
  }

  static async create(config: MonotonicConfig, options: ProblemOptions): Promise<MonotonicProblem> {
    const { threads = 1 } = options;
    const learningRate = learningRateOf(config.learning, options.updates);
    const data = await TrainingData.open(config, options.random);
    const opened: { close(): void | Promise<void> }[] = [data];
    try {
      const model = monotonicModel(data.model, config.attention, config.candidates);
      const loss = { smoothing: config.smoothing, ...latencyWeights(config) };
      const training = await createTraining(monotonicLossModel(model, loss), config.learning, options, monotonicInputs);
      opened.push(training);
      if (config.warmStart !== null) warmStartMonotonic(config.warmStart, training.arena, data.corpus.languages, model);
      const evaluation = await MonotonicEvaluation.create(model, training.arena, {
        ...loss,
        threshold: config.threshold.least,
        threads,
      });
      opened.push(evaluation);
      return new MonotonicProblem(config, { model, data, training, learningRate, evaluation, opened });
    } catch (error) {
      for (const resource of opened.reverse()) await resource.close();
      throw error;
    }
  }

  nextBatch(): readonly Batch[] {
    return this.parts.data.next();
  }

  sizeOf(batches: readonly Batch[]): number {
    return pairCount(batches);
  }

  /** With one task there is nothing to schedule, so no features. */
  writeFeatures(): void {}

  /** With the losses ℓ of sentences of |y| tokens: Σ wᵢ ℓᵢ / Σ wᵢ |yᵢ|. */
  async train(batches: readonly Batch[], { weights }: Assignment): Promise<number> {
    const scale = 1 / targetTokens(batches, weights);
    const { training, learningRate } = this.parts;
    const threshold = thresholdAt(this.config.threshold, training.updates);
    const { latencyWeight } = latencyWeights(this.config);
    const feeds = monotonicFeeds(batches, {
      weights: weights.map((weight) => weight * scale),
      latencyWeights: new Float32Array(weights.length).fill(latencyWeight),
      threshold,
    });
    const { loss } = await training.step(feeds, learningRate.at(training.updates));
    return loss;
  }

  async validate(): Promise<number> {
    return -(await this.validationFigures()).objective;
  }

  observe(performance: number): void {
    this.parts.learningRate.observe(performance);
  }

  /** Losses and expected latency of the validation data. */
  validationFigures(): Promise<CorpusFigures> {
    const { evaluation, data } = this.parts;
    return evaluation.corpus(data.valid, this.config.validation.tokens);
  }

  /** Of the validation data, and of the test data if the corpus has any. */
  async test(): Promise<Readonly<Record<string, number>>> {
    const { evaluation, data } = this.parts;
    const valid = named(this.config.attention, 'validation ', await this.validationFigures());
    if (data.corpus.summary.splits.test === undefined) return valid;
    const pairs = data.corpus.open('test');
    try {
      const test = await evaluation.corpus(pairs, this.config.validation.tokens);
      return { ...valid, ...named(this.config.attention, '', test) };
    } finally {
      pairs.close();
    }
  }

  capture(): Snapshot {
    const { training, learningRate, data } = this.parts;
    return joinSnapshots({ model: captureTraining(training, learningRate), data: data.capture() });
  }

  restore(snapshot: Snapshot): void {
    const { training, learningRate, data } = this.parts;
    restoreTraining(training, partOf(snapshot, 'model'), learningRate);
    data.restore(partOf(snapshot, 'data'));
  }

  /** The languages and the model's sizes, so that the run folder alone can translate. */
  saveFiles(folder: string): void {
    const { model, data } = this.parts;
    saveMonotonic(folder, data.corpus.languages, model);
  }

  async close(): Promise<void> {
    for (const resource of [...this.parts.opened].reverse()) await resource.close();
  }
}

/** What a problem is put together from. */
interface Parts {
  readonly model: MonotonicModel;
  readonly data: TrainingData;
  readonly training: Training;
  readonly learningRate: LearningRate;
  readonly evaluation: MonotonicEvaluation;
  /** What has to be closed, the last first. */
  readonly opened: readonly { close(): void | Promise<void> }[];
}

/** What the two further losses are called, by the policy that is trained. */
const FIGURE_NAMES = {
  monotonic: { latency: 'expected lagging', variance: 'variance of delays' },
  itst: { latency: 'latency cost', variance: 'distance from one unit' },
  hmt: { latency: 'expected delay', variance: 'loss of the states' },
} as const;

function named(attention: MonotonicKind, prefix: string, figures: CorpusFigures): Record<string, number> {
  const names = FIGURE_NAMES[policyOf(attention)];
  return {
    [`${prefix}loss`]: figures.plain,
    [`${prefix}smoothed loss`]: figures.smoothed,
    [prefix + names.latency]: figures.latency,
    [prefix + names.variance]: figures.variance,
  };
}
