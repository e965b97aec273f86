import { z } from 'zod';
import { InputError } from '../errors.js';
import { fitting } from '../files.js';
import { kindOf } from '../problems/index.js';
import { type ConfigValues, checkpointFolder, latestCheckpoint, type SavedCheckpoint } from '../run/index.js';
import { type FeatureGroup, strategyNamed } from '../schedule/index.js';
import { NETWORK } from '../schedule/strategies/scheduler.js';

/** What the scheduler of a run prefers as a function of what it sees. */
export interface SchedulerView {
  /** Updates that the model had when this was saved. */
  readonly step: number;
  readonly tasks: readonly string[];
  /** Those that matter most first. */
  readonly features: readonly FeatureView[];
  /** Features that are not shown. */
  readonly others: number;
}

/** The distribution over the tasks as one feature goes from low to high and all others stay at their means. */
export interface FeatureView {
  readonly name: string;
  readonly values: readonly number[];
  /** For each value, the share of each task. */
  readonly shares: readonly (readonly number[])[];
}

/**
 * Reads the scheduler φ of the newest checkpoint of a run and evaluates it along each of its
 * features, from two standard deviations below the mean of the training to two above.
 */
export function schedulerView(run: string, config: ConfigValues, tasks: readonly string[]): SchedulerView {
  const { problem, strategy } = configSchema.parse(config);
  if (!strategyNamed(strategy.name)?.showsScheduler) {
    throw new InputError(`the strategy ${strategy.name} has no scheduler that depends on features`);
  }
  const checkpoint = latestCheckpoint(checkpointFolder(run), () => {});
  if (checkpoint === undefined) throw new InputError('there is no checkpoint yet: this appears once one is saved');
  const layers = layersOf(checkpoint);
  const scale = fitting(checkpoint.state, stateSchema, checkpoint.path).subject.strategy.own.scale;
  const width = scale.means.length;
  if (scale.count === 0) throw new InputError('the scheduler has not learned anything yet');
  if (layers[0].weight.length !== layers[0].bias.length * width || layers.at(-1)?.bias.length !== tasks.length) {
    throw new InputError('the scheduler in the checkpoint does not fit the tasks of the log');
  }
  const groups = kindOf(problem)?.features;
  const names = featureNames(groups ?? [], strategy.without, width);
  const spread = scale.squares.map((square) => Math.sqrt(square / scale.count));
  const all = names.flatMap((name, j): FeatureView[] => {
    if (spread[j] <= RESOLUTION * Math.abs(scale.means[j])) return []; // it has never changed
    const values = valuesOf(groups !== undefined, name, scale.means[j], spread[j]);
    const shares = values.map((value) => {
      const z = (value - scale.means[j]) / spread[j];
      return distribution(
        layers,
        strategy.activation,
        names.map((_, other) => (other === j ? z : 0)),
      );
    });
    return [{ name, values, shares }];
  });
  const features = all.sort((a, b) => effect(b) - effect(a)).slice(0, SHOWN);
  return { step: checkpoint.step, tasks, features, others: all.length - features.length };
}

/** Points of a picture; how far it goes, in standard deviations; pictures. */
const POINTS = 21;
const REACH = 2;
const SHOWN = 8;
/** Below the resolution of f32 a spread is rounding. */
const RESOLUTION = 1e-6;

/** Evenly from low to high, as far as the feature can go: none that is known by name is ever negative. */
function valuesOf(isNamed: boolean, name: string, mean: number, spread: number): number[] {
  const low = Math.max(mean - REACH * spread, isNamed ? 0 : Number.NEGATIVE_INFINITY);
  const high = Math.min(mean + REACH * spread, name === 'progress' ? 1 : Number.POSITIVE_INFINITY);
  return Array.from({ length: POINTS }, (_, i) => low + (i / (POINTS - 1)) * (high - low));
}

/** How far the shares move from one end to the other. */
function effect({ shares }: FeatureView): number {
  const ranges = shares[0].map((_, task) => {
    const own = shares.map((row) => row[task]);
    return Math.max(...own) - Math.min(...own);
  });
  return Math.max(...ranges);
}

interface Layer {
  /** [out, in] */
  readonly weight: Float32Array;
  readonly bias: Float32Array;
}

function layersOf({ tensors }: SavedCheckpoint): [Layer, ...Layer[]] {
  const values = (name: string) => tensors.get(`strategy/${NETWORK}/${name}`)?.data;
  const layers: Layer[] = [];
  for (;;) {
    const [weight, bias] = [values(`${layers.length}.weight`), values(`${layers.length}.bias`)];
    if (!(weight instanceof Float32Array) || !(bias instanceof Float32Array)) break;
    layers.push({ weight, bias });
  }
  const [first, ...others] = layers;
  if (first === undefined) throw new InputError('the checkpoint holds no scheduler');
  return [first, ...others];
}

/** softmax(Wₙ σ(… σ(W₁z + b₁) …) + bₙ), of features that are standardised: z = (x − mean)/std. */
function distribution(layers: readonly Layer[], activation: 'tanh' | 'relu', z: readonly number[]): number[] {
  const squash = activation === 'tanh' ? Math.tanh : (value: number) => Math.max(0, value);
  let values: readonly number[] = z;
  for (const [n, { weight, bias }] of layers.entries()) {
    const below = values;
    const sums = Array.from(bias, (start, row) => {
      let sum = start;
      for (let i = 0; i < below.length; i++) sum += weight[row * below.length + i] * below[i];
      return sum;
    });
    values = n === layers.length - 1 ? sums : sums.map(squash);
  }
  const most = Math.max(...values);
  const powers = values.map((value) => Math.exp(value - most));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
}

/** Names of the columns, where the groups of the problem are known; numbers elsewhere. */
function featureNames(groups: readonly FeatureGroup[], without: readonly string[], width: number): string[] {
  const seen = groups.filter(({ name }) => !without.includes(name));
  const columns = seen.flatMap(
    ({ name, width, columns }) =>
      columns ?? Array.from({ length: width }, (_, i) => (width === 1 ? name : `${name} ${i + 1}`)),
  );
  return Array.from({ length: width }, (_, j) => columns[j] ?? `feature ${j + 1}`);
}

const configSchema = z.looseObject({
  problem: z.looseObject({ kind: z.string() }).catch({ kind: 'unknown' }),
  strategy: z
    .looseObject({
      name: z.string(),
      without: z.array(z.string()).default([]),
      activation: z.enum(['tanh', 'relu']).default('tanh'),
    })
    .catch({ name: 'unknown', without: [], activation: 'tanh' }),
});

const numbers = z.array(z.number());
const stateSchema = z.looseObject({
  subject: z.looseObject({
    strategy: z.looseObject({
      own: z.looseObject({ scale: z.object({ count: z.number(), means: numbers, squares: numbers }) }),
    }),
  }),
});
