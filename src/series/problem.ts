import { join } from 'node:path';
import { InputError } from '../errors.js';
import { writeFileAtomic } from '../files.js';
import { mean } from '../metrics/index.js';
import { Gradients, Inference, type LearningRate, Training } from '../optim/index.js';
import { Random, type RandomState } from '../random.js';
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
import type { SeriesConfig } from './config.js';
import { openSeries, type SeriesData, windowsAt } from './data-set.js';
import { createNetwork, type Network } from './network.js';

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
  /** Only where part of the validation data is set aside for it. */
  readonly influence: InfluenceAccess<SeriesBatch> | undefined;
  /** Only where labels are spoilt. */
  readonly oracle?: (batch: SeriesBatch) => Float32Array;
  private sampling: Random;
  private gradientProgram: Promise<Gradients> | undefined;

  private constructor(
    private readonly config: SeriesConfig,
    private readonly data: SeriesData,
    private readonly network: Network,
    private readonly training: Training,
    private readonly learningRate: LearningRate,
    private readonly inference: Inference,
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
    this.gradients = {
      size: training.arena.length,
      ofTask: (batch, task, out) => this.gradient(batch, task, out),
      ofValidation: (out) => this.gradient(this.rewardBatch(), this.main, out),
    };
    this.influence = data.parts.reward.length > 0 ? this.influenceOn(data.parts.reward) : undefined;
  }

  static async create(config: SeriesConfig, context: ProblemContext): Promise<SeriesProblem> {
    const { random, threads, workers, updates, ranks, note } = context;
    const data = openSeries(config);
    if (data.filled > 0) note?.(`data: ${data.filled} missing cells, each filled with the value before`);
    const network = createNetwork({
      ...config.model,
      window: config.window,
      columns: data.names.length,
      tasks: data.horizons.length,
    });
    const learningRate = learningRateOf(config.learningRate, config.learning, updates);
    const training = await Training.create({
      model: network.training,
      inputs: network.trainingInputs,
      random: random.fork('model'),
      optimizer: optimizerOf(config.learning),
      workers,
      threads,
      ranks,
    });
    const { forward: model, inputs } = network;
    let inference: Inference | undefined;
    try {
      // The steps of a recurrence are too small to be divided over threads.
      inference = await Inference.create({ model, inputs, arena: training.arena, ranks });
      return new SeriesProblem(config, data, network, training, learningRate, inference, random);
    } catch (error) {
      // The threads of the workers would keep the process alive.
      await training.close();
      await inference?.close();
      throw error;
    }
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
    const columns: Record<string, (i: number) => ArrayLike<number>> = {
      progress: () => [status.update / status.updates],
      inputs: (i) => data.rows.subarray(ends[i] * D, (ends[i] + 1) * D),
      spread: (i) => [data.spread[ends[i]]],
      labels: (i) => labels.subarray(i * K, (i + 1) * K),
      forecasts: (i) => forecasts.subarray(i * K, (i + 1) * K),
      loss: (i) => [(forecasts[i * K + main] - labels[i * K + main]) ** 2],
    };
    let at = 0;
    for (let i = 0; i < ends.length; i++) {
      for (const group of groups) {
        const values = columns[group](i);
        out.set(values, at);
        at += values.length;
      }
    }
  }

  async train(batch: SeriesBatch, { tasks, weights }: Assignment): Promise<number> {
    const K = this.tasks.length;
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    const matrix = new Float32Array(tasks.length * K);
    for (let i = 0; i < tasks.length; i++) matrix[i * K + tasks[i]] = weights[i] / total;
    return this.update(batch, matrix);
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
    this.learningRate.observe(performance);
  }

  /**
   * Of the main task on the test part: `loss` in units of the label, `MSE` and `MAE` in deviations of the target, as
   * published for such series, `raw` in units of the target, and the share of the error of "no change" that is not made.
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

  /** What the data were like, and the scales that turn forecasts into units of the target: `data.json`. */
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
    writeFileAtomic(join(folder, 'data.json'), `${JSON.stringify(summary, null, 1)}\n`);
  }

  capture(): Snapshot {
    const state: SamplingState = { sampling: this.sampling.state(), labelScales: this.data.labelScales };
    return joinSnapshots({ model: captureTraining(this.training, this.learningRate), data: stateOnly(state) });
  }

  restore(snapshot: Snapshot): void {
    const { sampling, labelScales } = partOf(snapshot, 'data').state as SamplingState;
    if (labelScales.some((scale, k) => scale !== this.data.labelScales[k])) {
      throw new InputError('the training part is not the one that the run was begun with', { key: 'problem.data' });
    }
    restoreTraining(this.training, partOf(snapshot, 'model'), this.learningRate);
    this.sampling = Random.restore(sampling);
  }

  async close(): Promise<void> {
    await this.training.close();
    await this.inference.close();
    await (await this.gradientProgram)?.close();
  }

  private batchOf(ends: Int32Array): SeriesBatch {
    const K = this.tasks.length;
    const labels = new Float32Array(ends.length * K);
    ends.forEach((t, i) => {
      labels.set(this.data.labels.subarray(t * K, (t + 1) * K), i * K);
    });
    return { ends, x: windowsAt(this.data, ends), labels };
  }

  /** [B, K] */
  private async forecasts({ ends, x }: SeriesBatch): Promise<Float32Array> {
    const { window, names } = this.data;
    const { forecasts } = await this.inference.run({ x: { data: x, shape: [window, ends.length, names.length] } });
    return forecasts.data as Float32Array;
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
    return (await this.training.step(this.feeds(batch, matrix), this.learningRate.at(this.training.updates))).loss;
  }

  private async gradient(batch: SeriesBatch, task: number, out: Float32Array): Promise<void> {
    const K = this.tasks.length;
    const size = batch.ends.length;
    const matrix = Float32Array.from({ length: size * K }, (_, at) => (at % K === task ? 1 / size : 0));
    const { network, training } = this;
    this.gradientProgram ??= Gradients.create({
      model: network.training,
      inputs: network.trainingInputs,
      arena: training.arena,
    });
    await (await this.gradientProgram).write(this.feeds(batch, matrix), out);
  }

  private influenceOn(reward: Int32Array): InfluenceAccess<SeriesBatch> {
    // Neighbours have nearly the same window: a piece has samples of the whole part.
    const pieces = scatteredPieces(reward.length, Math.ceil(reward.length / PIECE)).map((places) =>
      places.map((place) => reward[place]),
    );
    return trainingInfluence<SeriesBatch>({
      training: this.training,
      shared: (name) => !name.startsWith('output.'),
      pieces: pieces.length,
      gradient: (piece, out) => this.gradient(this.batchOf(pieces[piece]), this.main, out),
      sample: ({ ends }, samples) => spacedPlaces(ends.length, samples),
      losses: async ({ ends }, places) => {
        const some = this.batchOf(places.map((place) => ends[place]));
        return (await this.forecasts(some)).map((forecast, at) => (forecast - some.labels[at]) ** 2);
      },
    });
  }

  /** A piece of the reward data, where there are none of the validation data; another one after each update. */
  private rewardBatch(): SeriesBatch {
    const { reward, validation } = this.data.parts;
    const pieces = [...piecesOf(reward.length > 0 ? reward : validation)];
    return this.batchOf(pieces[this.training.updates % pieces.length]);
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
  /** Batches are drawn at random, so that the generator is the place in the data. */
  readonly sampling: RandomState;
  readonly labelScales: readonly number[];
}

/** Samples whose states stay in the cache; more at a time are slower. */
const PIECE = 500;

function* piecesOf(samples: Int32Array): Generator<Int32Array> {
  for (let from = 0; from < samples.length; from += PIECE) yield samples.slice(from, from + PIECE);
}
