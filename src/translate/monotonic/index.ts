import type { CheckpointChoice } from '../checkpoint-choice.js';
import type { Languages } from '../text/languages.js';
import { MonotonicStepModel, type MonotonicStepOptions } from './step-model.js';
import { trainedMonotonic } from './trained.js';

export { type MonotonicConfig, type MonotonicKind, type MonotonicModel, monotonicSchema } from './config.js';
export { MonotonicProblem } from './problem.js';
export { MonotonicStepModel, type MonotonicStepOptions } from './step-model.js';

/** A run's model with its languages. */
export interface OpenedMonotonic {
  readonly steps: MonotonicStepModel;
  readonly languages: Languages;
  /** Updates that the parameters have had. */
  readonly step: number;
}

/** Opens the model of a run whose `problem.kind` is `monotonic`, to be run under the policy `monotonic`. */
export async function openMonotonic(
  run: string,
  checkpoint: CheckpointChoice = 'best',
  options: MonotonicStepOptions = {},
): Promise<OpenedMonotonic> {
  const { model, arena, languages, step } = trainedMonotonic(run, checkpoint);
  return { steps: await MonotonicStepModel.create(model, arena, options), languages, step };
}
