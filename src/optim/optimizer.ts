import { InputError } from '../errors.js';
import { type AdagradConfig, adagrad } from './adagrad.js';
import { type AdamConfig, type AdamWConfig, adam, adamw } from './adam.js';
import type { Arena } from './arena.js';
import { type RmspropConfig, rmsprop } from './rmsprop.js';
import { type SgdConfig, sgd } from './sgd.js';

/** Updates all parameters of an arena from their gradients, in one pass over the memory. */
export interface Optimizer {
  readonly name: string;
  /** Arrays of state it keeps in the arena; the arena must have been made with as many. */
  readonly slots: number;
  /** One update. The gradients are left as they are. */
  step(arena: Arena, learningRate: number): void;
  /** What is not in the arena. */
  state(): OptimizerState;
  load(state: OptimizerState): void;
}

/** Plain JSON. */
export interface OptimizerState {
  readonly name: string;
  /** Updates made. */
  readonly step: number;
}

export type OptimizerConfig = SgdConfig | AdamConfig | AdamWConfig | RmspropConfig | AdagradConfig;

/** The optimiser of a configuration; what is left out has PyTorch's default. */
export function optimizer(config: OptimizerConfig): Optimizer {
  switch (config.name) {
    case 'sgd':
      return sgd(config);
    case 'adam':
      return adam(config);
    case 'adamw':
      return adamw(config);
    case 'rmsprop':
      return rmsprop(config);
    case 'adagrad':
      return adagrad(config);
    default:
      throw new InputError(
        `unknown optimiser ${JSON.stringify((config as { name: unknown }).name)}, ` +
          'expected sgd, adam, adamw, rmsprop or adagrad',
        { key: 'optimizer.name' },
      );
  }
}
