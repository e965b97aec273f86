import type { Feeds, StepResult, Training } from '../optim/index.js';
import type { Snapshot } from '../run/index.js';
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
  type Task,
  taskIndex,
  trainingInfluence,
} from '../schedule/index.js';
import type { TranslationConfig } from './config.js';
import { type Batch, column, pairCount, selectPairs } from './corpus/batches.js';
import type { PairedSequences } from './corpus/corpus.js';
import { FEATURES, MainLosses, ORIGIN, writeFeatureRows } from './features.js';
import { LossEvaluation, RewardGradients, rewardPieces } from './loss-evaluation.js';
import { isAdapter, requireStart } from './model/config.js';
import { lossModel, targetTokens, updateFeeds } from './model/transformer.js';
import { FULL, saveTranslation, warmStartTranslation } from './trained.js';
import {
  type CorpusParts,
  CorpusProblem,
  createTraining,
  originsOf,
  type ProblemOptions,
  type Scrambled,
  scrambledOracle,
  TrainingData,
  translationLearningRate,
} from './training.js';

/** Simultaneous translation as a problem of scheduling: 𝒯 = {wait-1, …, wait-M} (section 3). */
export class TranslationProblem extends CorpusProblem<Parts> implements Problem<readonly Batch[]> {
  readonly features: readonly FeatureGroup[];
  /** Appendix A.2 of the paper: from the longest wait to the main one. */
  readonly curriculum = { easiest: 'last', until: 'main' } as const;
  readonly gradients: RewardGradients;
  /** Only if part of the validation data is set aside for it. */
  readonly influence: InfluenceAccess<readonly Batch[]> | undefined;
  /** Only where sources are scrambled. */
  readonly oracle?: (batches: readonly Batch[]) => Float32Array;
  private readonly losses: MainLosses;

  private constructor(
    private readonly config: TranslationConfig,
    parts: Parts,
  ) {
    super(parts);
    const { training, evaluation, data } = parts;
    const scrambled = 'origin' in data.train ? data.train : undefined;
    this.features = (scrambled === undefined ? FEATURES : [...FEATURES, ORIGIN]).map((group) => ({
      ...group,
      costly: group.name === 'training' && config.mainLoss !== 'cached',
    }));
    if (scrambled !== undefined) {
      const waits = this.tasks.map(({ number }) => number);
      this.oracle = (batches) => scrambledOracle(scrambled, batches, { waits, main: this.main });
    }
    this.losses = new MainLosses(evaluation, this.mainWait, config.mainLoss, data.train.count);
    this.gradients = new RewardGradients({
      size: training.arena.length,
      main: this.main,
      pairs: data.reward ?? data.valid,
      tokens: data.tokens,
      gradient: (batches, task, out) => this.gradient(batches, task, out),
    });
    if (data.reward !== undefined) {
      const { reward } = data;
      const { tasks, main } = this;
      const gradient = (batches: readonly Batch[], out: Float32Array) => this.gradient(batches, main, out);
      const [waits, { tokens }] = [tasks.map(({ number }) => number), data];
      this.influence = waitInfluence({ training, evaluation, reward, waits, main, tokens, gradient });
    }
  }

  /** Opens the corpus and starts the model's training. */
  static async create(config: TranslationConfig, options: ProblemOptions): Promise<TranslationProblem> {
    const { random, threads = 1, ranks } = options;
    const tasks = waitTasks(config.waits);
    const main = config.waits === 'full' ? 0 : taskIndex(tasks, config.main, 'problem.main');
    const learningRate = translationLearningRate(config.learning, options.updates);
    requireStart(config);
    const data = await TrainingData.open(config, random);
    const opened: { close(): void | Promise<void> }[] = [data];
    try {
      const { model, corpus } = data;
      const loss = { smoothing: config.smoothing, limited: config.waits !== 'full' };
      const frozen = model.adapters === undefined ? undefined : (name: string) => !isAdapter(name);
      const training = await createTraining(lossModel(model, loss), config.learning, { ...options, frozen });
      opened.push(training);
      if (config.warmStart !== null) warmStartTranslation(config.warmStart, training.arena, corpus.languages, model);
      const evaluation = await LossEvaluation.create(model, training.arena, { ...loss, threads, ranks });
      opened.push(evaluation);
      return new TranslationProblem(config, { tasks, main, data, training, learningRate, evaluation, opened });
    } catch (error) {
      for (const resource of opened.reverse()) await resource.close();
      throw error;
    }
  }

  /** Batches of the current epoch. */
  get batchesPerEpoch(): number {
    return this.parts.data.batchesPerEpoch;
  }

  async writeFeatures(
    batches: readonly Batch[],
    status: Status,
    groups: readonly string[],
    out: Float32Array,
  ): Promise<void> {
    const { meanLengths } = this.parts.data.corpus;
    // Until there is a loss to remember, the validation loss of the untrained model is used.
    const meanLoss = this.losses.mean ?? -status.performance;
    const { updates } = this.parts.training;
    const losses = groups.includes('training') ? await this.losses.feature(batches, updates, meanLoss) : undefined;
    const sourceLengths = column(batches, 'sourceLengths');
    const targetLengths = column(batches, 'targetLengths');
    const origins = groups.includes('origin') ? originsOf(this.parts.data.train as Scrambled, batches) : undefined;
    writeFeatureRows(groups, { sourceLengths, targetLengths, meanLengths, losses, meanLoss, status, origins }, out);
  }

  /** With ℓ the sum over the tokens of a sentence, and |y| tokens: Σ wᵢ ℓᵢ / Σ wᵢ |yᵢ|, the mean over tokens. */
  async train(batches: readonly Batch[], assignment: Assignment): Promise<number> {
    const { tasks, weights } = assignment;
    const scale = 1 / targetTokens(batches, weights);
    const feeds = updateFeeds(
      batches,
      (i) => this.tasks[tasks[i]].number,
      weights.map((weight) => weight * scale),
    );
    const { loss, batches: results } = await this.step(feeds);
    const sums = results.map(({ plain }) => plain.data as Float32Array);
    this.losses.remember(batches, assignment, this.main, sums);
    return loss;
  }

  async trainBlend(batches: readonly Batch[], weights: Float32Array): Promise<number> {
    const K = this.tasks.length;
    const scale = 1 / targetTokens(batches, new Float32Array(pairCount(batches)).fill(1));
    const feeds = this.tasks.flatMap(({ number }, task) => {
      const ofTask = Float32Array.from({ length: pairCount(batches) }, (_, i) => weights[i * K + task] * scale);
      return ofTask.some((weight) => weight > 0) ? updateFeeds(batches, () => number, ofTask) : [];
    });
    return (await this.step(feeds)).loss;
  }

  async validate(): Promise<number> {
    const [loss] = await this.validationLosses([this.mainWait]);
    return -loss;
  }

  /** Loss of the validation data with each of the waits, in nats per token. */
  async validationLosses(waits: readonly number[]): Promise<number[]> {
    const { loss, tokens } = this.config.validation;
    const { evaluation, data } = this.parts;
    const losses: number[] = [];
    for (const wait of waits) {
      const measured = await evaluation.corpus(data.valid, wait, tokens);
      losses.push(measured[loss]);
    }
    return losses;
  }

  mainLosses(batches: readonly Batch[]): Promise<Float32Array> {
    return this.losses.exact(batches);
  }

  /** Mean main-task losses per token: of the validation data, and of the test data if the corpus has any. */
  async test(): Promise<Readonly<Record<string, number>>> {
    const { tokens } = this.config.validation;
    const { evaluation, data } = this.parts;
    const valid = await evaluation.corpus(data.valid, this.mainWait, tokens);
    const figures = { 'validation loss': valid.plain, 'smoothed validation loss': valid.smoothed };
    if (data.corpus.summary.splits.test === undefined) return figures;
    const pairs = data.corpus.open('test');
    try {
      const { plain, smoothed } = await evaluation.corpus(pairs, this.mainWait, tokens);
      return { ...figures, loss: plain, 'smoothed loss': smoothed };
    } finally {
      pairs.close();
    }
  }

  capture(): Snapshot {
    const state: DataState = { batches: this.parts.data.capture().state, turn: this.gradients.turn };
    return joinSnapshots({
      model: captureTraining(this.parts.training, this.parts.learningRate),
      losses: this.losses.capture(),
      data: stateOnly(state),
    });
  }

  restore(snapshot: Snapshot): void {
    restoreTraining(this.parts.training, partOf(snapshot, 'model'), this.parts.learningRate);
    this.losses.restore(partOf(snapshot, 'losses'));
    const { batches, turn } = partOf(snapshot, 'data').state as DataState;
    this.parts.data.restore(stateOnly(batches));
    this.gradients.turn = turn;
  }

  /** The languages and the model's sizes, so that the run folder alone can translate. */
  saveFiles(folder: string): void {
    const { model, corpus } = this.parts.data;
    saveTranslation(folder, corpus.languages, { model, main: this.mainWait, waits: this.config.waits });
  }

  private get mainWait(): number {
    return this.tasks[this.main].number;
  }

  private step(feeds: readonly Feeds[]): Promise<StepResult> {
    const { training, learningRate } = this.parts;
    return training.step(feeds, learningRate.at(training.updates));
  }

  private async gradient(batches: readonly Batch[], task: number, out: Float32Array): Promise<void> {
    const weights = new Float32Array(pairCount(batches)).fill(1);
    weights.fill(1 / targetTokens(batches, weights));
    // Only dropout distinguishes the training loss from that of the evaluated model.
    await this.parts.training.gradient(
      updateFeeds(batches, () => this.tasks[task].number, weights),
      out,
    );
  }
}

interface Parts extends CorpusParts {
  readonly evaluation: LossEvaluation;
}

interface DataState {
  /** Place in the training data. */
  readonly batches: Snapshot['state'];
  readonly turn: number;
}

function waitTasks(waits: number | 'full'): Task[] {
  if (waits === 'full') return [{ name: 'full', number: FULL }];
  return Array.from({ length: waits }, (_, i) => ({ name: `wait-${i + 1}`, number: i + 1 }));
}

export interface WaitInfluenceOptions {
  readonly training: Training;
  readonly evaluation: LossEvaluation;
  /** Validation pairs that are set aside for schedulers. */
  readonly reward: PairedSequences;
  /** m of each task. */
  readonly waits: readonly number[];
  readonly main: number;
  /** Maximum target tokens in a training batch. */
  readonly tokens: number;
  /** Writes the gradient of the main task's loss of an update. */
  readonly gradient: (batches: readonly Batch[], out: Float32Array) => Promise<void>;
}

/** How a step on each pair under each wait would change the main task's loss of the pairs set aside. */
function waitInfluence(options: WaitInfluenceOptions): InfluenceAccess<readonly Batch[]> {
  const { training, evaluation, reward, waits, main, gradient } = options;
  const K = waits.length;
  const anchors = anchorsOf(K, main);
  const pieces = rewardPieces(reward, options.tokens);
  return trainingInfluence<readonly Batch[]>({
    training,
    samples: 32,
    pieces: pieces.count,
    gradient: (piece, out) => gradient(pieces.batchesOf(piece), out),
    sample: (batches, samples) => spacedPlaces(pairCount(batches), samples),
    lossesAround: async (batches, places, shift) => {
      const pairs = selectPairs(batches, places);
      const measured = anchors.map((task) => waits[task]);
      const [ahead, behind] = await evaluation.aroundUnderWaits(pairs, measured, shift);
      const perToken = (sums: Float32Array): Float32Array => {
        const losses = new Float32Array(sums.length); // [n, anchors]
        for (let at = 0; at < sums.length; at++) {
          const [anchor, i] = [Math.floor(at / pairs.size), at % pairs.size];
          losses[i * anchors.length + anchor] = sums[at] / pairs.targetLengths[i];
        }
        return interpolated(losses, anchors, K);
      };
      return [perToken(ahead), perToken(behind)];
    },
  });
}

/** The tasks to measure if K waits would be too many: 1, 2, 4, 8 … words, the main task and the last one. */
export function anchorsOf(K: number, main: number): number[] {
  const anchors = new Set([main, K - 1]);
  for (let wait = 1; wait <= K; wait *= 2) anchors.add(wait - 1);
  return [...anchors].sort((a, b) => a - b);
}

/**
 * Losses of all K tasks [n, K] from those of some [n, anchors], first and last among them: the loss of a wait lies
 * between those of its neighbours, and the longer the wait, the less it changes.
 */
export function interpolated(losses: Float32Array, anchors: readonly number[], K: number): Float32Array {
  const A = anchors.length;
  const all = new Float32Array((losses.length / A) * K);
  for (let task = 0, right = 0; task < K; task++) {
    if (anchors[right] < task) right++;
    const left = anchors[right] === task ? right : right - 1;
    const share = left === right ? 0 : (task - anchors[left]) / (anchors[right] - anchors[left]);
    for (let i = 0; i < losses.length / A; i++) {
      all[i * K + task] = (1 - share) * losses[i * A + left] + share * losses[i * A + right];
    }
  }
  return all;
}
