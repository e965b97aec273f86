import {
  type Arena,
  type DeviceChoice,
  Gradients,
  Inference,
  type InputTypes,
  type LearningRate,
  type Model,
  Training,
} from '../optim/index.js';
import type { Random } from '../random.js';
import type { Ranks } from '../ranks.js';
import type { Snapshot } from '../run/index.js';
import type { Value } from '../tensor/index.js';
import type { GradientAccess, InfluenceAccess } from './problem.js';
import { type Learning, learningRateOf, optimizerOf } from './problem-kind.js';
import { captureTraining, restoreTraining } from './snapshots.js';

/** A network that forecasts several horizons, as programs over the same parameters. */
export interface NetworkPrograms {
  readonly inputs: InputTypes;
  /** Output `forecasts` [B, columns]. */
  readonly forward: Model<InputTypes>;
  /** `inputs`, labels and weights. */
  readonly trainingInputs: InputTypes;
  /** Output `loss`, a sum over samples and tasks. */
  readonly training: Model<InputTypes>;
}

/** How the network is trained. */
export interface NetworkTrainingOptions {
  readonly random: Random;
  /** η₁, and how it changes over the updates. */
  readonly learningRate: number;
  readonly learning?: Learning;
  readonly updates?: number;
  /** Maximum absolute value of a gradient. Default: none. */
  readonly clipValue?: number | null;
  readonly workers: number;
  readonly threads: number;
  readonly ranks?: Ranks;
  /** Default cpu. */
  readonly device?: DeviceChoice;
  /** Cores used for many forecasts. Default 1. */
  readonly forwardWorkers?: number;
  /** A separate loss for gradients in evaluation mode. Default: that of the training program. */
  readonly gradientOf?: Model<InputTypes>;
  /** Sets the initial parameters. Default: those of the initialisers. */
  readonly start?: (arena: Arena) => void;
}

type Feeds = Readonly<Record<string, Value>>;

/** What problems with one network share: its updates, forecasts and gradients, and their state. */
export class NetworkTraining {
  private gradientProgram: Promise<Gradients> | undefined;

  private constructor(
    private readonly programs: NetworkPrograms,
    private readonly training: Training,
    private readonly rate: LearningRate,
    private readonly inference: Inference,
    private readonly gradientOf: Model<InputTypes> | undefined,
  ) {}

  /** Starts the sessions for training and for inference, over the same parameters. */
  static async create(programs: NetworkPrograms, options: NetworkTrainingOptions): Promise<NetworkTraining> {
    const { random, learning, clipValue = null, workers, threads, ranks, gradientOf } = options;
    const rate = learningRateOf(options.learningRate, learning, options.updates);
    const training = await Training.create({
      model: programs.training,
      inputs: programs.trainingInputs,
      random: random.fork('model'),
      optimizer: optimizerOf(learning),
      clip: clipValue === null ? undefined : { value: clipValue },
      workers,
      threads,
      ranks,
      device: options.device,
    });
    try {
      const { arena } = training;
      options.start?.(arena);
      const { forward: model, inputs } = programs;
      const inference = await Inference.create({ model, inputs, arena, workers: options.forwardWorkers, ranks });
      return new NetworkTraining(programs, training, rate, inference, gradientOf);
    } catch (error) {
      // Worker threads would keep the process alive.
      await training.close();
      throw error;
    }
  }

  get arena(): Arena {
    return this.training.arena;
  }

  /** Updates so far. */
  get updates(): number {
    return this.training.updates;
  }

  /** One update; returns the loss and the other outputs of the training program. */
  async step(feeds: Feeds): ReturnType<Training['step']> {
    return this.training.step(feeds, this.rate.at(this.training.updates));
  }

  /** `forecasts` of the forward program, [B, columns]. */
  async forecast(feeds: Feeds): Promise<Float32Array> {
    return (await this.inference.run(feeds)).forecasts.data as Float32Array;
  }

  /** The same for many batches, on all cores, in the order of completion. */
  forecastMany(count: number, feedsOf: (i: number) => Feeds, take: (forecasts: Float32Array, i: number) => void) {
    return this.inference.runMany(count, feedsOf, ({ forecasts }, i) => take(forecasts.data as Float32Array, i));
  }

  /** `forecasts` with the parameters θ + shift and θ − shift, in parallel if there is another core. */
  async forecastAround(feeds: Feeds, shift: Float32Array): Promise<[ahead: Float32Array, behind: Float32Array]> {
    const [ahead, behind] = await this.inference.runAround(feeds, shift);
    return [ahead.forecasts.data as Float32Array, behind.forecasts.data as Float32Array];
  }

  /** Writes ∇θ of the loss of these inputs of the training program. */
  async gradient(feeds: Feeds, out: Float32Array): Promise<void> {
    if (this.gradientOf === undefined) return this.training.gradient(feeds, out);
    const { trainingInputs: inputs } = this.programs;
    this.gradientProgram ??= Gradients.create({ model: this.gradientOf, inputs, arena: this.arena });
    await (await this.gradientProgram).write(feeds, out);
  }

  /**
   * For strategies that compare the gradients of tasks.
   *
   * @param feeds the mean loss of a batch with every sample on one task, as inputs of the training program
   * @param rewards pieces of the reward data, or else of the validation data; used in turn, one per update
   */
  gradientAccess<Batch>(
    main: number,
    feeds: (batch: Batch, task: number) => Feeds,
    rewards: () => readonly (() => Batch)[],
  ): GradientAccess<Batch> {
    return {
      size: this.arena.length,
      ofTask: (batch, task, out) => this.gradient(feeds(batch, task), out),
      ofValidation: (out) => {
        const pieces = rewards();
        return this.gradient(feeds(pieces[this.updates % pieces.length](), main), out);
      },
    };
  }

  /** For strategies that measure how a task's gradient changes the main task's loss. */
  influence<Batch>(from: InfluenceMeasures<Batch>): InfluenceAccess<Batch> {
    return trainingInfluence({ ...from, training: this.training });
  }

  /** Reports the performance at a validation to the learning rate. */
  observe(performance: number): void {
    this.rate.observe(performance);
  }

  /** Copies what `capture` reads into memory. */
  settle(): Promise<void> {
    return this.training.settle();
  }

  /** Parameters that the model computes instead of learning them, such as running means. */
  assign(values: Readonly<Record<string, Value>>): Promise<void> {
    return this.training.assign(values);
  }

  /** Parameters, optimiser, dropout and learning rate. */
  capture(): Snapshot {
    return captureTraining(this.training, this.rate);
  }

  /** Restores what `capture` returned. */
  restore(snapshot: Snapshot): void {
    restoreTraining(this.training, snapshot, this.rate);
  }

  /** Releases native memory and threads. */
  async close(): Promise<void> {
    await this.training.close();
    await this.inference.close();
    await (await this.gradientProgram)?.close();
  }
}

/** Joins the columns of several tables, one row per sample; unknown values become 0, the mean. */
export function writeRows(tables: readonly Float32Array[], rows: number, out: Float32Array): void {
  const width = tables.reduce((sum, table) => sum + table.length / rows, 0);
  let at = 0;
  for (const table of tables) {
    const own = table.length / rows;
    for (let i = 0; i < rows; i++) out.set(table.subarray(i * own, (i + 1) * own), i * width + at);
    at += own;
  }
  for (let i = 0; i < rows * width; i++) if (Number.isNaN(out[i])) out[i] = 0;
}

/** The rows of a table [n, width] at these indices. */
export function rowsAt(table: Float32Array, places: Int32Array, width: number): Float32Array {
  const rows = new Float32Array(places.length * width);
  for (let i = 0; i < places.length; i++) {
    rows.set(table.subarray(places[i] * width, (places[i] + 1) * width), i * width);
  }
  return rows;
}

/** The weight of each sample on its task and 0 on the others, [n, K]. */
export function taskWeights(tasks: ArrayLike<number>, K: number, weightOf: (sample: number) => number): Float32Array {
  const matrix = new Float32Array(tasks.length * K);
  for (let i = 0; i < tasks.length; i++) matrix[i * K + tasks[i]] = weightOf(i);
  return matrix;
}

/** What a problem with its parameters in a `Training` provides to be measured. */
export type TrainingInfluence<Batch> = InfluenceMeasures<Batch> & { readonly training: Training };

/** The same without the training. */
export type InfluenceMeasures<Batch> = MainGradients<Batch> & (LossesHere<Batch> | LossesAround<Batch>);

interface MainGradients<Batch> {
  /** Whether all tasks share the parameter of this name. Default: all do. */
  readonly shared?: (name: string) => boolean;
  /** Samples of a batch worth measuring. Default 256; fewer if each task takes a forward pass. */
  readonly samples?: number;
  /** Pieces of the reward data. */
  readonly pieces: number;
  /** Writes ∇θ of the main task's mean loss on a piece, laid out like the arena, in evaluation mode. */
  gradient(piece: number, out: Float32Array): Promise<void>;
  /** Places in the batch of about this many samples. */
  sample(batch: Batch, samples: number): Int32Array;
}

interface LossesHere<Batch> {
  /** Losses [n, K] of these samples on all tasks at the current parameters, in evaluation mode. */
  losses(batch: Batch, places: Int32Array): Promise<Float32Array>;
}

interface LossesAround<Batch> {
  /** The same at θ + shift and θ − shift, if the problem can compute both in parallel. */
  lossesAround(
    batch: Batch,
    places: Int32Array,
    shift: Float32Array,
  ): Promise<readonly [ahead: Float32Array, behind: Float32Array]>;
}

/** Measures influences by finite differences: losses with the parameters shifted ahead and behind. */
export function trainingInfluence<Batch>(from: TrainingInfluence<Batch>): InfluenceAccess<Batch> {
  const { training, shared = () => true } = from;
  const { arena } = training;
  const ofSingleTasks = arena.trained.filter((name) => !shared(name));
  return {
    size: arena.length,
    samples: from.samples ?? 256,
    pieces: from.pieces,
    gradient: async (piece, out) => {
      await from.gradient(piece, out);
      await training.settle();
      for (const name of ofSingleTasks) arena.view(out, name).fill(0);
    },
    shift: (gradient, out) => {
      const length = training.direction(gradient, out);
      if (length === 0) return;
      const factor = (RELATIVE_LENGTH * norm(arena.values.subarray(0, arena.length))) / length;
      for (let i = 0; i < out.length; i++) out[i] *= factor;
    },
    losses: async (batch, samples, shift) => {
      await training.settle();
      const places = from.sample(batch, samples);
      if ('lossesAround' in from) {
        const [ahead, behind] = await from.lossesAround(batch, places, shift);
        return { samples: places, ahead, behind };
      }
      const ahead = await arena.shifted(shift, 1, () => from.losses(batch, places));
      const behind = await arena.shifted(shift, -1, () => from.losses(batch, places));
      return { samples: places, ahead, behind };
    },
  };
}

/** Evenly spaced places in a batch, at most `samples` of them. */
export function spacedPlaces(size: number, samples: number): Int32Array {
  const count = Math.min(size, samples);
  return Int32Array.from({ length: count }, (_, i) => Math.floor(((i + 0.5) * size) / count));
}

/** All indices of a part, dealt out to pieces that each span the whole part. */
export function scatteredPieces(size: number, pieces: number): Int32Array[] {
  const count = Math.min(size, Math.max(1, Math.round(pieces)));
  return Array.from({ length: count }, (_, piece) =>
    Int32Array.from({ length: Math.ceil((size - piece) / count) }, (_unused, i) => piece + i * count),
  );
}

/**
 * ‖u‖ ∕ ‖θ‖. A loss changes by about this share of itself, a thousand times the precision of f32, and the cubic term, the
 * first that the difference of two points leaves, by its cube.
 */
const RELATIVE_LENGTH = 3e-3;

function norm(vector: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < vector.length; i++) sum += vector[i] * vector[i];
  return Math.sqrt(sum);
}
