import { InputError } from '../errors.js';
import { Plateau, type PlateauConfig, type PlateauState } from './plateau.js';

/**
 * The learning rate over a training. `update` counts the updates already made: the first update has the rate
 * `at(0)`, as in fairseq.
 */
export interface LearningRate {
  at(update: number): number;
  /** Tells the result of a validation; only `reduce_on_plateau` listens. */
  observe(validation: number): void;
  /** Plain JSON; null for a schedule that is a function of the update number alone. */
  state(): PlateauState | null;
  load(state: PlateauState | null): void;
}

/** A linear rise from `warmupInit` to the peak over the first `warmup` updates. */
export interface Warmup {
  /** Default 0: none. */
  readonly warmup?: number;
  /** Learning rate of the very first update, if there is a warm-up. Default 1e-7. */
  readonly warmupInit?: number;
}

export interface ConstantConfig extends Warmup {
  readonly name: 'constant';
  readonly peak: number;
}

export interface InverseSqrtConfig extends Warmup {
  readonly name: 'inverse_sqrt';
  /** Reached at update `warmup`. */
  readonly peak: number;
  /** Default 4000. */
  readonly warmup?: number;
}

export interface CosineConfig extends Warmup {
  readonly name: 'cosine';
  readonly peak: number;
  /** Updates, warm-up included, after which the rate stays at the minimum. */
  readonly updates: number;
  /** Default 0. */
  readonly minimum?: number;
}

export interface ReduceOnPlateauConfig extends Warmup, PlateauConfig {
  readonly name: 'reduce_on_plateau';
}

export type LearningRateConfig = ConstantConfig | InverseSqrtConfig | CosineConfig | ReduceOnPlateauConfig;

export function learningRate(config: LearningRateConfig): LearningRate {
  switch (config.name) {
    case 'constant':
      return pure(constant(config));
    case 'inverse_sqrt':
      return pure(inverseSqrt(config));
    case 'cosine':
      return pure(cosine(config));
    case 'reduce_on_plateau':
      return reduceOnPlateau(config);
    default:
      throw new InputError(
        `unknown schedule ${JSON.stringify((config as { name: unknown }).name)}, ` +
          'expected constant, inverse_sqrt, cosine or reduce_on_plateau',
        { key: 'learningRate.name' },
      );
  }
}

/** The peak, after an optional warm-up. */
export function constant({ peak, warmup = 0, warmupInit }: Omit<ConstantConfig, 'name'>): (update: number) => number {
  check('peak', peak, 0);
  return warmed(peak, warmup, warmupInit, () => peak);
}

/**
 * fairseq's inverse_sqrt: peak·√(warmup / t) after the warm-up. With `warmupInit` 0 and
 * peak = (d·warmup)^−½ it is the schedule of "Attention Is All You Need", section 5.3.
 */
export function inverseSqrt(config: Omit<InverseSqrtConfig, 'name'>): (update: number) => number {
  const { peak, warmup = 4000, warmupInit } = config;
  check('peak', peak, 0);
  check('warmup', warmup, 1);
  return warmed(peak, warmup, warmupInit, (update) => peak * Math.sqrt(warmup / update));
}

/** minimum + ½(peak − minimum)(1 + cos πx), where x goes from 0 after the warm-up to 1 at the last update. */
export function cosine(config: Omit<CosineConfig, 'name'>): (update: number) => number {
  const { peak, updates, minimum = 0, warmup = 0, warmupInit } = config;
  check('peak', peak, 0);
  check('minimum', minimum, 0);
  check('updates', updates, warmup + 1);
  return warmed(peak, warmup, warmupInit, (update) => {
    const x = Math.min(1, (update - warmup) / (updates - warmup));
    return minimum + 0.5 * (peak - minimum) * (1 + Math.cos(Math.PI * x));
  });
}

function reduceOnPlateau(config: ReduceOnPlateauConfig): LearningRate {
  const { warmup = 0, warmupInit } = config;
  const plateau = new Plateau(config);
  const rise = warmed(config.peak, warmup, warmupInit, () => config.peak);
  return {
    at: (update) => (update < warmup ? Math.min(rise(update), plateau.rate) : plateau.rate),
    observe: (validation) => plateau.observe(validation),
    state: () => plateau.state(),
    load(state) {
      if (state === null) throw new InputError('the saved schedule has no state', { key: 'learningRate' });
      plateau.load(state);
    },
  };
}

function pure(at: (update: number) => number): LearningRate {
  return {
    at,
    observe: () => {},
    state: () => null,
    load(state) {
      if (state !== null) {
        throw new InputError('the saved state belongs to reduce_on_plateau', { key: 'learningRate' });
      }
    },
  };
}

function warmed(
  peak: number,
  warmup: number,
  warmupInit = 1e-7,
  after: (update: number) => number,
): (update: number) => number {
  check('warmup', warmup, 0);
  check('warmupInit', warmupInit, 0);
  const slope = (peak - warmupInit) / warmup;
  return (update) => (update < warmup ? warmupInit + update * slope : after(update));
}

function check(key: string, value: number, least: number): void {
  if (!(value >= least && value < Infinity)) {
    throw new InputError(`${value} is not possible, expected a finite number ≥ ${least}`, {
      key: `learningRate.${key}`,
    });
  }
}
