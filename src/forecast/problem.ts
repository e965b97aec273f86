import { InputError } from '../errors.js';
import { Gradients, type Inference, type LearningRate, Training } from '../optim/index.js';
import type { Random } from '../random.js';
import type { Snapshot } from '../run/index.js';
import {
  type Assignment,
  captureTraining,
  type FeatureGroup,
  type GradientAccess,
  type InfluenceAccess,
  joinSnapshots,
  learningRateOf,
  optimizerOf,
  oracleRows,
  type Problem,
  type ProblemContext,
  partOf,
  restoreTraining,
  type Status,
  scatteredPieces,
  spacedPlaces,
  stateOnly,
  type Task,
  trainingInfluence,
} from '../schedule/index.js';
import type { Value } from '../tensor/index.js';
import type { ForecastConfig } from './config.js';
import { Batches, type BatchesState, columnCount, normaliserToJson } from './data/index.js';
import { type DataSet, featuresOf, type Part, piecesOf } from './data-set.js';
import { writeDataSummary } from './data-summary.js';
import { forecastSamples, forward, type Inputs, inputFeeds } from './forward.js';
import { validationPerformance } from './measure.js';
import type { NetworkConfig } from './models/index.js';
import { createNetwork, KEEP, type Network, openInference } from './network.js';
import { scoresOf, testFigures } from './scores.js';
import { networkRows, weightMatrix } from './task-weights.js';
import { warmStart } from './warm-start.js';

/** Samples of one part, with their features, and the labels [B, K] of all their tasks. */
export interface ForecastBatch extends Inputs {
  readonly labels: Float32Array;
}

/** Forecasting with a network: task T_k is the return of the k-th day ahead, its loss the squared error. */
export class ForecastProblem implements Problem<ForecastBatch> {
  readonly tasks: readonly Task[];
  readonly main: number;
  readonly features: readonly FeatureGroup[];
  /** Section 5 of the paper: from day 1 to the most difficult. */
  readonly curriculum = { easiest: 'first', until: 'hardest' } as const;
  readonly gradients: GradientAccess<ForecastBatch>;
  /** Only where part of the validation data is set aside for it. */
  readonly influence: InfluenceAccess<ForecastBatch> | undefined;
  /** Only where labels are stale. */
  readonly oracle?: (batch: ForecastBatch) => Float32Array;
  private batches: Batches;
  /** Only for networks that need the whole batch: in evaluation mode they are other functions, by more than dropout. */
  private gradientProgram: Promise<Gradients> | undefined;

  private constructor(
    private readonly config: ForecastConfig,
    private readonly data: DataSet,
    private readonly network: Network,
    private readonly training: Training,
    private readonly learningRate: LearningRate,
    private readonly inference: Inference,
    private readonly random: Random,
  ) {
    const K = data.horizons.length;
    this.tasks = data.horizons.map((k) => ({ name: `day-${k}`, number: k }));
    this.main = data.main;
    this.features = [
      { name: 'sample', width: columnCount(data.features) },
      { name: 'loss', width: 1, costly: true },
      { name: 'forecasts', width: network.sharing === 'shared' ? 1 : K, costly: true },
      { name: 'labels', width: K, outcome: true },
      ...(data.stale === undefined ? [] : [{ name: 'instrument', width: 1 }]),
    ];
    const { stale } = data;
    if (stale !== undefined) {
      this.oracle = ({ samples, positions }) =>
        oracleRows(positions.length, K, data.main, (i, task) => {
          return task === data.main && stale.isStale[samples.stock[positions[i]]] === 1;
        });
    }
    this.batches = this.openBatches();
    this.gradients = {
      size: training.arena.length,
      ofTask: (batch, task, out) => this.gradient(batch, task, out),
      ofValidation: (out) => this.validationGradient(out),
    };
    this.influence = data.reward && this.influenceOn(data.reward);
  }

  static async create(
    config: ForecastConfig & { model: NetworkConfig },
    data: DataSet,
    { random, threads, workers, updates, ranks }: ProblemContext,
  ): Promise<ForecastProblem> {
    const { model, sharing, clipValue } = config;
    const network = createNetwork({ model, sharing, tasks: data.horizons.length, features: data.features });
    const learningRate = learningRateOf(config.learningRate, config.learning, updates);
    const training = await Training.create({
      model: network.training,
      inputs: network.trainingInputs,
      random: random.fork('model'),
      optimizer: optimizerOf(config.learning),
      clip: clipValue === null ? undefined : { value: clipValue },
      workers: network.wholeBatch ? 1 : workers,
      threads: network.wholeBatch ? Math.max(threads, workers) : threads,
      ranks: network.wholeBatch ? undefined : ranks,
    });
    let inference: Inference | undefined;
    try {
      if (config.warmStart !== undefined) warmStart(training.arena, config.warmStart);
      inference = await openInference(network, training.arena, Math.max(threads, workers), ranks);
      return new ForecastProblem(config, data, network, training, learningRate, inference, random);
    } catch (error) {
      // The threads of the workers would keep the process alive.
      await training.close();
      await inference?.close();
      throw error;
    }
  }

  nextBatch(): ForecastBatch {
    return this.batchOf(this.data.train, this.batches.next());
  }

  sizeOf({ positions }: ForecastBatch): number {
    return positions.length;
  }

  /**
   * The paper's four parts: the sample, its main-task loss and its forecasts by the model as it is before the update,
   * and the labels of all tasks.
   */
  async writeFeatures(batch: ForecastBatch, _: Status, groups: readonly string[], out: Float32Array): Promise<void> {
    const columns: Record<string, Float32Array> = { labels: batch.labels };
    if (groups.includes('sample')) columns.sample = flatRows(this.network, batch);
    if (groups.includes('loss') || groups.includes('forecasts')) {
      columns.forecasts = await this.forecasts(batch);
      columns.loss = this.lossesOf(batch, columns.forecasts);
    }
    const { stale } = this.data;
    if (stale) columns.instrument = Float32Array.from(batch.positions, (i) => stale.volatility[batch.samples.stock[i]]);
    writeRows(
      groups.map((group) => columns[group]),
      batch.positions.length,
      out,
    );
  }

  async train(batch: ForecastBatch, { tasks, weights }: Assignment): Promise<number> {
    const K = this.tasks.length;
    const shares = new Float32Array(tasks.length * K);
    for (let i = 0; i < tasks.length; i++) shares[i * K + tasks[i]] = 1;
    return this.update(batch, shares, weights);
  }

  async trainBlend(batch: ForecastBatch, shares: Float32Array): Promise<number> {
    return this.update(batch, shares, new Float32Array(batch.positions.length).fill(1));
  }

  async mainLosses(batch: ForecastBatch): Promise<Float32Array> {
    return this.lossesOf(batch, await this.forecasts(batch)).map((loss) => loss || 0);
  }

  *validationBatches(): Generator<ForecastBatch> {
    const { validation } = this.data;
    for (const positions of piecesOf(validation.samples, this.network.seesDays)) {
      yield this.batchOf(validation, positions);
    }
  }

  async validate(): Promise<number> {
    const { validation, main, horizons } = this.data;
    const forecasts = await this.forecastMain(validation);
    return validationPerformance(this.config.validation.measure, validation, forecasts, main, horizons.length);
  }

  observe(performance: number): void {
    this.learningRate.observe(performance);
  }

  async test(): Promise<Readonly<Record<string, number>>> {
    if (!this.config.test) return {};
    const { panel, test, main, horizons } = this.data;
    const forecasts = await this.forecastMain(test);
    const loss = -validationPerformance('loss', test, forecasts, main, horizons.length);
    return { ...testFigures(scoresOf(this.config, panel, test.samples, forecasts)), loss };
  }

  /** What the data were like: `data.json`. */
  saveFiles(folder: string): void {
    writeDataSummary(folder, this.data);
  }

  /** The normaliser is part of the state, so that a checkpoint alone is enough to forecast. */
  capture(): Snapshot {
    const state: ForecastState = { batches: this.batches.state(), normaliser: normaliserToJson(this.data.normaliser) };
    return joinSnapshots({ model: captureTraining(this.training, this.learningRate), data: stateOnly(state) });
  }

  restore(snapshot: Snapshot): void {
    restoreTraining(this.training, partOf(snapshot, 'model'), this.learningRate);
    const { batches, normaliser } = partOf(snapshot, 'data').state as ForecastState;
    const { centre } = normaliserToJson(this.data.normaliser);
    if (!normaliser.centre.every((value, column) => value === centre[column])) {
      throw new InputError('the prices of the training part are not those that the run was begun with', {
        key: 'problem.data',
      });
    }
    this.batches = this.openBatches(batches);
  }

  async close(): Promise<void> {
    await this.training.close();
    await this.inference.close();
    await (await this.gradientProgram)?.close();
  }

  private openBatches(state?: BatchesState): Batches {
    const { size, days } = this.config.batch;
    const plan = this.network.seesDays ? { days } : { size };
    return new Batches(this.data.train.samples, plan, this.random.fork('batches'), state);
  }

  private batchOf({ samples, labels: all }: Part, positions: Int32Array): ForecastBatch {
    const K = this.tasks.length;
    const labels = new Float32Array(positions.length * K);
    positions.forEach((position, i) => {
      labels.set(all.subarray(position * K, (position + 1) * K), i * K);
    });
    return { samples, positions, x: featuresOf(this.data, samples, positions, this.network.layout), labels };
  }

  /** [B, K]; [B, 1] with one output for all tasks. */
  private async forecasts(batch: ForecastBatch): Promise<Float32Array> {
    const { network, inference, tasks } = this;
    if (network.sharing !== 'embedding') return forward(network, inference, batch, this.main);
    const K = tasks.length;
    const all = new Float32Array(batch.positions.length * K);
    for (let task = 0; task < K; task++) {
      const column = await forward(network, inference, batch, task);
      for (let i = 0; i < column.length; i++) all[i * K + task] = column[i];
    }
    return all;
  }

  /** (f(x) − y)² of the main task; NaN where the label is unknown. */
  private lossesOf({ positions, labels }: ForecastBatch, forecasts: Float32Array): Float32Array {
    const K = this.tasks.length;
    const columns = forecasts.length / positions.length;
    const column = columns === 1 ? 0 : this.main;
    return Float32Array.from(positions, (_, i) => (forecasts[i * columns + column] - labels[i * K + this.main]) ** 2);
  }

  private async update(batch: ForecastBatch, shares: Float32Array, weights: Float32Array): Promise<number> {
    const matrix = weightMatrix(shares, weights, this.main, this.config);
    const rate = this.learningRate.at(this.training.updates);
    const { loss, outputs } = await this.training.step(this.trainingFeeds(batch, matrix), rate);
    for (const [name, { data }] of Object.entries(outputs)) {
      if (name.startsWith(KEEP)) this.training.arena.value(name.slice(KEEP.length)).set(data as never);
    }
    return loss;
  }

  private async gradient(batch: ForecastBatch, task: number, out: Float32Array): Promise<void> {
    const K = this.tasks.length;
    const size = batch.positions.length;
    const matrix = new Float32Array(size * K);
    for (let i = 0; i < size; i++) matrix[i * K + task] = 1 / size;
    const feeds = this.trainingFeeds(batch, matrix);
    if (!this.network.wholeBatch) return this.training.gradient(feeds, out);
    this.gradientProgram ??= Gradients.create({
      model: this.network.evaluated,
      inputs: this.network.trainingInputs,
      arena: this.training.arena,
    });
    await (await this.gradientProgram).write(feeds, out);
  }

  /** On one piece of the reward or else the validation part, another one after each update. */
  private async validationGradient(out: Float32Array): Promise<void> {
    const part = this.data.reward ?? this.data.validation;
    const pieces = [...piecesOf(part.samples, this.network.seesDays)];
    await this.gradient(this.batchOf(part, pieces[this.training.updates % pieces.length]), this.main, out);
  }

  private influenceOn(reward: Part): InfluenceAccess<ForecastBatch> {
    const { network, training } = this;
    const { length } = reward.samples;
    const pieces = network.seesDays
      ? [...piecesOf(reward.samples, true)]
      : scatteredPieces(length, Math.ceil(length / REWARD_PIECE));
    return trainingInfluence({
      training,
      shared: (name) => network.sharing !== 'heads' || !name.startsWith('output.'),
      pieces: pieces.length,
      gradient: (piece, out) => this.gradient(this.batchOf(reward, pieces[piece]), this.main, out),
      // Where the stocks of a day see each other, all of them are needed.
      sample: (batch, samples) => spacedPlaces(batch.positions.length, network.seesDays ? Infinity : samples),
      losses: (batch, places) => this.taskLosses(batch, places),
    });
  }

  /** (f(x) − y)² of some samples of a batch on all tasks, [n, K]; NaN where the label is unknown. */
  private async taskLosses(batch: ForecastBatch, places: Int32Array): Promise<Float32Array> {
    const K = this.tasks.length;
    const forecasts = await this.forecasts({ ...batch, ...takeRows(this.network, batch, places) });
    const columns = forecasts.length / places.length;
    return Float32Array.from({ length: places.length * K }, (_, at) => {
      const [i, task] = [Math.floor(at / K), at % K];
      return (forecasts[i * columns + (columns === 1 ? 0 : task)] - batch.labels[places[i] * K + task]) ** 2;
    });
  }

  private trainingFeeds(batch: ForecastBatch, matrix: Float32Array): Readonly<Record<string, Value>> {
    const { network } = this;
    const { rows, tasks, labels, weights } = networkRows(network, batch.labels, matrix, this.tasks.length);
    const inputs = rows === undefined ? batch : takeRows(network, batch, rows);
    return { ...inputFeeds(network, inputs, tasks), labels, weights };
  }

  private forecastMain({ samples }: Part): Promise<Float32Array> {
    return forecastSamples(this.network, this.inference, this.data, samples, this.main);
  }
}

interface ForecastState {
  readonly batches: BatchesState;
  readonly normaliser: ReturnType<typeof normaliserToJson>;
}

/** Samples that a gradient of the reward data is taken from. */
const REWARD_PIECE = 256;

/** Puts the columns of several tables side by side, a row a sample. */
function writeRows(tables: readonly Float32Array[], rows: number, out: Float32Array): void {
  const width = tables.reduce((sum, table) => sum + table.length / rows, 0);
  let at = 0;
  for (const table of tables) {
    const own = table.length / rows;
    for (let i = 0; i < rows; i++) out.set(table.subarray(i * own, (i + 1) * own), i * width + at);
    at += own;
  }
  // A validation sample may lack the label of a day without trade: 0, the mean, says nothing.
  for (let i = 0; i < rows * width; i++) if (Number.isNaN(out[i])) out[i] = 0;
}

/** The features of each sample in one row, field by field, taken from those in the layout of the network. */
function flatRows(network: Network, { positions, x }: Inputs): Float32Array {
  if (network.layout === 'flat') return x;
  const { window } = network.features;
  const size = positions.length;
  const fields = x.length / (window * size);
  const rows = new Float32Array(x.length);
  let from = 0;
  for (let day = 0; day < window; day++) {
    for (let i = 0; i < size; i++) {
      for (let field = 0; field < fields; field++) rows[(i * fields + field) * window + day] = x[from++];
    }
  }
  return rows;
}

/** The samples with the given places in the batch, some perhaps several times. */
function takeRows(network: Network, { samples, positions, x }: Inputs, rows: Int32Array): Inputs {
  const blocks = network.layout === 'flat' ? 1 : network.features.window;
  const size = positions.length;
  const width = x.length / (blocks * size);
  const taken = new Float32Array(blocks * rows.length * width);
  for (let block = 0; block < blocks; block++) {
    rows.forEach((place, row) => {
      const from = (block * size + place) * width;
      taken.set(x.subarray(from, from + width), (block * rows.length + row) * width);
    });
  }
  return { samples, positions: rows.map((place) => positions[place]), x: taken };
}
