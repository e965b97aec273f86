import { Gradients } from '../../optim/index.js';
import type { Snapshot } from '../../run/index.js';
import {
  type Assignment,
  captureTraining,
  type FeatureGroup,
  type InfluenceAccess,
  joinSnapshots,
  type Problem,
  partOf,
  restoreTraining,
  type Status,
  spacedPlaces,
  stateOnly,
  trainingInfluence,
} from '../../schedule/index.js';
import { type Batch, column, pairCount, selectPairs } from '../corpus/batches.js';
import type { PairedSequences } from '../corpus/corpus.js';
import { FEATURES, MainLosses, writeFeatureRows } from '../features.js';
import { RewardGradients, rewardPieces } from '../loss-evaluation.js';
import { evaluationMode, requireStart } from '../model/config.js';
import { targetTokens } from '../model/transformer.js';
import { saveMonotonic, transformerParameters, warmStartMonotonic } from '../trained.js';
import {
  type CorpusParts,
  CorpusProblem,
  createTraining,
  type ProblemOptions,
  TrainingData,
  translationLearningRate,
} from '../training.js';
import {
  latencyTasks,
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
  type SentenceFigures,
} from './loss.js';

/**
 * Translation with learned reading as a problem. When to read is learned together with the model, and the weight of
 * the latency sets the trade-off between latency and quality. There is one task, or one for each of several weights: the
 * loss of a pair on a task is ℓ + λ_T·latency + λ_var·variance, so that one pass gives its losses on all tasks.
 */
export class MonotonicProblem extends CorpusProblem<Parts> implements Problem<readonly Batch[]> {
  readonly features: readonly FeatureGroup[];
  /** From the task in which latency costs least. */
  readonly curriculum = { easiest: 'first', until: 'main' } as const;
  readonly gradients: RewardGradients;
  /** Only if part of the validation data is set aside for it. */
  readonly influence: InfluenceAccess<readonly Batch[]> | undefined;
  private readonly losses: MainLosses | undefined;
  private gradientProgram: Promise<Gradients> | undefined;

  private constructor(
    private readonly config: MonotonicConfig,
    parts: Parts,
    /** Updates of the whole training. */
    private readonly planned: number,
  ) {
    super(parts);
    const { training, data } = parts;
    const several = parts.tasks.length > 1;
    this.features = several
      ? FEATURES.map((group) => ({ ...group, costly: group.name === 'training' && config.mainLoss === 'exact' }))
      : [];
    const objectives = async (batch: Batch) => {
      const plain = this.sentenceLosses(await parts.evaluation.sentences(batch), this.main);
      return { plain, smoothed: plain };
    };
    const evaluation = { sentences: objectives, estimates: async (batch: Batch) => (await objectives(batch)).plain };
    if (several) this.losses = new MainLosses(evaluation, this.main, config.mainLoss, data.train.count);
    this.gradients = new RewardGradients({
      size: training.arena.length,
      main: this.main,
      pairs: data.reward ?? data.valid,
      tokens: data.tokens,
      gradient: (batches, task, out) => this.gradient(batches, task, out),
    });
    if (data.reward !== undefined) this.influence = this.influenceOn(data.reward);
  }

  static async create(config: MonotonicConfig, options: ProblemOptions): Promise<MonotonicProblem> {
    const { threads = 1 } = options;
    const tasks = latencyTasks(config);
    const learningRate = translationLearningRate(config.learning, options.updates);
    requireStart(config);
    const data = await TrainingData.open(config, options.random);
    const opened: { close(): void | Promise<void> }[] = [data];
    try {
      const model = monotonicModel(data.model, config.attention, config.candidates);
      const loss = { smoothing: config.smoothing, ...latencyWeights(config) };
      const plain = new Set(transformerParameters(model).map(({ name }) => name));
      // With adapters, only they and the parameters that the Transformer does not have are trained.
      const frozen = model.adapters === undefined ? undefined : (name: string) => plain.has(name);
      const training = await createTraining(
        monotonicLossModel(model, loss),
        config.learning,
        { ...options, frozen },
        monotonicInputs,
      );
      opened.push(training);
      if (config.warmStart !== null) warmStartMonotonic(config.warmStart, training.arena, data.corpus.languages, model);
      const evaluation = await MonotonicEvaluation.create(model, training.arena, {
        ...loss,
        threshold: config.threshold.least,
        threads,
      });
      opened.push(evaluation);
      const parts = { ...tasks, model, data, training, learningRate, evaluation, opened };
      return new MonotonicProblem(config, parts, options.updates ?? UNKNOWN_LENGTH);
    } catch (error) {
      for (const resource of opened.reverse()) await resource.close();
      throw error;
    }
  }

  /** With one task there is nothing to schedule, so no features. */
  async writeFeatures(
    batches: readonly Batch[],
    status: Status,
    groups: readonly string[],
    out: Float32Array,
  ): Promise<void> {
    const { losses } = this;
    if (losses === undefined) return;
    const { data, training } = this.parts;
    const meanLoss = losses.mean ?? -status.performance;
    const known = groups.includes('training') ? await losses.feature(batches, training.updates, meanLoss) : undefined;
    const sourceLengths = column(batches, 'sourceLengths');
    const targetLengths = column(batches, 'targetLengths');
    const { meanLengths } = data.corpus;
    writeFeatureRows(groups, { sourceLengths, targetLengths, meanLengths, losses: known, meanLoss, status }, out);
  }

  /** With the losses ℓ of sentences of |y| tokens: Σ wᵢ ℓᵢ / Σ wᵢ |yᵢ|. */
  train(batches: readonly Batch[], { tasks, weights }: Assignment): Promise<number> {
    const scale = 1 / targetTokens(batches, weights);
    const latency = Float32Array.from(tasks, (task) => this.weightOf(task));
    return this.update(
      batches,
      weights.map((weight) => weight * scale),
      latency,
    );
  }

  /** The loss is linear in the weight of the latency: a blend of tasks is the task of the mean weight. */
  trainBlend(batches: readonly Batch[], weights: Float32Array): Promise<number> {
    const K = this.tasks.length;
    const size = pairCount(batches);
    const scale = 1 / targetTokens(batches, new Float32Array(size).fill(1));
    const own = new Float32Array(size);
    const latency = new Float32Array(size);
    for (let i = 0; i < size; i++) {
      for (let task = 0; task < K; task++) {
        own[i] += weights[i * K + task];
        latency[i] += weights[i * K + task] * this.weightOf(task);
      }
      if (own[i] > 0) latency[i] /= own[i];
      own[i] *= scale;
    }
    return this.update(batches, own, latency);
  }

  async validate(): Promise<number> {
    return -(await this.validationFigures()).objective;
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

  mainLosses(batches: readonly Batch[]): Promise<Float32Array> {
    return this.losses === undefined ? this.lossesOn(batches, this.main) : this.losses.exact(batches);
  }

  /** With one task, the state of version 0.1.0: place in the data and nothing else. */
  capture(): Snapshot {
    const { training, learningRate, data } = this.parts;
    const model = captureTraining(training, learningRate);
    if (this.losses === undefined) return joinSnapshots({ model, data: data.capture() });
    const state: DataState = { batches: data.capture().state, turn: this.gradients.turn };
    return joinSnapshots({ model, losses: this.losses.capture(), data: stateOnly(state) });
  }

  restore(snapshot: Snapshot): void {
    const { training, learningRate, data } = this.parts;
    restoreTraining(training, partOf(snapshot, 'model'), learningRate);
    const place = partOf(snapshot, 'data');
    if (this.losses === undefined) {
      data.restore(place);
      return;
    }
    const { batches, turn } = place.state as DataState;
    this.losses.restore(partOf(snapshot, 'losses'));
    data.restore(stateOnly(batches));
    this.gradients.turn = turn;
  }

  /** The languages and the model's sizes, so that the run folder alone can translate. */
  saveFiles(folder: string): void {
    const { model, data } = this.parts;
    saveMonotonic(folder, data.corpus.languages, model);
  }

  override async close(): Promise<void> {
    await (await this.gradientProgram)?.close();
    await super.close();
  }

  /** δ of the next update; `itst` alone looks at it. */
  private get threshold(): number {
    return thresholdAt(this.config.threshold, this.parts.training.updates, this.planned);
  }

  /** λ of a task. */
  private weightOf(task: number): number {
    return this.config.latencyWeights?.[task] ?? latencyWeights(this.config).latencyWeight;
  }

  /** What is trained of each sentence on a task, the sum over its tokens. */
  private sentenceLosses({ smoothed, latency, variance }: Omit<SentenceFigures, 'plain'>, task: number): Float32Array {
    const { varianceWeight } = latencyWeights(this.config);
    const weight = this.weightOf(task);
    return smoothed.map((loss, i) => loss + weight * latency[i] + varianceWeight * variance[i]);
  }

  private async update(batches: readonly Batch[], weights: Float32Array, latency: Float32Array): Promise<number> {
    const { training, learningRate } = this.parts;
    const { threshold } = this;
    const feeds = monotonicFeeds(batches, { weights, latencyWeights: latency, threshold });
    const { loss, batches: results } = await training.step(feeds, learningRate.at(training.updates));
    // The parts of a pair's loss give its loss on the main task, whatever it was trained for.
    const sums = results.map(({ smoothed, latency: late, variance }) => {
      const [a, b, c] = [smoothed, late, variance].map(({ data }) => data as Float32Array);
      return this.sentenceLosses({ smoothed: a, latency: b, variance: c }, this.main);
    });
    const tasks = new Int32Array(weights.length).fill(this.main);
    this.losses?.remember(batches, { tasks, weights }, this.main, sums);
    return loss;
  }

  /** Per token, in evaluation mode. */
  private async lossesOn(batches: readonly Batch[], task: number): Promise<Float32Array> {
    const all: number[] = [];
    for (const batch of batches) {
      const sums = this.sentenceLosses(await this.parts.evaluation.sentences(batch), task);
      all.push(...sums.map((sum, b) => sum / batch.targetLengths[b]));
    }
    return Float32Array.from(all);
  }

  /** In evaluation mode: without dropout, and without the noise of training. */
  private async gradient(batches: readonly Batch[], task: number, out: Float32Array): Promise<void> {
    const { model, training } = this.parts;
    const options = { smoothing: this.config.smoothing, ...latencyWeights(this.config), evaluation: true };
    this.gradientProgram ??= Gradients.create({
      model: monotonicLossModel({ ...model, ...evaluationMode(model) }, options),
      inputs: monotonicInputs,
      arena: training.arena,
    });
    const program = await this.gradientProgram;
    const weights = new Float32Array(pairCount(batches)).fill(1);
    weights.fill(1 / targetTokens(batches, weights));
    const latency = new Float32Array(weights.length).fill(this.weightOf(task));
    const part = new Float32Array(out.length);
    out.fill(0);
    for (const feeds of monotonicFeeds(batches, { weights, latencyWeights: latency, threshold: this.threshold })) {
      await program.write(feeds, part);
      for (let i = 0; i < out.length; i++) out[i] += part[i];
    }
  }

  private influenceOn(reward: PairedSequences): InfluenceAccess<readonly Batch[]> {
    const pieces = rewardPieces(reward, this.parts.data.tokens);
    return trainingInfluence<readonly Batch[]>({
      training: this.parts.training,
      samples: 32,
      pieces: pieces.count,
      gradient: (piece, out) => this.gradient(pieces.batchesOf(piece), this.main, out),
      sample: (batches, samples) => spacedPlaces(pairCount(batches), samples),
      losses: async (batches, places) => {
        const pairs = selectPairs(batches, places);
        const figures = await this.parts.evaluation.sentences(pairs);
        const K = this.tasks.length;
        const all = new Float32Array(places.length * K);
        for (let task = 0; task < K; task++) {
          const sums = this.sentenceLosses(figures, task);
          sums.forEach((sum, i) => {
            all[i * K + task] = sum / pairs.targetLengths[i];
          });
        }
        return all;
      },
    });
  }
}

/** Updates of a training whose length is not known: the threshold then falls as in Zhang and Feng's (2022) code. */
const UNKNOWN_LENGTH = 100_000;

interface DataState {
  /** Place in the training data. */
  readonly batches: Snapshot['state'];
  readonly turn: number;
}

interface Parts extends CorpusParts {
  readonly model: MonotonicModel;
  readonly evaluation: MonotonicEvaluation;
}

/** Names of the two additional losses, by the trained policy. */
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
