import { learningRate, type Model, Training } from '../optim/index.js';
import type { Random } from '../random.js';
import type { Ranks } from '../ranks.js';
import type { TranslationConfig } from './config.js';
import { lossInputs } from './model/loss.js';

export interface ProblemOptions {
  readonly random: Random;
  /** Default 1. */
  readonly threads?: number;
  /** Default 1. */
  readonly workers?: number;
  /** Processes that share each batch. Default: this one alone. */
  readonly ranks?: Ranks;
}

type Learning = TranslationConfig['learning'];

/** The training of a model that takes the inputs of a loss, as `learning` of a configuration says. */
export function createTraining(
  model: Model<typeof lossInputs>,
  { betas, eps, weightDecay, clipNorm }: Learning,
  { random, threads = 1, workers = 1, ranks }: ProblemOptions,
): Promise<Training> {
  return Training.create({
    model,
    inputs: lossInputs,
    random: random.fork('model'),
    optimizer: { name: 'adam', betas, eps, weightDecay },
    clip: clipNorm === null ? undefined : { norm: clipNorm },
    workers,
    threads,
    ranks,
  });
}

/** η₁ by the number of the update. */
export function learningRateOf({ schedule: name, peak, warmup, warmupInit }: Learning): (update: number) => number {
  const schedule = learningRate({ name, peak, warmup, warmupInit });
  return (update) => schedule.at(update);
}
