import { z } from 'zod';
import { InputError } from '../errors.js';
import { Random, type RandomState } from '../random.js';
import type { Snapshot } from '../run/index.js';
import {
  type Assignment,
  type FeatureGroup,
  type GradientAccess,
  type InfluenceAccess,
  type Problem,
  type ShiftedLosses,
  type Status,
  type Task,
  taskIndex,
} from './problem.js';
import { problemKind } from './problem-kind.js';

/**
 * Which task to choose is known here: the labels of `clean` are those of the main task without its noise, and the
 * others point 60°, 120° and 180° away from it. With probabilities p the model tends to Σ p_T w_T, so the best
 * distribution is all on `clean`: only `main` and `clean` lead to the right place, and only `clean` to rest there.
 */
export function knownAnswer(random: Random): LinearProblem {
  const [along, across] = orthogonalPair(random.fork('teachers'));
  const at = (degrees: number) => [rotated(along, across, degrees)];
  return new LinearProblem({
    random,
    main: 'main',
    answers: ['clean'],
    teachers: [
      { name: 'clean', slopes: at(0), noise: 0 },
      { name: 'main', slopes: at(0), noise: NOISE },
      { name: 'off-60', slopes: at(60), noise: 0 },
      { name: 'off-120', slopes: at(120), noise: 0 },
      { name: 'off-180', slopes: at(180), noise: 0 },
    ],
  });
}

/**
 * Which task to choose depends on the kind of the sample: the labels of `even` are right for samples of kind 0 and
 * have the wrong sign for those of kind 1; with `odd` it is the other way round. `main` is right for both, but noisy.
 */
export function contextual(random: Random): LinearProblem {
  const [along, across] = orthogonalPair(random.fork('teachers'));
  const [right, wrong] = [rotated(along, across, 0), rotated(along, across, 180)];
  return new LinearProblem({
    random,
    main: 'main',
    answers: ['even', 'odd'],
    teachers: [
      { name: 'main', slopes: [right, right], noise: NOISE },
      { name: 'even', slopes: [right, wrong], noise: 0 },
      { name: 'odd', slopes: [wrong, right], noise: 0 },
    ],
  });
}

/** D. */
const DIMENSION = 8;
/** ‖w_T‖ */
const LENGTH = 1.5;
const NOISE = 4;

function rotated(along: readonly number[], across: readonly number[], degrees: number): number[] {
  const angle = (degrees * Math.PI) / 180;
  return along.map((a, j) => LENGTH * (Math.cos(angle) * a + Math.sin(angle) * across[j]));
}

/** Two random directions at right angles, of length 1. */
function orthogonalPair(random: Random): [number[], number[]] {
  const direction = () => unit(Array.from({ length: DIMENSION }, () => random.normal()));
  const [along, other] = [direction(), direction()];
  const overlap = along.reduce((sum, a, j) => sum + a * other[j], 0);
  return [along, unit(other.map((b, j) => b - overlap * along[j]))];
}

function unit(vector: readonly number[]): number[] {
  const length = Math.hypot(...vector);
  return vector.map((x) => x / length);
}

/** What the labels of a task are made of. */
export interface Teacher {
  readonly name: string;
  /** w_T for each kind of sample: the label of a sample of kind c is w_T[c]·x + noise. */
  readonly slopes: readonly (readonly number[])[];
  /** Standard deviation of the noise in training labels; those of validation and test data all have a little. */
  readonly noise: number;
}

export interface LinearProblemOptions {
  /** The tasks, numbered from 1. */
  readonly teachers: readonly Teacher[];
  /** Name of the main task. */
  readonly main: string;
  /** Name of the task that is right for each kind of sample. Default: not known. */
  readonly answers?: readonly string[];
  readonly random: Random;
  /** B. Default 16. */
  readonly batch?: number;
  /** η₁. Default 0.1. */
  readonly learningRate?: number;
}

/** Samples, each with the labels of all tasks. */
export interface LinearBatch {
  /** [B, D] */
  readonly x: Float64Array;
  /** [B] */
  readonly kinds: Int32Array;
  /** [B, K] */
  readonly labels: Float64Array;
}

/** What the scheduler sees of a sample of a linear problem. */
const LINEAR_FEATURES = [
  { name: 'progress', width: 1 },
  { name: 'kind', width: 1 },
  { name: 'loss', width: 1 },
  { name: 'validation', width: 2, columns: ['validation loss', 'mean validation loss so far'] },
] as const satisfies readonly FeatureGroup[];

/**
 * Linear regression by stochastic gradient descent on labels made by teachers: small enough to
 * reason about what a scheduler should do. A sample is x ~ N(0, 1)^D and a kind, all kinds being equally likely;
 * the loss is ½(w·x − label)².
 */
export class LinearProblem implements Problem<LinearBatch> {
  readonly tasks: readonly Task[];
  readonly main: number;
  readonly features: readonly FeatureGroup[] = LINEAR_FEATURES;
  /** Any order works: no task is easier than another here. */
  readonly curriculum = { easiest: 'last', until: 'main' } as const;
  readonly gradients: GradientAccess<LinearBatch>;
  readonly influence: InfluenceAccess<LinearBatch>;
  readonly oracle: ((batch: LinearBatch) => Float32Array) | undefined;

  private readonly teachers: readonly Teacher[];
  private readonly dimension: number;
  private readonly kinds: number;
  private readonly batch: number;
  private readonly learningRate: number;
  private readonly validation: LinearBatch;
  private readonly testData: LinearBatch;
  /** What `influence` takes its gradients from. */
  private readonly rewardData: LinearBatch;
  private random: Random;
  private readonly weights: Float64Array;

  constructor({ teachers, main, answers, random, batch = 16, learningRate = 0.1 }: LinearProblemOptions) {
    this.teachers = teachers;
    this.tasks = teachers.map(({ name }, i) => ({ name, number: i + 1 }));
    this.main = taskIndex(this.tasks, main, 'main');
    const right = answers?.map((name) => taskIndex(this.tasks, name, 'answers'));
    this.oracle = right && ((batch) => allOn(right, batch, this.tasks.length));
    this.kinds = teachers[0].slopes.length;
    this.dimension = teachers[0].slopes[0].length;
    const fits = teachers.every(({ slopes }) => slopes.length === this.kinds && slopes.every(this.isSlope, this));
    if (!fits) throw new InputError('all teachers need slopes of one length for the same kinds of samples');
    this.batch = batch;
    this.learningRate = learningRate;
    this.validation = this.draw(random.fork('validation'), VALIDATION_SAMPLES, EVALUATION_NOISE);
    this.testData = this.draw(random.fork('test'), TEST_SAMPLES, EVALUATION_NOISE);
    this.rewardData = this.draw(random.fork('reward'), VALIDATION_SAMPLES, EVALUATION_NOISE);
    this.random = random.fork('batches');
    this.weights = new Float64Array(this.dimension);
    this.gradients = {
      size: this.dimension,
      ofTask: async (data, task, out) => out.set(this.gradient(data, every(data, task))),
      ofValidation: async (out) => out.set(this.gradient(this.validation, every(this.validation, this.main))),
    };
    this.influence = {
      size: this.dimension,
      samples: batch,
      pieces: VALIDATION_SAMPLES / PIECE,
      gradient: async (piece, out) => {
        const data = this.part(this.rewardData, piece * PIECE, (piece + 1) * PIECE);
        out.set(this.gradient(data, every(data, this.main)));
      },
      // The loss is quadratic: its difference quotient is exact for a shift of any length.
      shift: (gradient, out) => out.set(gradient),
      losses: async (data, samples, shift) => this.shiftedLosses(data, samples, shift),
    };
  }

  nextBatch(): LinearBatch {
    return this.draw(this.random, this.batch);
  }

  sizeOf({ kinds }: LinearBatch): number {
    return kinds.length;
  }

  writeFeatures(batch: LinearBatch, status: Status, groups: readonly string[], out: Float32Array): void {
    const columns = groups.flatMap((group) => this.columns(group, batch, status));
    for (let i = 0; i < batch.kinds.length; i++) {
      for (let j = 0; j < columns.length; j++) out[i * columns.length + j] = columns[j](i);
    }
  }

  async train(batch: LinearBatch, assignment: Assignment): Promise<number> {
    const total = assignment.weights.reduce((sum, weight) => sum + weight, 0);
    const loss = assignment.weights.reduce(
      (sum, weight, i) => sum + weight * this.loss(batch, i, assignment.tasks[i]),
      0,
    );
    this.descend(this.gradient(batch, assignment));
    return loss / total;
  }

  async trainBlend(batch: LinearBatch, blend: Float32Array): Promise<number> {
    const [size, K] = [batch.kinds.length, this.tasks.length];
    const direction = new Float64Array(this.dimension);
    let loss = 0;
    for (let task = 0; task < K; task++) {
      const weights = Float32Array.from({ length: size }, (_, i) => blend[i * K + task]);
      const share = weights.reduce((sum, weight) => sum + weight, 0) / size;
      if (share === 0) continue;
      const gradient = this.gradient(batch, { tasks: new Int32Array(size).fill(task), weights });
      for (let j = 0; j < direction.length; j++) direction[j] += share * gradient[j];
      for (let i = 0; i < size; i++) loss += (weights[i] * this.loss(batch, i, task)) / size;
    }
    this.descend(direction);
    return loss;
  }

  async mainLosses(batch: LinearBatch): Promise<Float32Array> {
    return Float32Array.from(batch.kinds, (_, i) => this.loss(batch, i, this.main));
  }

  *validationBatches(): Generator<LinearBatch> {
    for (let begin = 0; begin < VALIDATION_SAMPLES; begin += this.batch) {
      yield this.part(this.validation, begin, begin + this.batch);
    }
  }

  async validate(): Promise<number> {
    return -this.meanLoss(this.validation);
  }

  async test(): Promise<{ loss: number }> {
    return { loss: this.meanLoss(this.testData) };
  }

  capture(): Snapshot {
    const tensors = new Map([['weights', { dtype: 'F64', shape: [this.dimension], data: this.weights } as const]]);
    return { tensors, state: this.random.state() };
  }

  restore({ tensors, state }: Snapshot): void {
    this.weights.set(tensors.get('weights')!.data as Float64Array);
    this.random = Random.restore(state as RandomState);
  }

  private isSlope(slope: readonly number[]): boolean {
    return slope.length === this.dimension;
  }

  /** Training data, or data in which all labels have the same noise. */
  private draw(random: Random, size: number, sameNoise?: number): LinearBatch {
    const [D, K] = [this.dimension, this.teachers.length];
    const batch = { x: new Float64Array(size * D), kinds: new Int32Array(size), labels: new Float64Array(size * K) };
    for (let i = 0; i < size; i++) {
      const x = batch.x.subarray(i * D, (i + 1) * D);
      random.fillNormal(x, 0, 1);
      const kind = random.int(this.kinds);
      batch.kinds[i] = kind;
      for (const [task, { slopes, noise }] of this.teachers.entries()) {
        batch.labels[i * K + task] = dot(slopes[kind], x) + (sameNoise ?? noise) * random.normal();
      }
    }
    return batch;
  }

  private part({ x, kinds, labels }: LinearBatch, begin: number, end: number): LinearBatch {
    const [D, K] = [this.dimension, this.tasks.length];
    return {
      x: x.subarray(begin * D, end * D),
      kinds: kinds.subarray(begin, end),
      labels: labels.subarray(begin * K, end * K),
    };
  }

  private shiftedLosses(data: LinearBatch, most: number, shift: Float32Array): ShiftedLosses {
    const [n, K] = [Math.min(most, data.kinds.length), this.tasks.length];
    const before = this.weights.slice();
    const losses = (sign: number) => {
      this.weights.forEach((_, j) => {
        this.weights[j] = before[j] + sign * shift[j];
      });
      return Float32Array.from({ length: n * K }, (_, at) => this.loss(data, Math.floor(at / K), at % K));
    };
    const [ahead, behind] = [losses(1), losses(-1)];
    this.weights.set(before);
    return { samples: Int32Array.from({ length: n }, (_, i) => i), ahead, behind };
  }

  private columns(group: string, batch: LinearBatch, status: Status): ((i: number) => number)[] {
    switch (group) {
      case 'progress':
        return [() => status.update / status.updates];
      case 'kind':
        return [(i) => batch.kinds[i]];
      case 'loss':
        return [(i) => this.loss(batch, i, this.main)];
      case 'validation':
        return [() => -status.performance, () => -status.meanPerformance];
      default:
        throw new RangeError(`there is no feature group ${group}`);
    }
  }

  private residual({ x, labels }: LinearBatch, i: number, task: number): number {
    const D = this.dimension;
    return dot(this.weights, x.subarray(i * D, (i + 1) * D)) - labels[i * this.tasks.length + task];
  }

  private loss(batch: LinearBatch, i: number, task: number): number {
    return 0.5 * this.residual(batch, i, task) ** 2;
  }

  private meanLoss(data: LinearBatch): number {
    let sum = 0;
    for (let i = 0; i < data.kinds.length; i++) sum += this.loss(data, i, this.main);
    return sum / data.kinds.length;
  }

  /** ∇ Σ wᵢ ½(w·xᵢ − label)² / Σ wᵢ = Σ wᵢ (w·xᵢ − label) xᵢ / Σ wᵢ */
  private gradient(batch: LinearBatch, { tasks, weights }: Assignment): Float64Array {
    const D = this.dimension;
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    const gradient = new Float64Array(D);
    for (let i = 0; i < tasks.length; i++) {
      if (weights[i] === 0) continue;
      const factor = (weights[i] * this.residual(batch, i, tasks[i])) / total;
      for (let j = 0; j < D; j++) gradient[j] += factor * batch.x[i * D + j];
    }
    return gradient;
  }

  private descend(gradient: Float64Array): void {
    for (let j = 0; j < gradient.length; j++) this.weights[j] -= this.learningRate * gradient[j];
  }
}

const VALIDATION_SAMPLES = 256;
const TEST_SAMPLES = 1024;
/** Samples of a piece of the reward data. */
const PIECE = 64;
/** No model can have a main-task loss below half the square of it. */
const EVALUATION_NOISE = 0.3;

function dot(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let sum = 0;
  for (let j = 0; j < a.length; j++) sum += a[j] * b[j];
  return sum;
}

/** Every sample on one task. */
function every({ kinds: { length } }: LinearBatch, task: number): Assignment {
  return { tasks: new Int32Array(length).fill(task), weights: new Float32Array(length).fill(1) };
}

/** All on the task that is right for the kind of the sample. */
function allOn(right: readonly number[], { kinds }: LinearBatch, K: number): Float32Array {
  const rows = new Float32Array(kinds.length * K);
  kinds.forEach((kind, i) => {
    rows[i * K + right[kind]] = 1;
  });
  return rows;
}

/** The problem kind `known-answer`. */
export const knownAnswerKind = problemKind({
  schema: z.strictObject({
    kind: z.literal('known-answer').describe('Synthetic regression in which one auxiliary task is known to help.'),
  }),
  create: (_, { random }) => knownAnswer(random),
  features: LINEAR_FEATURES,
});

/** The problem kind `contextual`. */
export const contextualKind = problemKind({
  schema: z.strictObject({
    kind: z.literal('contextual').describe('Synthetic regression in which the helpful task depends on the sample.'),
  }),
  create: (_, { random }) => contextual(random),
  features: LINEAR_FEATURES,
});
