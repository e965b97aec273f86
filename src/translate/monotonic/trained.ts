import { join } from 'node:path';
import { z } from 'zod';
import { writeFileAtomic } from '../../files.js';
import { readJsonFile } from '../../json-file.js';
import { Arena, traceModel } from '../../optim/index.js';
import { openRun } from '../../run/index.js';
import type { CheckpointChoice } from '../checkpoint-choice.js';
import { evaluationMode } from '../model/config.js';
import { lossInputs, lossModel } from '../model/loss.js';
import { type Languages, saveLanguages } from '../text/languages.js';
import { languagesOf, loadParameters, sizesSchema, warmStart } from '../trained.js';
import { ATTENTIONS, type MonotonicModel } from './config.js';
import { monotonicLossModel } from './loss.js';

/** A trained model that can be run. */
export interface TrainedMonotonic {
  readonly model: MonotonicModel;
  readonly languages: Languages;
  readonly arena: Arena;
  /** Updates that the parameters have had. */
  readonly step: number;
}

/** Writes everything besides the parameters into a run folder. */
export function saveMonotonic(folder: string, languages: Languages, model: MonotonicModel): void {
  saveLanguages(folder, languages);
  writeFileAtomic(join(folder, INFO), `${JSON.stringify({ model }, null, 2)}\n`);
}

/** Reads a model from a run folder. */
export function trainedMonotonic(folder: string, checkpoint: CheckpointChoice = 'best'): TrainedMonotonic {
  openRun(folder);
  const { model } = readJsonFile(join(folder, INFO), infoSchema);
  const languages = languagesOf(folder, model);
  const arena = new Arena(parametersOf(model));
  return { model, languages, arena, step: loadParameters(folder, arena, checkpoint) };
}

/**
 * Fills an arena with the best parameters of a run with the same vocabularies: all of them where that was trained with
 * monotonic attention, else those of the Transformer that this model has too, the moving heads being new.
 */
export function warmStartMonotonic(folder: string, arena: Arena, languages: Languages, model: MonotonicModel): void {
  const { config } = openRun(folder);
  const { problem } = config as { problem?: Record<string, unknown> };
  if (problem?.kind === 'monotonic') {
    warmStart(folder, arena, languages);
    return;
  }
  const { parameters } = traceModel(lossModel(evaluationMode(model), { smoothing: 0 }), lossInputs);
  const known = new Arena(parameters.filter(({ name }) => arena.has(name)));
  warmStart(folder, known, languages);
  for (const name of known.names) arena.value(name).set(known.value(name) as never);
}

function parametersOf(model: MonotonicModel) {
  const weights = { smoothing: 0, latencyWeight: 0, varianceWeight: 0 };
  return traceModel(monotonicLossModel(model, { ...weights, evaluation: true }), lossInputs).parameters;
}

const INFO = 'model.json';

const infoSchema = z.strictObject({
  model: z.strictObject({ ...sizesSchema.shape, attention: z.enum(ATTENTIONS) }),
});
