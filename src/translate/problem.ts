import type { Feeds, LearningRate, StepResult, Training } from '../optim/index.js';
import type { Snapshot } from '../run/index.js';
import {
  type Assignment,
  captureTraining,
  type FeatureGroup,
  type GradientAccess,
  type InfluenceAccess,
  joinSnapshots,
  type Problem,
  partOf,
  restoreTraining,
  type Status,
  scatteredPieces,
  spacedPlaces,
  stateOnly,
  type Task,
  taskIndex,
  trainingInfluence,
} from '../schedule/index.js';
import { anchorsOf, interpolated } from './anchors.js';
import { batchFeeds, pairsOf, type TranslationBatch, targetTokens, translationBatch } from './batch.js';
import type { TranslationConfig } from './config.js';
import { collate } from './corpus/batches.js';
import type { PairedSequences } from './corpus/corpus.js';
import { originsOf, type Scrambled, scrambledOracle } from './corruption.js';
import { FEATURES, ORIGIN, writeRows } from './features.js';
import { createTraining, learningRateOf, type ProblemOptions } from './learning.js';
import { inOrder, LossEvaluation } from './loss-evaluation.js';
import { MainLosses } from './main-loss.js';
import { lossModel } from './model/loss.js';
import { saveTranslation, warmStart } from './trained.js';
import { TrainingData } from './training-data.js';

/** Simultaneous translation as a problem of scheduling: 𝒯 = {wait-1, …, wait-M} (section 3). */
export class TranslationProblem implements Problem<TranslationBatch> {
  readonly features: readonly FeatureGroup[];
  /** Appendix A.2 of the paper: from the longest wait to the main one. */
  readonly curriculum = { easiest: 'last', until: 'main' } as const;
  readonly gradients: GradientAccess<TranslationBatch>;
  /** Only where part of the validation data is set aside for it. */
  readonly influence: InfluenceAccess<TranslationBatch> | undefined;
  /** Only where sources are scrambled. */
  readonly oracle?: (batch: TranslationBatch) => Float32Array;
  private readonly losses: MainLosses;
  /** Which batch of the validation data the next validation gradient is taken from. */
  private turn = 0;

  private constructor(
    private readonly config: TranslationConfig,
    private readonly parts: Parts,
  ) {
    const { training, evaluation, data } = parts;
    const scrambled = 'origin' in data.train ? data.train : undefined;
    this.features = (scrambled === undefined ? FEATURES : [...FEATURES, ORIGIN]).map((group) => ({
      ...group,
      costly: group.name === 'training' && config.mainLoss !== 'cached',
    }));
    if (scrambled !== undefined) {
      const waits = this.tasks.map(({ number }) => number);
      this.oracle = (batch) => scrambledOracle(scrambled, batch, { waits, main: this.main });
    }
    this.losses = new MainLosses(evaluation, this.mainWait, config.mainLoss, data.train.count);
    this.gradients = {
      size: training.arena.length,
      ofTask: (batch, task, out) => this.gradient(batch, task, out),
      ofValidation: (out) => {
        const all = [...this.batchesOf(data.reward ?? data.valid)];
        return this.gradient(all[this.turn++ % all.length], this.main, out);
      },
    };
    this.influence = data.reward && this.influenceOn(data.reward);
  }

  static async create(config: TranslationConfig, options: ProblemOptions): Promise<TranslationProblem> {
    const { random, threads = 1, ranks } = options;
    const tasks = waitTasks(config.waits);
    const main = config.waits === 'full' ? 0 : taskIndex(tasks, config.main, 'problem.main');
    const learningRate = learningRateOf(config.learning, options.updates);
    const data = await TrainingData.open(config, random);
    const opened: { close(): void | Promise<void> }[] = [data];
    try {
      const { model, corpus } = data;
      const loss = { smoothing: config.smoothing, limited: config.waits !== 'full' };
      const training = await createTraining(lossModel(model, loss), config.learning, options);
      opened.push(training);
      if (config.warmStart !== null) warmStart(config.warmStart, training.arena, corpus.languages);
      const evaluation = await LossEvaluation.create(model, training.arena, { ...loss, threads, ranks });
      opened.push(evaluation);
      return new TranslationProblem(config, { tasks, main, data, training, learningRate, evaluation, opened });
    } catch (error) {
      for (const resource of opened.reverse()) await resource.close();
      throw error;
    }
  }

  get tasks(): readonly Task[] {
    return this.parts.tasks;
  }

  get main(): number {
    return this.parts.main;
  }

  /** Batches of the current epoch. */
  get batchesPerEpoch(): number {
    return this.parts.data.batchesPerEpoch;
  }

  nextBatch(): TranslationBatch {
    return this.parts.data.next();
  }

  sizeOf({ size }: TranslationBatch): number {
    return size;
  }

  async writeFeatures(
    batch: TranslationBatch,
    status: Status,
    groups: readonly string[],
    out: Float32Array,
  ): Promise<void> {
    const { meanLengths } = this.parts.data.corpus;
    // Until there is a loss to remember, that of the untrained model on the validation data stands for it.
    const meanLoss = this.losses.mean ?? -status.performance;
    const { updates } = this.parts.training;
    const losses = groups.includes('training') ? await this.losses.feature(batch, updates, meanLoss) : undefined;
    const sourceLengths = batch.parts.flatMap((part) => [...part.sourceLengths]);
    const targetLengths = batch.parts.flatMap((part) => [...part.targetLengths]);
    const origins = groups.includes('origin') ? originsOf(this.parts.data.train as Scrambled, batch) : undefined;
    writeRows(groups, { sourceLengths, targetLengths, meanLengths, losses, meanLoss, status, origins }, out);
  }

  /** With ℓ the sum over the tokens of a sentence, and |y| tokens: Σ wᵢ ℓᵢ / Σ wᵢ |yᵢ|, the mean over tokens. */
  async train(batch: TranslationBatch, assignment: Assignment): Promise<number> {
    const { tasks, weights } = assignment;
    const scale = 1 / targetTokens(batch, weights);
    const feeds = batchFeeds(
      batch,
      (i) => this.tasks[tasks[i]].number,
      weights.map((weight) => weight * scale),
    );
    const { loss, batches } = await this.step(feeds);
    const sums = batches.map(({ plain }) => plain.data as Float32Array);
    this.losses.remember(batch, assignment, this.main, sums);
    return loss;
  }

  async trainBlend(batch: TranslationBatch, weights: Float32Array): Promise<number> {
    const K = this.tasks.length;
    const scale = 1 / targetTokens(batch, new Float32Array(batch.size).fill(1));
    const feeds = this.tasks.flatMap(({ number }, task) => {
      const ofTask = Float32Array.from({ length: batch.size }, (_, i) => weights[i * K + task] * scale);
      return ofTask.some((weight) => weight > 0) ? batchFeeds(batch, () => number, ofTask) : [];
    });
    return (await this.step(feeds)).loss;
  }

  async validate(): Promise<number> {
    const [loss] = await this.validationLosses([this.mainWait]);
    return -loss;
  }

  observe(performance: number): void {
    this.parts.learningRate.observe(performance);
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

  mainLosses(batch: TranslationBatch): Promise<Float32Array> {
    return this.losses.exact(batch);
  }

  validationBatches(): Generator<TranslationBatch> {
    return this.batchesOf(this.parts.data.valid);
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
    const state: DataState = { batches: this.parts.data.capture().state, turn: this.turn };
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
    this.turn = turn;
  }

  /** The languages and the model's sizes, so that the run folder alone can translate. */
  saveFiles(folder: string): void {
    const { model, corpus } = this.parts.data;
    saveTranslation(folder, corpus.languages, { model, main: this.mainWait, waits: this.config.waits });
  }

  async close(): Promise<void> {
    for (const resource of [...this.parts.opened].reverse()) await resource.close();
  }

  private *batchesOf(pairs: PairedSequences): Generator<TranslationBatch> {
    for (const batch of inOrder(pairs, this.config.batch.tokens)) yield translationBatch([batch], 'valid');
  }

  private get mainWait(): number {
    return this.tasks[this.main].number;
  }

  private step(feeds: readonly Feeds[]): Promise<StepResult> {
    const { training, learningRate } = this.parts;
    return training.step(feeds, learningRate.at(training.updates));
  }

  private async gradient(batch: TranslationBatch, task: number, out: Float32Array): Promise<void> {
    const weights = new Float32Array(batch.size).fill(1);
    weights.fill(1 / targetTokens(batch, weights));
    // Nothing but dropout tells the training loss from that of the evaluated model.
    await this.parts.training.gradient(
      batchFeeds(batch, () => this.tasks[task].number, weights),
      out,
    );
  }

  private influenceOn(reward: PairedSequences): InfluenceAccess<TranslationBatch> {
    const { training, evaluation } = this.parts;
    const K = this.tasks.length;
    const anchors = anchorsOf(K, this.main);
    // Half a batch: the next measurement has another piece.
    const tokens = reward.target.lengths.reduce((sum, length) => sum + length, 0);
    const pieces = scatteredPieces(reward.count, (2 * tokens) / this.config.batch.tokens);
    return trainingInfluence<TranslationBatch>({
      training,
      samples: 32,
      pieces: pieces.length,
      gradient: (piece, out) =>
        this.gradient(translationBatch([{ ...collate(reward, pieces[piece]), epoch: 0 }], 'valid'), this.main, out),
      sample: ({ size }, samples) => spacedPlaces(size, samples),
      losses: async (batch, places) => {
        const A = anchors.length;
        const repeated = Int32Array.from({ length: places.length * A }, (_, at) => places[Math.floor(at / A)]);
        const pairs = pairsOf(batch, repeated);
        const waits = Int32Array.from(repeated, (_, at) => this.tasks[anchors[at % A]].number);
        const { plain } = await evaluation.sentences(pairs, waits);
        return interpolated(
          plain.map((sum, at) => sum / pairs.targetLengths[at]),
          anchors,
          K,
        );
      },
    });
  }
}

/** What a problem is put together from. */
interface Parts {
  readonly tasks: readonly Task[];
  readonly main: number;
  readonly data: TrainingData;
  readonly training: Training;
  readonly learningRate: LearningRate;
  readonly evaluation: LossEvaluation;
  /** What has to be closed, the last first. */
  readonly opened: readonly { close(): void | Promise<void> }[];
}

interface DataState {
  /** Place in the training data. */
  readonly batches: Snapshot['state'];
  readonly turn: number;
}

/** A wait for so many words is one for the whole sentence. */
const FULL = 1_000_000;

function waitTasks(waits: number | 'full'): Task[] {
  if (waits === 'full') return [{ name: 'full', number: FULL }];
  return Array.from({ length: waits }, (_, i) => ({ name: `wait-${i + 1}`, number: i + 1 }));
}
