import type { z } from 'zod';
import type { Parameters, Tensor } from '../../tensor/index.js';
import type { Layout } from '../data/index.js';

/** What a model computes on. */
export interface TrunkInputs {
  /** Features of the samples: [L, B, F] in the layout `time-major`, [B, F·L] in `flat`. */
  readonly x: Tensor;
  /** i64 [B]: samples of equal number are of the same day. Only for architectures with `seesDays`. */
  readonly day?: Tensor;
}

export interface TrunkMode {
  /** Dropout and batch statistics, or their expectations. */
  readonly training: boolean;
  /** Takes the new value of a parameter that is not learned from gradients: a running statistic. */
  keep(parameter: string, value: Tensor): void;
}

/** A forecasting model up to its last layer, which depends on how the tasks share it. */
export interface Architecture<Options = never> {
  readonly layout: Layout;
  /** Samples of a day see each other: batches are made of whole days. Default false. */
  readonly seesDays?: boolean;
  /** The samples of a batch matter to each other, so that a batch cannot be divided among workers. Default false. */
  readonly wholeBatch?: boolean;
  /** Representation of each sample, [B, width]. */
  trunk(p: Parameters, inputs: TrunkInputs, options: Options, mode: TrunkMode): Tensor;
}

/** The keys of a model in a configuration, with `name` among them. */
export type OptionsOf<S extends z.ZodType> = Omit<z.output<S>, 'name'>;
