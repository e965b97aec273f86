import { InputError } from '../errors.js';

/**
 * The learning rate over a training. `update` counts the updates already made: the first update has the rate
 * `at(0)`, as in fairseq.
 */
export interface LearningRate {
  /** The rate of the next update when this many have been made. */
  at(update: number): number;
  /** Receives the performance at a validation, higher is better; only `reduce_on_plateau` uses it. */
  observe(performance: number): void;
  /** Plain JSON; null for a schedule that is a function of the update number alone. */
  state(): PlateauState | null;
  /** Restores what `state` returned. */
  load(state: PlateauState | null): void;
}

/** A linear rise from `warmupInit` to the peak over the first `warmup` updates. */
export interface Warmup {
  /** Default 0: none. */
  readonly warmup?: number;
  /** Learning rate of the very first update, if there is a warm-up. Default 1e-7. */
  readonly warmupInit?: number;
}

/** The same rate throughout, after a warm-up if there is one. */
export interface ConstantConfig extends Warmup {
  readonly name: 'constant';
  readonly peak: number;
}

/** Falls with 1/√update (Vaswani et al. 2017). */
export interface InverseSqrtConfig extends Warmup {
  readonly name: 'inverse_sqrt';
  /** Reached at update `warmup`. */
  readonly peak: number;
  /** Default 4000. */
  readonly warmup?: number;
}

/** Falls along half a cosine (Loshchilov & Hutter 2017). */
export interface CosineConfig extends Warmup {
  readonly name: 'cosine';
  readonly peak: number;
  /** Updates, warm-up included, after which the rate stays at the minimum. */
  readonly updates: number;
  /** Default 0. */
  readonly minimum?: number;
}

/** `torch.optim.lr_scheduler.ReduceLROnPlateau` with `mode='max'` and `threshold_mode='abs'`. */
export interface ReduceOnPlateauConfig extends Warmup {
  readonly name: 'reduce_on_plateau';
  /** The initial learning rate. */
  readonly peak: number;
  /** Multiplies the learning rate. Default 0.1. */
  readonly factor?: number;
  /** Validations without improvement that are tolerated; the next one reduces. Default 10. */
  readonly patience?: number;
  /** A performance must be better than the best one by more than this to be an improvement. Default 0. */
  readonly minDelta?: number;
  /** Lower bound of the learning rate. Default 0. */
  readonly minimum?: number;
}

/** What `reduce_on_plateau` remembers; plain JSON. */
export interface PlateauState {
  readonly rate: number;
  /** Null before the first validation. */
  readonly best: number | null;
  /** Validations without improvement in a row. */
  readonly bad: number;
}

/** One of the schedules with its settings. */
export type LearningRateConfig = ConstantConfig | InverseSqrtConfig | CosineConfig | ReduceOnPlateauConfig;

/** The schedule of a configuration. */
export function learningRate(config: LearningRateConfig): LearningRate {
  switch (config.name) {
    case 'constant':
      return pure(constantSchedule(config));
    case 'inverse_sqrt':
      return pure(inverseSqrtSchedule(config));
    case 'cosine':
      return pure(cosineSchedule(config));
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
export function constantSchedule({
  peak,
  warmup = 0,
  warmupInit,
}: Omit<ConstantConfig, 'name'>): (update: number) => number {
  check('peak', peak, 0);
  return warmed(peak, warmup, warmupInit, () => peak);
}

/**
 * fairseq's inverse_sqrt: peak·√(warmup / t) after the warm-up. With `warmupInit` 0 and
 * peak = (d·warmup)^−½ it is the schedule of "Attention Is All You Need", section 5.3.
 */
export function inverseSqrtSchedule(config: Omit<InverseSqrtConfig, 'name'>): (update: number) => number {
  const { peak, warmup = 4000, warmupInit } = config;
  check('peak', peak, 0);
  check('warmup', warmup, 1);
  return warmed(peak, warmup, warmupInit, (update) => peak * Math.sqrt(warmup / update));
}

/** minimum + ½(peak − minimum)(1 + cos πx), where x goes from 0 after the warm-up to 1 at the last update. */
export function cosineSchedule(config: Omit<CosineConfig, 'name'>): (update: number) => number {
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
  const { peak, factor = 0.1, patience = 10, minDelta = 0, minimum = 0, warmup = 0, warmupInit } = config;
  for (const [key, value] of Object.entries({ peak, patience, minDelta, minimum })) check(key, value, 0);
  if (!(factor > 0 && factor < 1)) {
    throw new InputError(`${factor} is not possible, expected a number between 0 and 1`, {
      key: 'learningRate.factor',
    });
  }
  const rise = warmed(peak, warmup, warmupInit, () => peak);
  let state: PlateauState = { rate: peak, best: null, bad: 0 };
  return {
    at: (update) => (update < warmup ? Math.min(rise(update), state.rate) : state.rate),
    observe(performance) {
      const { rate, best, bad } = state;
      // NaN is never an improvement, not even over nothing.
      if (performance > (best === null ? -Infinity : best + minDelta)) state = { rate, best: performance, bad: 0 };
      else if (bad < patience) state = { rate, best, bad: bad + 1 };
      else state = { rate: Math.min(rate, Math.max(rate * factor, minimum)), best, bad: 0 };
    },
    state: () => state,
    load(saved) {
      const whole = (n: unknown): boolean => Number.isSafeInteger(n) && (n as number) >= 0;
      const fits = saved !== null && saved.rate >= 0 && saved.rate < Infinity && whole(saved.bad);
      if (!fits || !(saved.best === null || typeof saved.best === 'number')) {
        throw new InputError('not the saved state of reduce_on_plateau', { key: 'learningRate' });
      }
      state = { rate: saved.rate, best: saved.best, bad: saved.bad };
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
