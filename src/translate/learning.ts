import { type LearningRate, type Model, Training } from '../optim/index.js';
import type { Random } from '../random.js';
import type { Ranks } from '../ranks.js';
import { optimizerOf, learningRateOf as rateOf } from '../schedule/index.js';
import type { TranslationConfig } from './config.js';
import { lossInputs } from './model/loss.js';

export interface ProblemOptions {
  readonly random: Random;
  /** Default 1. */
  readonly threads?: number;
  /** Default 1. */
  readonly workers?: number;
  /** Updates of the whole training, for a learning rate that depends on it. Default: not known. */
  readonly updates?: number;
  /** Processes that share each batch. Default: this one alone. */
  readonly ranks?: Ranks;
}

type Learning = TranslationConfig['learning'];

/** The training of a model that takes the inputs of a loss, as `learning` of a configuration says. */
export function createTraining(
  model: Model<typeof lossInputs>,
  learning: Learning,
  { random, threads = 1, workers = 1, ranks }: ProblemOptions,
): Promise<Training> {
  const { clipNorm } = learning;
  return Training.create({
    model,
    inputs: lossInputs,
    random: random.fork('model'),
    optimizer: optimizerOf(learning),
    clip: clipNorm === null ? undefined : { norm: clipNorm },
    workers,
    threads,
    ranks,
  });
}

/** η₁ over a training of so many updates. */
export function learningRateOf(learning: Learning, updates?: number): LearningRate {
  return rateOf(learning.peak, learning, updates);
}
