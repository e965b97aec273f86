import { InputError } from '../errors.js';
import type { Feeds } from '../optim/index.js';
import type { Random } from '../random.js';
import type { Snapshot } from '../run/index.js';
import {
  type Assignment,
  type FeatureGroup,
  type GradientAccess,
  type InfluenceAccess,
  joinSnapshots,
  NetworkTraining,
  oracleRows,
  type Problem,
  type ProblemContext,
  partOf,
  type Status,
  scatteredPieces,
  spacedPlaces,
  stateOnly,
  type Task,
  taskWeights,
  writeRows,
} from '../schedule/index.js';
import type { Value } from '../tensor/index.js';
import type { ForecastConfig } from './config.js';
import {
  batchAt,
  type ForecastBatch,
  type ForecastData,
  openForecastData,
  type Part,
  piecesOf,
  writeDataSummary,
} from './data/dataset.js';
import { columnCount } from './data/features.js';
import { normaliserToJson } from './data/normaliser.js';
import { BatchSampler, type BatchSamplerState } from './data/panel.js';
import { warmStartForecast } from './forecaster.js';
import { noteInWords } from './formats/format.js';
import { modelNamed } from './models/index.js';
import {
  createNetwork,
  feedsOfTask,
  flatRows,
  forecastSamples,
  KEEP,
  type Network,
  takeRows,
  trainingFeeds,
  weightMatrix,
} from './network.js';
import { sampleLosses, scoresOf, testFigures, validationPerformance } from './scores.js';

/** Forecasting with a network: task T_k is the return of the k-th day ahead. */
export class ForecastProblem implements Problem<ForecastBatch> {
  readonly tasks: readonly Task[];
  readonly main: number;
  readonly features: readonly FeatureGroup[];
  /** Section 5 of the paper: from day 1 to the most difficult. */
  readonly curriculum = { easiest: 'first', until: 'hardest' } as const;
  readonly gradients: GradientAccess<ForecastBatch>;
  /** Only if part of the validation data is set aside for it. */
  readonly influence: InfluenceAccess<ForecastBatch> | undefined;
  /** Only where labels are stale. */
  readonly oracle?: (batch: ForecastBatch) => Float32Array;
  private batches: BatchSampler;

  private constructor(
    private readonly config: ForecastConfig,
    private readonly data: ForecastData,
    private readonly network: Network,
    private readonly training: NetworkTraining,
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
    // On one piece of the reward or else the validation part, the next one after each update.
    this.gradients = training.gradientAccess(
      data.main,
      (batch, task) => this.feedsOfTask(batch, task),
      () => {
        const part = data.reward ?? data.validation;
        return [...piecesOf(part.samples, network.wholeDays)].map((places) => () => this.batchOf(part, places));
      },
    );
    this.influence = data.reward && this.influenceOn(data.reward);
  }

  /** Builds the model and its training for data that are open. */
  static async create(
    config: ForecastConfig,
    data: ForecastData,
    { random, threads, workers, device, updates, ranks }: ProblemContext,
  ): Promise<ForecastProblem> {
    const { model, sharing, loss, warmStart: run } = config;
    const network = createNetwork({ model, sharing, tasks: data.horizons.length, features: data.features, loss });
    const { wholeBatch } = network;
    const cores = Math.max(threads, workers);
    const training = await NetworkTraining.create(network, {
      ...config,
      random,
      updates,
      workers: wholeBatch ? 1 : workers,
      threads: wholeBatch ? cores : threads,
      ranks: wholeBatch ? undefined : ranks,
      device,
      forwardWorkers: cores,
      // Networks that need the whole batch differ in evaluation mode by more than dropout.
      gradientOf: wholeBatch ? network.evaluated : undefined,
      start: run === undefined ? undefined : (arena) => warmStartForecast(arena, run),
    });
    try {
      return new ForecastProblem(config, data, network, training, random);
    } catch (error) {
      await training.close();
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
   * The paper's four parts: the sample, its main-task loss and its forecasts by the model before the update,
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
    return this.update(
      batch,
      taskWeights(tasks, this.tasks.length, () => 1),
      weights,
    );
  }

  async trainBlend(batch: ForecastBatch, shares: Float32Array): Promise<number> {
    return this.update(batch, shares, new Float32Array(batch.positions.length).fill(1));
  }

  async mainLosses(batch: ForecastBatch): Promise<Float32Array> {
    return this.lossesOf(batch, await this.forecasts(batch)).map((loss) => loss || 0);
  }

  *validationBatches(): Generator<ForecastBatch> {
    const { validation } = this.data;
    for (const positions of piecesOf(validation.samples, this.network.wholeDays)) {
      yield this.batchOf(validation, positions);
    }
  }

  async validate(): Promise<number> {
    const { validation, main, horizons } = this.data;
    const forecasts = await this.forecastMain(validation);
    return validationPerformance(
      this.config.validation.measure,
      this.config.loss,
      validation,
      forecasts,
      main,
      horizons.length,
    );
  }

  observe(performance: number): void {
    this.training.observe(performance);
  }

  async test(): Promise<Readonly<Record<string, number>>> {
    if (!this.config.test) return {};
    const { panel, test, main, horizons } = this.data;
    const forecasts = await this.forecastMain(test);
    const loss = -validationPerformance('loss', this.config.loss, test, forecasts, main, horizons.length);
    return { ...testFigures(scoresOf(this.config, panel, test.samples, forecasts)), loss };
  }

  /** A summary of the data: `data.json`. */
  saveFiles(folder: string): void {
    writeDataSummary(folder, this.data);
  }

  /** Copies what `capture` reads into memory. */
  settle(): Promise<void> {
    return this.training.settle();
  }

  /** The normaliser is part of the state, so that a checkpoint alone is enough to forecast. */
  capture(): Snapshot {
    const state: ForecastState = { batches: this.batches.state(), normaliser: normaliserToJson(this.data.normaliser) };
    return joinSnapshots({ model: this.training.capture(), data: stateOnly(state) });
  }

  restore(snapshot: Snapshot): void {
    this.training.restore(partOf(snapshot, 'model'));
    const { batches, normaliser } = partOf(snapshot, 'data').state as ForecastState;
    const { centre } = normaliserToJson(this.data.normaliser);
    if (!normaliser.centre.every((value, column) => value === centre[column])) {
      throw new InputError('the prices of the training part have changed since the run was started', {
        key: 'problem.data',
      });
    }
    this.batches = this.openBatches(batches);
  }

  async close(): Promise<void> {
    await this.training.close();
  }

  private openBatches(state?: BatchSamplerState): BatchSampler {
    const { size, days } = this.config.batch;
    const plan = this.network.wholeDays ? { days } : { size };
    return new BatchSampler(this.data.train.samples, plan, this.random.fork('batches'), state);
  }

  private batchOf(part: Part, positions: Int32Array): ForecastBatch {
    return batchAt(this.data, part, positions, this.network.layout);
  }

  /** [B, K]; [B, 1] with one output for all tasks. */
  private async forecasts(batch: ForecastBatch): Promise<Float32Array> {
    const [forecasts] = await this.forecastsBy(batch, async (feeds) => [await this.training.forecast(feeds)]);
    return forecasts;
  }

  /** The same with the parameters θ + shift and θ − shift. */
  private forecastsAround(batch: ForecastBatch, shift: Float32Array): Promise<Float32Array[]> {
    return this.forecastsBy(batch, (feeds) => this.training.forecastAround(feeds, shift));
  }

  /** The forecasts of all tasks by one or more models, each as [B, K] or [B, 1]. */
  private async forecastsBy(
    batch: ForecastBatch,
    run: (feeds: Feeds) => Promise<Float32Array[]>,
  ): Promise<Float32Array[]> {
    const { network, tasks, main } = this;
    if (network.sharing !== 'embedding') return run(feedsOfTask(network, batch, main));
    const K = tasks.length;
    const all: Float32Array[] = [];
    for (let task = 0; task < K; task++) {
      for (const [model, column] of (await run(feedsOfTask(network, batch, task))).entries()) {
        all[model] ??= new Float32Array(column.length * K);
        for (let i = 0; i < column.length; i++) all[model][i * K + task] = column[i];
      }
    }
    return all;
  }

  /** Of the main task; NaN if the label is unknown. */
  private lossesOf(batch: ForecastBatch, forecasts: Float32Array, task = this.main): Float32Array {
    const { positions, labels } = batch;
    const K = this.tasks.length;
    const columns = forecasts.length / positions.length;
    const column = columns === 1 ? 0 : task;
    return sampleLosses(
      this.config.loss,
      Float32Array.from(positions, (_, i) => forecasts[i * columns + column]),
      Float32Array.from(positions, (_, i) => labels[i * K + task]),
      dayStartsOf(batch),
    );
  }

  private async update(batch: ForecastBatch, shares: Float32Array, weights: Float32Array): Promise<number> {
    const matrix = weightMatrix(shares, weights, this.main, this.config);
    const { loss, outputs } = await this.training.step(trainingFeeds(this.network, batch, matrix));
    const kept = Object.entries(outputs).filter(([name]) => name.startsWith(KEEP));
    if (kept.length > 0) {
      await this.training.assign(Object.fromEntries(kept.map(([name, value]) => [name.slice(KEEP.length), value])));
    }
    return loss;
  }

  /** The mean loss of the batch with every sample on one task. */
  private feedsOfTask(batch: ForecastBatch, task: number): Readonly<Record<string, Value>> {
    const size = batch.positions.length;
    const matrix = taskWeights(new Int32Array(size).fill(task), this.tasks.length, () => 1 / size);
    return trainingFeeds(this.network, batch, matrix);
  }

  private influenceOn(reward: Part): InfluenceAccess<ForecastBatch> {
    const { network, training } = this;
    const { length } = reward.samples;
    const pieces = network.wholeDays
      ? [...piecesOf(reward.samples, true)]
      : scatteredPieces(length, Math.ceil(length / REWARD_PIECE));
    return training.influence<ForecastBatch>({
      shared: (name) => network.sharing !== 'heads' || !name.startsWith('output.'),
      pieces: pieces.length,
      gradient: (piece, out) =>
        training.gradient(this.feedsOfTask(this.batchOf(reward, pieces[piece]), this.main), out),
      // If the stocks of a day interact, all of them are needed.
      sample: (batch, samples) => spacedPlaces(batch.positions.length, network.wholeDays ? Infinity : samples),
      lossesAround: async (batch, places, shift) => {
        const some = takeRows(network, batch, places);
        const [ahead, behind] = await this.forecastsAround(some, shift);
        return [this.taskLosses(some, ahead), this.taskLosses(some, behind)];
      },
    });
  }

  /** Losses of forecasts on all tasks, [B, K]; NaN if the label is unknown. */
  private taskLosses(batch: ForecastBatch, forecasts: Float32Array): Float32Array {
    const K = this.tasks.length;
    const losses = new Float32Array(batch.labels.length);
    for (let task = 0; task < K; task++) {
      const column = this.lossesOf(batch, forecasts, task);
      for (let i = 0; i < column.length; i++) losses[i * K + task] = column[i];
    }
    return losses;
  }

  private forecastMain({ samples }: Part): Promise<Float32Array> {
    return forecastSamples(this.network, this.training, this.data, samples, this.main);
  }
}

interface ForecastState {
  readonly batches: BatchSamplerState;
  readonly normaliser: ReturnType<typeof normaliserToJson>;
}

/** Where each day begins in a batch, followed by its size. */
function dayStartsOf({ samples, positions }: ForecastBatch): number[] {
  const starts = [...positions.keys()].filter(
    (i) => i === 0 || samples.day[positions[i]] !== samples.day[positions[i - 1]],
  );
  return [...starts, positions.length];
}

/** Samples for a gradient on the reward data. */
const REWARD_PIECE = 256;

/** The problem of a configuration: reads the data and builds the model. */
export async function createForecast(config: ForecastConfig, context: ProblemContext): Promise<Problem> {
  const data = await openForecastData(config);
  for (const note of data.notes) context.note?.(noteInWords(note));
  return modelNamed(config.model.name).create(config, data, context);
}
