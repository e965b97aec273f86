import { InputError } from '../errors.js';
import { linear, zeros } from '../nn/index.js';
import { type Arena, Inference, type InputTypes, type Model } from '../optim/index.js';
import type { Ranks } from '../ranks.js';
import {
  add,
  f32,
  gather,
  i64,
  mul,
  type Parameters,
  square,
  sub,
  sum,
  type Tensor,
  type Value,
} from '../tensor/index.js';
import { columnCount, type FeatureSpec, featureWidth, type Layout } from './data/index.js';
import { architectureOf, type NetworkConfig, type TrunkMode } from './models/index.js';

export interface NetworkOptions {
  readonly model: NetworkConfig;
  /**
   * `shared`: one output, whatever the task. `heads`: an output for each task. `embedding`: one output, and a learned
   * vector of the task added to the input of every day.
   */
  readonly sharing: 'shared' | 'heads' | 'embedding';
  /** K. */
  readonly tasks: number;
  readonly features: FeatureSpec;
}

/**
 * A model and its output layer as programs. Inputs of both: `x` (see `Layout`), `day` [B] if `seesDays`, `task` [B] with
 * the sharing `embedding`.
 */
export interface Network extends NetworkOptions {
  readonly layout: Layout;
  readonly seesDays: boolean;
  readonly wholeBatch: boolean;
  /** Columns of the forecasts: K with `heads`, else 1. */
  readonly columns: number;
  readonly inputs: InputTypes;
  /** Output `forecasts` [B, columns]. */
  readonly forward: Model<InputTypes>;
  readonly trainingInputs: InputTypes;
  /**
   * Further inputs `labels` and `weights`, [B, K], with `embedding` [B, 1]. Output `loss` = Σ weights·(forecast − label)²,
   * and `keep/<parameter>`: the next value of a parameter that gradients do not reach.
   */
  readonly training: Model<InputTypes>;
  /** Output `loss`, in evaluation mode. */
  readonly evaluated: Model<InputTypes>;
}

export const KEEP = 'keep/';

export function createNetwork(options: NetworkOptions): Network {
  const { model, sharing, tasks, features } = options;
  const { layout, seesDays = false, wholeBatch = false, trunk } = architectureOf(model);
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
    return linear(p.under('output'), trunk(p.under('trunk'), { x: input, day }, mode), columns); // [B, columns]
  };
  const loss = (p: Parameters, given: Readonly<Record<string, Tensor>>, mode: TrunkMode): Tensor => {
    const errors = sub(forecasts(p, given, mode), given.labels); // [B, K], shared: broadcast
    return sum(mul(given.weights, square(errors)));
  };
  return {
    ...options,
    layout,
    seesDays,
    wholeBatch,
    columns,
    inputs,
    forward: (p, given) => ({ forecasts: forecasts(p, given, { training: false, keep: () => {} }) }),
    trainingInputs: { ...inputs, labels: f32('B', labelled), weights: f32('B', labelled) },
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

/**
 * The forward program with the parameters of an arena. The steps of a recurrence are too small to be divided: with two
 * threads they take three times as long as with one.
 */
export function openInference(network: Network, arena: Arena, threads: number, ranks?: Ranks): Promise<Inference> {
  const { forward: model, inputs, layout, wholeBatch } = network;
  return Inference.create({
    model,
    inputs,
    arena,
    threads: layout === 'time-major' ? 1 : threads,
    ranks: wholeBatch ? undefined : ranks,
  });
}

/** x as an input of the programs, for so many samples. */
export function inputValue({ layout, features }: Network, x: Float32Array, samples: number): Value {
  const shape =
    layout === 'flat' ? [samples, columnCount(features)] : [features.window, samples, featureWidth(features)];
  return { data: x, shape };
}
