import { join } from 'node:path';
import { z } from 'zod';
import { InputError } from '../errors.js';
import { readJsonFile, writeFileAtomic } from '../files.js';
import { Arena, traceModel } from '../optim/index.js';
import { type CheckpointChoice, openRun } from '../run/index.js';
import { loadParameters } from '../schedule/index.js';
import { evaluationMode, type TranslationModel } from './model/config.js';
import { lossInputs, lossModel } from './model/loss.js';
import { ATTENTIONS, type MonotonicModel } from './monotonic/config.js';
import { monotonicInputs, monotonicLossModel } from './monotonic/loss.js';
import { type Languages, loadLanguages, saveLanguages } from './text/languages.js';

/** What a run folder says about its model, besides the parameters. */
export interface TranslationInfo {
  readonly model: TranslationModel;
  /** k of the main task wait-k. */
  readonly main: number;
  /** M, or that the model was trained to translate whole sentences only. */
  readonly waits: number | 'full';
}

/** A trained model that can be run. */
export interface TrainedTranslation extends TranslationInfo {
  readonly languages: Languages;
  /** The parameters, by fairseq's names. */
  readonly arena: Arena;
  /** Updates that made the parameters. */
  readonly step: number;
}

/** Writes everything besides the parameters into a run folder. */
export function saveTranslation(folder: string, languages: Languages, info: TranslationInfo): void {
  saveLanguages(folder, languages);
  writeFileAtomic(join(folder, INFO), `${JSON.stringify(info, null, 2)}\n`);
}

/** Reads a model from a run folder. */
export function openTrained(folder: string, checkpoint: CheckpointChoice = 'best'): TrainedTranslation {
  openRun(folder);
  const info: TranslationInfo = readJsonFile(join(folder, INFO), infoSchema);
  const languages = languagesOf(folder, info.model);
  const { parameters } = traceModel(lossModel(evaluationMode(info.model), { smoothing: 0 }), lossInputs);
  const arena = new Arena(parameters);
  const step = loadParameters(folder, arena, checkpoint);
  return { ...info, languages, arena, step };
}

/** A trained model with monotonic attention that can be run. */
export interface TrainedMonotonic {
  readonly model: MonotonicModel;
  readonly languages: Languages;
  readonly arena: Arena;
  /** Updates that made the parameters. */
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
  const { model } = readJsonFile(join(folder, INFO), monotonicInfoSchema);
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
  const options = { smoothing: 0, varianceWeight: 0, evaluation: true };
  return traceModel(monotonicLossModel(model, options), monotonicInputs).parameters;
}

/** The languages of a run, whose vocabularies must have the sizes that its model was trained with. */
function languagesOf(folder: string, { vocabulary }: TranslationModel): Languages {
  const languages = loadLanguages(folder);
  for (const side of ['source', 'target'] as const) {
    const { size } = languages[side].vocabulary;
    if (size === vocabulary[side]) continue;
    const file = join(folder, `dict.${languages[side].config.language}.txt`);
    throw new InputError(`it has ${size} entries, the model was trained with ${vocabulary[side]}`, { file });
  }
  return languages;
}

/** Fills an arena with the best parameters of a run that was trained with the same vocabularies. */
export function warmStart(folder: string, arena: Arena, languages: Languages): void {
  openRun(folder);
  const known = loadLanguages(folder);
  for (const side of ['source', 'target'] as const) {
    if (known[side].vocabulary.format() === languages[side].vocabulary.format()) continue;
    const file = join(folder, `dict.${known[side].config.language}.txt`);
    throw new InputError(`its ${side} vocabulary is not that of the corpus: prepare the corpus with --like ${folder}`, {
      file,
      key: 'problem.warmStart',
    });
  }
  loadParameters(folder, arena);
}

const INFO = 'model.json';

const size = z.int().min(1);
const rate = z.number().min(0).lt(1);

/** The sizes of a model in a file. */
const sizesSchema = z.strictObject({
  encoderLayers: size,
  decoderLayers: size,
  width: size,
  ffn: size,
  heads: size,
  dropout: rate,
  attentionDropout: rate,
  activationDropout: rate,
  norm: z.enum(['post', 'pre']).optional(),
  activation: z.enum(['relu', 'gelu']).optional(),
  sharedEmbeddings: z.enum(['none', 'decoder', 'all']),
  encoder: z.enum(['unidirectional', 'bidirectional']),
  maxPositions: size,
  vocabulary: z.strictObject({ source: size, target: size }),
});

const infoSchema = z.strictObject({
  model: sizesSchema,
  main: size,
  waits: z.union([size, z.literal('full')]),
});

const monotonicInfoSchema = z.strictObject({
  model: z.strictObject({
    ...sizesSchema.shape,
    attention: z.enum(ATTENTIONS),
    candidates: z.strictObject({ first: z.int(), states: size }).optional(),
  }),
});
