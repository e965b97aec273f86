import { type DeviceChoice, deviceFor } from '../devices.js';
import { InputError } from '../errors.js';
import { linear, zeros } from '../nn/index.js';
import { type Arena, Inference, type InputTypes, type Model } from '../optim/index.js';
import { rowsAt } from '../schedule/index.js';
import { add, f32, gather, i64, type Parameters, type Tensor, type Value } from '../tensor/index.js';
import { batchAt, type FeatureSource, type ForecastBatch, piecesOf } from './data/dataset.js';
import { columnCount, type FeatureSpec, featureWidth, type Layout } from './data/features.js';
import type { Samples } from './data/panel.js';
import { type ModelConfig, modelNamed } from './models/index.js';
import type { Architecture, TrunkMode } from './models/model.js';
import { type LossName, needsDays, weightedLoss } from './scores.js';

export interface NetworkOptions {
  readonly model: ModelConfig;
  /**
   * `shared`: one output for all tasks. `heads`: an output for each task. `embedding`: one output, and a learned
   * vector of the task added to the input of every day.
   */
  readonly sharing: 'shared' | 'heads' | 'embedding';
  /** K. */
  readonly tasks: number;
  readonly features: FeatureSpec;
  /** Default `mse`. */
  readonly loss?: LossName;
}

/**
 * A model and its output layer as programs. Inputs of both: `x` (see `Layout`), `day` [B] if `seesDays`, `task` [B] with
 * the sharing `embedding`.
 */
export interface Network extends NetworkOptions {
  readonly layout: Layout;
  /** Whether the forward pass gets the days as input. */
  readonly seesDays: boolean;
  /** Whether batches are made of whole days: the architecture sees them, or the loss does. */
  readonly wholeDays: boolean;
  readonly wholeBatch: boolean;
  /** Columns of the forecasts: K with `heads`, else 1. */
  readonly columns: number;
  readonly inputs: InputTypes;
  /** Output `forecasts` [B, columns]. */
  readonly forward: Model<InputTypes>;
  readonly trainingInputs: InputTypes;
  /**
   * Further inputs `labels` and `weights`, [B, K], with `embedding` [B, 1]. Output `loss` = Σ weights · loss
   * (`weightedLoss`), and `keep/<parameter>`: the next value of a parameter that gradients do not reach.
   */
  readonly training: Model<InputTypes>;
  /** Output `loss`, in evaluation mode. */
  readonly evaluated: Model<InputTypes>;
}

export const KEEP = 'keep/';

export function createNetwork(options: NetworkOptions): Network {
  const { model, sharing, tasks, features, loss: lossName = 'mse' } = options;
  const { layout, seesDays = false, wholeBatch = false, trunk } = architectureOf(model);
  const lossSeesDays = needsDays(lossName);
  if (lossSeesDays && sharing === 'embedding') {
    throw new InputError(
      `the loss ${lossName} compares the stocks of a day, which must all be on one task: expected heads or shared`,
      { key: 'problem.sharing' },
    );
  }
  if (seesDays && sharing === 'embedding') {
    throw new InputError(
      `with ${model.name} the stocks of a day see each other and must all be on one task: expected heads or shared`,
      { key: 'problem.sharing' },
    );
  }
  const columns = sharing === 'heads' ? tasks : 1;
  const width = layout === 'flat' ? columnCount(features) : featureWidth(features);
  const inputs: InputTypes = {
    x: layout === 'flat' ? f32('B', width) : f32(features.window, 'B', width),
    ...(seesDays ? { day: i64('B') } : {}),
    ...(sharing === 'embedding' ? { task: i64('B') } : {}),
  };
  const labelled = sharing === 'embedding' ? 1 : tasks;

  const forecasts = (p: Parameters, { x, day, task }: Readonly<Record<string, Tensor>>, mode: TrunkMode): Tensor => {
    const input = task === undefined ? x : add(x, gather(p.get('task.weight', [tasks, width], zeros), task));
    return linear(p.under('output'), trunk(p.under('trunk'), { x: input, day }, model, mode), columns); // [B, columns]
  };
  const loss = (p: Parameters, given: Readonly<Record<string, Tensor>>, mode: TrunkMode): Tensor => {
    const { labels, weights, known, day } = given;
    return weightedLoss(lossName, { forecasts: forecasts(p, given, mode), labels, weights, known, day }, tasks);
  };
  return {
    ...options,
    layout,
    seesDays,
    wholeDays: seesDays || lossSeesDays,
    wholeBatch: wholeBatch || lossSeesDays,
    columns,
    inputs,
    forward: (p, given) => ({ forecasts: forecasts(p, given, { training: false, keep: () => {} }) }),
    trainingInputs: {
      ...inputs,
      labels: f32('B', labelled),
      weights: f32('B', labelled),
      ...(lossSeesDays ? { day: i64('B'), known: f32('B', labelled) } : {}),
    },
    training: (p, given) => {
      const kept: Record<string, Tensor> = {};
      const keep = (parameter: string, value: Tensor) => {
        kept[`${KEEP}trunk.${parameter}`] = value;
      };
      return { loss: loss(p, given, { training: true, keep }), ...kept };
    },
    evaluated: (p, given) => ({ loss: loss(p, given, { training: false, keep: () => {} }) }),
  };
}

function architectureOf({ name }: ModelConfig): Architecture<ModelConfig> {
  const { architecture, title } = modelNamed(name);
  if (architecture === undefined) throw new InputError(`${title} is not a network`, { key: 'problem.model.name' });
  return architecture;
}

/**
 * The forward program with the parameters of an arena. Many forecasts are spread over several cores, one thread each: the
 * steps of a recurrence are too small to split; with two threads they take three times as long as with one.
 */
export async function openForward(
  network: Network,
  arena: Arena,
  workers: number,
  choice: DeviceChoice = 'cpu',
): Promise<ForwardPass & Inference> {
  const { forward: model, inputs } = network;
  const device = deviceFor(choice, arena.parameterCount);
  const inference = await Inference.create({ model, inputs, arena, workers, device });
  const forecastMany: ForwardPass['forecastMany'] = (count, feeds, take) =>
    inference.runMany(count, feeds, ({ forecasts }, i) => take(forecasts.data as Float32Array, i));
  return Object.assign(inference, { forecastMany });
}

/** x as an input of the programs, for this many samples. */
export function inputValue({ layout, features }: Network, x: Float32Array, samples: number): Value {
  const shape =
    layout === 'flat' ? [samples, columnCount(features)] : [features.window, samples, featureWidth(features)];
  return { data: x, shape };
}

/** The inputs of a network's programs; `tasks` has the task of each sample, for networks that are told. */
export function feedsOf(network: Network, batch: ForecastBatch, tasks: ArrayLike<number>): Record<string, Value> {
  const { positions, x } = batch;
  const shape = [positions.length];
  const feeds: Record<string, Value> = { x: inputValue(network, x, positions.length) };
  if (network.seesDays) feeds.day = dayValue(batch);
  if (network.sharing === 'embedding') feeds.task = { data: BigInt64Array.from(Array.from(tasks, BigInt)), shape };
  return feeds;
}

/** The inputs of the training program: `matrix` is the weight of each task, [B, K]. */
export function trainingFeeds(network: Network, batch: ForecastBatch, matrix: Float32Array): Record<string, Value> {
  const { rows, tasks, labels, weights, known } = networkRows(network, batch.labels, matrix, network.tasks);
  const feeds = {
    ...feedsOf(network, rows === undefined ? batch : takeRows(network, batch, rows), tasks),
    labels,
    weights,
  };
  if (!('known' in network.trainingInputs) || known === undefined) return feeds;
  return { ...feeds, known, day: dayValue(batch) };
}

function dayValue({ samples, positions }: ForecastBatch): Value {
  return { data: BigInt64Array.from(positions, (i) => BigInt(samples.day[i])), shape: [positions.length] };
}

type Feeds = Readonly<Record<string, Value>>;

/** Anything that runs the forward program. */
interface ForwardPass {
  /** Receives the forecasts of this many batches, in any order. */
  forecastMany(
    count: number,
    feedsOf: (i: number) => Feeds,
    take: (forecasts: Float32Array, i: number) => void,
  ): Promise<void>;
}

/** The inputs of the forward program, with every sample on one task. */
export function feedsOfTask(network: Network, batch: ForecastBatch, task: number): Feeds {
  return feedsOf(network, batch, new Int32Array(batch.positions.length).fill(task));
}

/** Forecasts of one task for all samples, in their order. */
export async function forecastSamples(
  network: Network,
  pass: ForwardPass,
  data: FeatureSource,
  samples: Samples,
  task: number,
): Promise<Float32Array> {
  const out = new Float32Array(samples.length);
  const { columns } = network;
  const column = columns === 1 ? 0 : task;
  const pieces = [...piecesOf(samples, network.seesDays)];
  const feeds = (i: number): Feeds =>
    feedsOfTask(network, batchAt(data, { samples, labels: NO_LABELS }, pieces[i], network.layout), task);
  await pass.forecastMany(pieces.length, feeds, (values, i) => {
    for (const [row, position] of pieces[i].entries()) out[position] = values[row * columns + column];
  });
  return out;
}

const NO_LABELS = new Float32Array();

/**
 * The weight of each task in an update, [B, K], from the shares of the tasks [B, K] that a strategy chose (rows sum to one)
 * and the weight wᵢ of each sample:
 *
 *     replace   wᵢ · share_{ik} / Σw
 *     add       wᵢ / Σw for the main task, wᵢ · auxiliaryWeight · share_{ik} / Σw for the others
 *     all       wᵢ · (1 + share_{ik}) / Σw for the main task, times auxiliaryWeight for the others
 */
export function weightMatrix(
  shares: Float32Array,
  weights: Float32Array,
  main: number,
  { chosen, auxiliaryWeight }: { chosen: 'replace' | 'add' | 'all'; auxiliaryWeight: number },
): Float32Array {
  const K = shares.length / weights.length;
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return shares.map((share, at) => {
    const weight = weights[Math.floor(at / K)] / total;
    if (chosen === 'replace') return weight * share;
    const scale = at % K === main ? weight : weight * auxiliaryWeight;
    if (chosen === 'all') return scale * (1 + share);
    return at % K === main ? scale : scale * share;
  });
}

/** The rows on which a network computes an update. */
export interface NetworkRows {
  /** Index in the batch of each row's sample; undefined: a row for each sample, in order. */
  readonly rows?: Int32Array;
  /** Task of each row, if a row has one. */
  readonly tasks: Int32Array;
  readonly labels: Value;
  readonly weights: Value;
  /** 1 where the label is known. */
  readonly known?: Value;
}

/**
 * With the sharing `embedding` a row for each sample and task that counts, else one row per sample and one column per task.
 *
 * @param labels [B, K]
 * @param matrix [B, K]
 */
export function networkRows(
  { sharing }: Pick<Network, 'sharing'>,
  labels: Float32Array,
  matrix: Float32Array,
  K: number,
): NetworkRows {
  if (sharing !== 'embedding') {
    // An unknown label must not spoil the sum, not even with weight 0.
    const weights = matrix.map((weight, at) => (Number.isNaN(labels[at]) ? 0 : weight));
    const shape = [matrix.length / K, K];
    const values = labels.map((label) => label || 0);
    const known = labels.map((label) => (Number.isNaN(label) ? 0 : 1));
    return {
      tasks: new Int32Array(),
      labels: { data: values, shape },
      weights: { data: weights, shape },
      known: { data: known, shape },
    };
  }
  const places = Int32Array.from(matrix.keys()).filter((at) => matrix[at] > 0 && !Number.isNaN(labels[at]));
  const shape = [places.length, 1];
  return {
    rows: places.map((at) => Math.floor(at / K)),
    tasks: places.map((at) => at % K),
    labels: { data: Float32Array.from(places, (at) => labels[at]), shape },
    weights: { data: Float32Array.from(places, (at) => matrix[at]), shape },
  };
}

/** The features of each sample in one row, field by field, taken from those in the layout of the network. */
export function flatRows(network: Network, { positions, x }: ForecastBatch): Float32Array {
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

/** The samples at the given indices in the batch, some possibly several times. */
export function takeRows(network: Network, batch: ForecastBatch, rows: Int32Array): ForecastBatch {
  const { samples, positions, x, labels } = batch;
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
  return {
    samples,
    positions: rows.map((place) => positions[place]),
    x: taken,
    labels: rowsAt(labels, rows, labels.length / size),
  };
}
