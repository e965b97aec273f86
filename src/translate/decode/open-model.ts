import { InputError } from '../../errors.js';
import { openRun } from '../../run/index.js';
import type { CheckpointChoice } from '../checkpoint-choice.js';
import type { Training } from '../policies/index.js';
import type { Languages } from '../text/languages.js';
import { openTrained } from '../trained.js';
import { StepModel } from './step-model.js';
import type { StepwiseModel } from './token-model.js';

export interface OpenOptions {
  /** The parameters that were best on the main task, or the latest. Default `best`. */
  readonly checkpoint?: CheckpointChoice;
  /** Largest beam that will be searched with. Default 5. */
  readonly beam?: number;
  /** Threads inside one operation. Default 1. */
  readonly threads?: number;
}

/** A run's model, ready to read and write. */
export interface OpenedModel {
  readonly steps: StepwiseModel & { close(): Promise<void> };
  readonly languages: Languages;
  readonly training: Training;
  /** Updates that the parameters have had. */
  readonly step: number;
}

/** Opens the model of a run of any kind that translates. */
export async function openModel(run: string, options: OpenOptions = {}): Promise<OpenedModel> {
  const { problem } = openRun(run).config as { problem?: { kind?: string } };
  switch (problem?.kind) {
    case 'translation':
      return openTranslation(run, options);
    case 'monotonic': {
      const { openMonotonic } = await import('../monotonic/index.js');
      return { ...(await openMonotonic(run, options.checkpoint, options)), training: 'monotonic' };
    }
    default:
      throw new InputError('the run is not one of translation', { file: run, key: 'problem.kind' });
  }
}

async function openTranslation(run: string, { checkpoint, beam, threads }: OpenOptions): Promise<OpenedModel> {
  const { model, arena, waits, main, languages, step } = openTrained(run, checkpoint);
  const steps = await StepModel.create(model, arena, { beam, threads, redecodes: waits === 'full' });
  return { steps, languages, step, training: waits === 'full' ? 'full' : main };
}
