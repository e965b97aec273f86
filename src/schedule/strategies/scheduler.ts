import { z } from 'zod';
import { InputError } from '../../errors.js';
import { lastSize, linear, torchLinear, torchUniform, zeros } from '../../nn/index.js';
import { Inference, type InputTypes, type OptimizerConfig, Training } from '../../optim/index.js';
import type { Random } from '../../random.js';
import type { Snapshot } from '../../run/index.js';
import {
  exp,
  f32,
  i32,
  logSoftmax,
  mul,
  neg,
  type Parameters,
  pick,
  relu,
  linear as scaledLinear,
  sub,
  sum,
  type Tensor,
  tanh,
} from '../../tensor/index.js';
import { captureTraining, restoreTraining } from '../snapshots.js';

/** Equally many states and actions. */
export interface Actions {
  /** [rows, width] */
  readonly features: Float32Array;
  /** [rows] */
  readonly tasks: Int32Array;
}

/** The option `hidden` of strategies with a network. */
export const hiddenWidths = z.array(z.int().min(1)).min(1).describe('Widths of the hidden layers.');

/** The option `without` of strategies that see all features by default. */
export const withoutGroups = z
  .array(z.string())
  .default([])
  .describe('Names of feature groups hidden from the scheduler.');

export interface SchedulerOptions {
  /** Widths of the hidden layers. */
  readonly hidden: readonly number[];
  readonly activation: 'tanh' | 'relu';
  readonly optimizer: OptimizerConfig;
  readonly clip?: { readonly norm?: number; readonly value?: number };
  /** Whether the last layer starts at zero, so that every task is equally likely; otherwise as in PyTorch. */
  readonly startUniform: boolean;
  /** Threads inside one operation of an update. */
  readonly threads: number;
  /** Whether updates are given drawn actions (`ascend`) or the credits of all of them (`ascendCredits`). Default actions. */
  readonly learnsFrom?: 'actions' | 'credits';
}

/** How z follows from the features: z = (x − mean)·inverseStd. */
export interface Scale {
  readonly mean: Float32Array;
  readonly inverseStd: Float32Array;
}

export interface Ascent {
  /** Factor of Σ log P. */
  readonly gain: number;
  /** Factor of Σ H. */
  readonly entropy: number;
  /** η₂. */
  readonly learningRate: number;
}

/** Name of the network φ in a checkpoint of a strategy. It was first called so, and runs are resumed by it. */
export const NETWORK = 'policy';

/** The scheduler φ(I; ω): a multilayer perceptron over the features whose softmax is the distribution of the task. */
export class SchedulerNetwork {
  private constructor(
    private readonly width: number,
    private readonly training: Training,
    private readonly inference: Inference,
  ) {}

  static async create(
    width: number,
    tasks: number,
    random: Random,
    options: SchedulerOptions,
  ): Promise<SchedulerNetwork> {
    const logits = network(tasks, options);
    const fromCredits = options.learnsFrom === 'credits';
    const training = await Training.create({
      // − Σ objective − entropy·Σ H, to minimise; the objective is gain·log P(T), or Σ_T P(T)·credit.
      model: (p, { features, mean, inverseStd, actions, credits, gain, entropy }) => {
        const logP = logSoftmax(logits(p, features, mean, inverseStd)); // [N, K]
        const objective = fromCredits ? sum(mul(exp(logP), credits)) : sum(pick(logP, actions));
        const spread = mul(entropy, sum(mul(exp(logP), logP)));
        return { loss: sub(spread, mul(gain, objective)) };
      },
      inputs: {
        ...inputs(width),
        ...(fromCredits ? { credits: f32('N', tasks) } : { actions: i32('N') }),
        gain: f32(),
        entropy: f32(),
      } as InputTypes,
      batch: 'N',
      random,
      optimizer: options.optimizer,
      clip: options.clip,
      threads: options.threads,
    });
    const inference = await Inference.create({
      model: (p, { features, mean, inverseStd }) => {
        const logP = logSoftmax(logits(p, features, mean, inverseStd));
        const probabilities = exp(logP);
        return { probabilities, entropy: neg(sum(mul(probabilities, logP))) };
      },
      inputs: inputs(width),
      arena: training.arena,
      // A batch is too small to be worth waiting for another thread.
      threads: 1,
    });
    return new SchedulerNetwork(width, training, inference);
  }

  /** The distributions [N, K] for N rows of features, and the sum of their entropies in nats. */
  async evaluate(features: Float32Array, scale: Scale): Promise<{ probabilities: Float32Array; entropy: number }> {
    const { probabilities, entropy } = await this.inference.run(this.feeds(features, scale));
    const sum = entropy.data[0] as number;
    if (!Number.isFinite(sum)) throw this.notFinite(features);
    return { probabilities: probabilities.data as Float32Array, entropy: sum };
  }

  /** ω ← ω + η₂ ∇ω Σ (gain·log P(T | I) + entropy·H(I)) over all chunks, or the optimiser's version of it. ‖∇ω‖. */
  async ascend(chunks: readonly Actions[], scale: Scale, { gain, entropy, learningRate }: Ascent): Promise<number> {
    const factors = { gain: scalar(gain), entropy: scalar(entropy) };
    const feeds = chunks.map(({ features, tasks }) => ({
      ...this.feeds(features, scale),
      ...factors,
      actions: { data: tasks, shape: [tasks.length] },
    }));
    return (await this.training.step(feeds, learningRate)).gradNorm;
  }

  /** ω ← ω + η₂ ∇ω (1/N) Σᵢ (Σ_T P(T | Iᵢ)·credit_iT + entropy·H(Iᵢ)), or the optimiser's version of it. ‖∇ω‖. */
  async ascendCredits(
    features: Float32Array,
    credits: Float32Array,
    scale: Scale,
    { entropy, learningRate }: Omit<Ascent, 'gain'>,
  ): Promise<number> {
    const rows = features.length / this.width;
    const feeds = {
      ...this.feeds(features, scale),
      credits: { data: credits, shape: [rows, credits.length / rows] },
      gain: scalar(1 / rows),
      entropy: scalar(entropy / rows),
    };
    return (await this.training.step(feeds, learningRate)).gradNorm;
  }

  capture(): Snapshot {
    return captureTraining(this.training);
  }

  restore(snapshot: Snapshot): void {
    restoreTraining(this.training, snapshot);
  }

  async close(): Promise<void> {
    await Promise.all([this.training.close(), this.inference.close()]);
  }

  private notFinite(features: Float32Array): InputError {
    const at = features.findIndex((value) => !Number.isFinite(value));
    if (at < 0) return new InputError('the parameters of the scheduler have become infinite: lower its learning rate');
    const [row, column] = [Math.floor(at / this.width), at % this.width];
    return new InputError(`feature ${column + 1} of sample ${row + 1} of the batch is ${features[at]}`);
  }

  private feeds(features: Float32Array, { mean, inverseStd }: Scale) {
    return {
      features: { data: features, shape: [features.length / this.width, this.width] },
      mean: { data: mean, shape: [this.width] },
      inverseStd: { data: inverseStd, shape: [this.width] },
    };
  }
}

const inputs = (width: number) =>
  ({ features: f32('N', width), mean: f32(width), inverseStd: f32(width) }) satisfies InputTypes;

const scalar = (value: number) => ({ data: Float32Array.of(value), shape: [] });

/**
 * W₁z + b₁ with z = (x − mean)·inverseStd is computed as (W₁·inverseStd)x + (b₁ − (W₁·inverseStd)mean): the scale is applied
 * to the small weight instead of all the features.
 */
function network(tasks: number, { hidden, activation, startUniform }: SchedulerOptions) {
  const squash = activation === 'tanh' ? tanh : relu;
  return (p: Parameters, features: Tensor, mean: Tensor, inverseStd: Tensor): Tensor => {
    const width = lastSize(features);
    const first = p.under(0);
    const weight = mul(first.get('weight', [hidden[0], width], torchLinear), inverseStd); // [H, F]
    const offset = sum(mul(weight, mean), { axes: [-1] }); // [H]
    const bias = sub(first.get('bias', [hidden[0]], torchUniform(width)), offset);
    const below = squash(scaledLinear(features, weight, bias)); // [N, H]
    const top = hidden.slice(1).reduce((h, size, i) => squash(linear(p.under(i + 1), h, size)), below);
    const start = startUniform ? { weight: zeros, biasStart: zeros } : {};
    return linear(p.under(hidden.length), top, tasks, start); // [N, K]
  };
}

/** Running means and scales of features (Chan et al. 1979, in f64). */
export class Standardisation implements Scale {
  readonly mean: Float32Array;
  readonly inverseStd: Float32Array;
  private count = 0;
  private means: Float64Array;
  /** Σ (x − mean)² */
  private squares: Float64Array;
  /** Whether a feature has differed between rows of one `add`. */
  private varied: boolean[];

  /**
   * Before any data, features are unchanged.
   *
   * @param withinBatches ignore (z = 0) a feature that was the same for all rows of every `add`, such as the time
   */
  constructor(
    width: number,
    private readonly withinBatches = false,
  ) {
    this.varied = new Array<boolean>(width).fill(false);
    this.mean = new Float32Array(width);
    this.inverseStd = new Float32Array(width).fill(1);
    this.means = new Float64Array(width);
    this.squares = new Float64Array(width);
  }

  get isEmpty(): boolean {
    return this.count === 0;
  }

  /** Adds rows; z = (x − mean)·inverseStd from then on. A feature that has never changed is only centred. */
  add(rows: Iterable<Float32Array>): void {
    let first: Float32Array | undefined;
    for (const row of rows) {
      first ??= row;
      this.count++;
      for (let j = 0; j < row.length; j++) {
        if (row[j] !== first[j]) this.varied[j] = true;
        const off = row[j] - this.means[j];
        this.means[j] += off / this.count;
        this.squares[j] += off * (row[j] - this.means[j]);
      }
    }
    this.publish();
  }

  state() {
    const { count, means, squares, varied } = this;
    return { count, means: Array.from(means), squares: Array.from(squares), varied: [...varied] };
  }

  load({ count, means, squares, varied }: ReturnType<Standardisation['state']>): void {
    this.varied = [...varied];
    this.count = count;
    this.means = Float64Array.from(means);
    this.squares = Float64Array.from(squares);
    this.publish();
  }

  private publish(): void {
    if (this.count === 0) {
      this.mean.fill(0);
      this.inverseStd.fill(1);
      return;
    }
    this.mean.set(this.means);
    for (let j = 0; j < this.squares.length; j++) {
      const std = Math.sqrt(this.squares[j] / this.count);
      // A spread below the resolution of f32 is rounding error.
      this.inverseStd[j] = std > RESOLUTION * Math.abs(this.means[j]) && std > 0 ? 1 / std : 1;
      if (this.withinBatches && !this.varied[j]) this.inverseStd[j] = 0;
    }
  }
}

const RESOLUTION = 1e-6;
