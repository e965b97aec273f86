import { InputError } from '../errors.js';
import { mean } from '../metrics/index.js';
import { gru, linear } from '../nn/index.js';
import type { InputTypes, Model } from '../optim/index.js';
import { Random, type RandomState } from '../random.js';
import type { Snapshot } from '../run/index.js';
import { saveDataSummary } from '../run/results.js';
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
  rowsAt,
  type Status,
  scatteredPieces,
  spacedPlaces,
  stateOnly,
  type Task,
  taskWeights,
  writeRows,
} from '../schedule/index.js';
import { f32, mul, type Parameters, square, sub, sum, type Tensor } from '../tensor/index.js';
import type { SeriesConfig } from './config.js';
import { openSeries, type SeriesData, windowsAt } from './dataset.js';

/** Samples, with the labels of all their tasks. */
export interface SeriesBatch {
  /** [B], the row at which each window ends. */
  readonly ends: Int32Array;
  /** [T, B, D] */
  readonly x: Float32Array;
  /** [B, K] */
  readonly labels: Float32Array;
}

/** Forecasting a time series: task T_h is the change of the target over h steps, its loss the squared error. */
export class SeriesProblem implements Problem<SeriesBatch> {
  readonly tasks: readonly Task[];
  readonly main: number;
  readonly features: readonly FeatureGroup[];
  /** What is nearer is easier, and the main task is often neither end. */
  readonly curriculum = { easiest: 'first', until: 'main' } as const;
  readonly gradients: GradientAccess<SeriesBatch>;
  /** Only if part of the validation data is set aside for it. */
  readonly influence: InfluenceAccess<SeriesBatch> | undefined;
  /** Only if labels are corrupted. */
  readonly oracle?: (batch: SeriesBatch) => Float32Array;
  private sampling: Random;

  private constructor(
    private readonly config: SeriesConfig,
    private readonly data: SeriesData,
    private readonly training: NetworkTraining,
    random: Random,
  ) {
    const K = data.horizons.length;
    this.tasks = data.horizons.map((h) => ({ name: `step-${h}`, number: h }));
    this.main = data.main;
    this.features = [
      { name: 'progress', width: 1 },
      { name: 'inputs', width: data.names.length },
      { name: 'spread', width: 1 },
      { name: 'labels', width: K, outcome: true },
      { name: 'forecasts', width: K, costly: true },
      { name: 'loss', width: 1, costly: true },
    ];
    if (config.corruption.noise > 0) {
      this.oracle = ({ ends }) =>
        oracleRows(ends.length, K, data.main, (i, task) => task === data.main && data.spoilt[ends[i]] === 1);
    }
    this.sampling = random.fork('batches');
    this.gradients = training.gradientAccess(
      data.main,
      (batch, task) => this.feedsOfTask(batch, task),
      () => {
        const { reward, validation } = data.parts;
        return [...piecesOf(reward.length > 0 ? reward : validation)].map((ends) => () => this.batchOf(ends));
      },
    );
    this.influence = data.parts.reward.length > 0 ? this.influenceOn(data.parts.reward) : undefined;
  }

  /** Reads the data and starts the network's training. */
  static async create(config: SeriesConfig, context: ProblemContext): Promise<SeriesProblem> {
    const { random, threads, workers, device, updates, ranks, note } = context;
    const data = openSeries(config);
    if (data.filled > 0) note?.(`data: ${data.filled} missing cells, each filled with the value before`);
    const network = createSeriesNetwork({
      ...config.model,
      window: config.window,
      columns: data.names.length,
      tasks: data.horizons.length,
    });
    const training = await NetworkTraining.create(network, {
      ...config,
      random,
      updates,
      workers,
      threads,
      ranks,
      device,
      gradientOf: network.training,
    });
    return new SeriesProblem(config, data, training, random);
  }

  nextBatch(): SeriesBatch {
    const { train } = this.data.parts;
    return this.batchOf(Int32Array.from({ length: this.config.batch }, () => train[this.sampling.int(train.length)]));
  }

  sizeOf({ ends }: SeriesBatch): number {
    return ends.length;
  }

  async writeFeatures(batch: SeriesBatch, status: Status, groups: readonly string[], out: Float32Array): Promise<void> {
    const { data, main } = this;
    const [D, K] = [data.names.length, this.tasks.length];
    const asked = groups.includes('forecasts') || groups.includes('loss');
    const forecasts = asked ? await this.forecasts(batch) : new Float32Array();
    const { ends, labels } = batch;
    const columns: Record<string, () => Float32Array> = {
      progress: () => new Float32Array(ends.length).fill(status.update / status.updates),
      inputs: () => rowsAt(data.rows, ends, D),
      spread: () => rowsAt(data.spread, ends, 1),
      labels: () => labels,
      forecasts: () => forecasts,
      loss: () => Float32Array.from(ends, (_, i) => (forecasts[i * K + main] - labels[i * K + main]) ** 2),
    };
    writeRows(
      groups.map((group) => columns[group]()),
      ends.length,
      out,
    );
  }

  async train(batch: SeriesBatch, { tasks, weights }: Assignment): Promise<number> {
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    return this.update(
      batch,
      taskWeights(tasks, this.tasks.length, (i) => weights[i] / total),
    );
  }

  async trainBlend(batch: SeriesBatch, weights: Float32Array): Promise<number> {
    return this.update(
      batch,
      weights.map((weight) => weight / batch.ends.length),
    );
  }

  async mainLosses(batch: SeriesBatch): Promise<Float32Array> {
    return (await this.mainErrors(batch)).map((error) => error ** 2);
  }

  *validationBatches(): Generator<SeriesBatch> {
    for (const ends of piecesOf(this.data.parts.validation)) yield this.batchOf(ends);
  }

  async validate(): Promise<number> {
    return -mean((await this.errorsOf(this.data.parts.validation)).map((error) => error ** 2));
  }

  observe(performance: number): void {
    this.training.observe(performance);
  }

  /**
   * Of the main task on the test part: `loss` in units of the label, `MSE` and `MAE` in deviations of the target, as
   * published for such series, `raw` in units of the target, and the skill over "no change".
   */
  async test(): Promise<Readonly<Record<string, number>>> {
    const { labels, labelScales, normaliser, target, main, parts } = this.data;
    const K = this.tasks.length;
    const errors = await this.errorsOf(parts.test);
    const changes = Float32Array.from(parts.test, (t) => labels[t * K + main]);
    const loss = mean(errors.map((error) => error ** 2));
    const absolute = mean(errors.map(Math.abs));
    const raw = labelScales[main];
    const unit = raw / normaliser.scale[target];
    return {
      loss,
      MSE: unit ** 2 * loss,
      MAE: unit * absolute,
      'raw MSE': raw ** 2 * loss,
      'raw MAE': raw * absolute,
      skill: 1 - loss / mean(changes.map((change) => change ** 2)),
    };
  }

  /** A summary of the data, and the scales that convert forecasts to units of the target: `data.json`. */
  saveFiles(folder: string): void {
    const { names, target, dates, filled, horizons, main, normaliser, labelScales, parts } = this.data;
    const samples = Object.fromEntries(Object.entries(parts).map(([part, ends]) => [part, ends.length]));
    const summary = {
      columns: names,
      target: names[target],
      dates,
      filled,
      horizons,
      main: horizons[main],
      samples,
      normaliser,
      labelScales,
    };
    saveDataSummary(folder, summary);
  }

  /** Copies what `capture` reads into memory. */
  settle(): Promise<void> {
    return this.training.settle();
  }

  capture(): Snapshot {
    const state: SamplingState = { sampling: this.sampling.state(), labelScales: this.data.labelScales };
    return joinSnapshots({ model: this.training.capture(), data: stateOnly(state) });
  }

  restore(snapshot: Snapshot): void {
    const { sampling, labelScales } = partOf(snapshot, 'data').state as SamplingState;
    if (labelScales.some((scale, k) => scale !== this.data.labelScales[k])) {
      throw new InputError('the training part has changed since the run was started', { key: 'problem.data' });
    }
    this.training.restore(partOf(snapshot, 'model'));
    this.sampling = Random.restore(sampling);
  }

  async close(): Promise<void> {
    await this.training.close();
  }

  private batchOf(ends: Int32Array): SeriesBatch {
    const labels = rowsAt(this.data.labels, ends, this.tasks.length);
    return { ends, x: windowsAt(this.data, ends), labels };
  }

  /** [B, K] */
  private forecasts({ ends, x }: SeriesBatch): Promise<Float32Array> {
    const { window, names } = this.data;
    return this.training.forecast({ x: { data: x, shape: [window, ends.length, names.length] } });
  }

  /** f(x) − y of the main task. */
  private async mainErrors(batch: SeriesBatch): Promise<Float32Array> {
    const K = this.tasks.length;
    const forecasts = await this.forecasts(batch);
    return Float32Array.from(batch.ends, (_, i) => forecasts[i * K + this.main] - batch.labels[i * K + this.main]);
  }

  private async errorsOf(samples: Int32Array): Promise<Float32Array> {
    const errors = new Float32Array(samples.length);
    let at = 0;
    for (const ends of piecesOf(samples)) {
      errors.set(await this.mainErrors(this.batchOf(ends)), at);
      at += ends.length;
    }
    return errors;
  }

  private async update(batch: SeriesBatch, matrix: Float32Array): Promise<number> {
    return (await this.training.step(this.feeds(batch, matrix))).loss;
  }

  /** The mean loss of the batch with every sample on one task. */
  private feedsOfTask(batch: SeriesBatch, task: number) {
    const size = batch.ends.length;
    return this.feeds(
      batch,
      taskWeights(new Int32Array(size).fill(task), this.tasks.length, () => 1 / size),
    );
  }

  private influenceOn(reward: Int32Array): InfluenceAccess<SeriesBatch> {
    // Neighbours have nearly the same window, so a piece has samples from the whole part.
    const pieces = scatteredPieces(reward.length, Math.ceil(reward.length / PIECE)).map((places) =>
      places.map((place) => reward[place]),
    );
    return this.training.influence<SeriesBatch>({
      shared: (name) => !name.startsWith('output.'),
      pieces: pieces.length,
      gradient: (piece, out) => this.training.gradient(this.feedsOfTask(this.batchOf(pieces[piece]), this.main), out),
      sample: ({ ends }, samples) => spacedPlaces(ends.length, samples),
      losses: async ({ ends }, places) => {
        const some = this.batchOf(places.map((place) => ends[place]));
        return (await this.forecasts(some)).map((forecast, at) => (forecast - some.labels[at]) ** 2);
      },
    });
  }

  private feeds({ ends, x, labels }: SeriesBatch, matrix: Float32Array) {
    const { window, names, horizons } = this.data;
    const shape = [ends.length, horizons.length];
    return {
      x: { data: x, shape: [window, ends.length, names.length] },
      labels: { data: labels, shape },
      weights: { data: matrix, shape },
    };
  }
}

interface SamplingState {
  /** Batches are drawn at random, so the generator is the position in the data. */
  readonly sampling: RandomState;
  readonly labelScales: readonly number[];
}

/** Samples whose states fit in the cache; more at a time is slower. */
const PIECE = 500;

function* piecesOf(samples: Int32Array): Generator<Int32Array> {
  for (let from = 0; from < samples.length; from += PIECE) yield samples.slice(from, from + PIECE);
}

export interface SeriesNetworkOptions {
  readonly hidden: number;
  readonly layers: number;
  /** T. */
  readonly window: number;
  /** D. */
  readonly columns: number;
  /** K. */
  readonly tasks: number;
}

/** A GRU over the window and a linear output for each task, as programs. */
export interface SeriesNetwork {
  /** `x` [T, B, D]. */
  readonly inputs: InputTypes;
  /** Output `forecasts` [B, K]. */
  readonly forward: Model<InputTypes>;
  /** Further inputs `labels` and `weights`, [B, K]. */
  readonly trainingInputs: InputTypes;
  /** Output `loss` = Σ weights·(forecast − label)². */
  readonly training: Model<InputTypes>;
}

function createSeriesNetwork({ hidden, layers, window, columns, tasks }: SeriesNetworkOptions): SeriesNetwork {
  const inputs = { x: f32(window, 'B', columns) };
  const forecasts = (p: Parameters, x: Tensor): Tensor => {
    const { last } = gru(p.under('trunk'), x, { hidden, layers });
    return linear(p.under('output'), last[layers - 1], tasks); // [B, K]
  };
  return {
    inputs,
    forward: (p, { x }) => ({ forecasts: forecasts(p, x) }),
    trainingInputs: { ...inputs, labels: f32('B', tasks), weights: f32('B', tasks) },
    training: (p, { x, labels, weights }) => ({ loss: sum(mul(weights, square(sub(forecasts(p, x), labels)))) }),
  };
}
