import { z } from 'zod';
import type { Snapshot } from '../../run/index.js';
import type { Problem, ProblemContext } from '../../schedule/index.js';
import type { Parameters, Tensor } from '../../tensor/index.js';
import type { ForecastConfig } from '../config.js';
import type { ForecastData } from '../data/dataset.js';
import type { Layout } from '../data/features.js';
import type { Computing, Forecaster } from '../forecaster.js';

/**
 * Describes a forecasting model: the `model` of configurations, command-line help, labels of reports,
 * `configs/reference.yaml` and the JSON Schema read it. A model is one file that exports a description, and a line in the
 * list of `index.ts`. Most are networks: see `networkModel`.
 */
export interface ForecastModel<S extends ModelSchema = ModelSchema> {
  /** Its keys in a configuration, with their defaults, which are defined nowhere else. */
  readonly schema: S;
  /** In tables: as the literature calls it. */
  readonly title: string;
  /** Only of networks. */
  readonly architecture?: Architecture<z.output<S>>;
  /** A model to be trained on the data. */
  create(config: ConfigOf<S>, data: ForecastData, context: ProblemContext): Promise<Problem>;
  /** The trained model of a checkpoint; `file` is for errors. */
  open(config: ConfigOf<S>, checkpoint: Snapshot, file: string, computing: Computing): Promise<Forecaster>;
}

export type ModelSchema = z.ZodObject<{ name: z.ZodLiteral<string> }, z.core.$strict>;

/** A configuration whose model is of this kind. */
export type ConfigOf<S extends ModelSchema> = ForecastConfig & { readonly model: z.output<S> };

/** Checks a description against its schema's type; the list holds descriptions of any schema. */
export function forecastModel<S extends ModelSchema>(model: ForecastModel<S>): ForecastModel<S> & ForecastModel {
  return model as unknown as ForecastModel<S> & ForecastModel;
}

/** A forecasting network up to its output layer, which depends on how the tasks share it. */
export interface Architecture<Options = never> {
  readonly layout: Layout;
  /** Samples of a day interact: batches consist of whole days. Default false. */
  readonly seesDays?: boolean;
  /** The samples of a batch interact, so a batch cannot be split among workers. Default false. */
  readonly wholeBatch?: boolean;
  /** Representation of each sample, [B, width]. */
  trunk(p: Parameters, inputs: TrunkInputs, options: Options, mode: TrunkMode): Tensor;
}

/** Inputs of a trunk. */
export interface TrunkInputs {
  /** Features of the samples: [L, B, F] in the layout `time-major`, [B, F·L] in `flat`. */
  readonly x: Tensor;
  /** i64 [B]: samples of equal number are of the same day. Only for architectures with `seesDays`. */
  readonly day?: Tensor;
}

/** How the trunk of a model is traced: for training or for forecasting. */
export interface TrunkMode {
  /** Dropout and batch statistics, or their expectations. */
  readonly training: boolean;
  /** Takes the new value of a parameter that is not learned from gradients: a running statistic. */
  keep(parameter: string, value: Tensor): void;
}

/** A model trained by gradients. Code for training and forecasting is loaded when needed. */
export function networkModel<S extends ModelSchema>(
  model: Pick<ForecastModel<S>, 'schema' | 'title'> & Architecture<z.output<S>>,
): ForecastModel<S> & ForecastModel {
  const { schema, title, ...architecture } = model;
  return forecastModel<S>({
    schema,
    title,
    architecture,
    create: async (config, data, context) => {
      const { ForecastProblem } = await import('../problem.js');
      return (await ForecastProblem.create(config, data, context)) as Problem;
    },
    open: async (config, checkpoint, file, computing) => {
      const { openNetwork } = await import('../forecaster.js');
      return openNetwork(config, checkpoint, file, computing);
    },
  });
}

/** Keys that several models have. */
export const hiddenKey = z.int().min(1).default(32).describe('Width of a hidden state.');
export const layersKey = z.int().min(1).default(2).describe('Recurrent layers.');
export const dropoutKey = z.number().min(0).lt(1).default(0).describe('Probability of dropout between layers.');
