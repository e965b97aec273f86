import { join } from 'node:path';
import { z } from 'zod';
import { InputError } from '../errors.js';
import { writeFileAtomic } from '../files.js';
import { readJsonFile } from '../json-file.js';
import { Arena, traceModel } from '../optim/index.js';
import { openRun, type SavedCheckpoint } from '../run/index.js';
import { type CheckpointChoice, chosenCheckpoints } from './checkpoint-choice.js';
import { evaluationMode, type TranslationModel } from './model/config.js';
import { lossInputs, lossModel } from './model/loss.js';
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
  /** Updates that the parameters have had. */
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
  const info = readInfo(folder);
  const languages = languagesOf(folder, info.model);
  const { parameters } = traceModel(lossModel(evaluationMode(info.model), { smoothing: 0 }), lossInputs);
  const arena = new Arena(parameters);
  const step = loadParameters(folder, arena, checkpoint);
  return { ...info, languages, arena, step };
}

/** The languages of a run, whose vocabularies must have the sizes that its model was trained with. */
export function languagesOf(folder: string, { vocabulary }: TranslationModel): Languages {
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

/** Fills an arena with the parameters of a run; returns the updates that they have had. */
export function loadParameters(folder: string, arena: Arena, which: CheckpointChoice = 'best'): number {
  openRun(folder);
  let [step, count] = [0, 0];
  for (const saved of chosenCheckpoints(folder, which)) {
    const found = arena.names.map((name) => parameterIn(saved, name, arena.shape(name)));
    count++;
    for (const [i, name] of arena.names.entries()) {
      const mean = arena.value(name);
      if (count === 1) mean.set(found[i] as never);
      else for (let j = 0; j < mean.length; j++) mean[j] += (found[i][j] - mean[j]) / count;
    }
    step = Math.max(step, saved.step);
  }
  return step;
}

function parameterIn({ tensors, path: file }: SavedCheckpoint, name: string, shape: readonly number[]): Float32Array {
  const tensor = tensors.get(PREFIX + name);
  if (tensor !== undefined && tensor.shape.join() === shape.join()) return tensor.data as Float32Array;
  const there = tensor === undefined ? 'nothing' : `[${tensor.shape.join(', ')}]`;
  throw new InputError(`the checkpoint holds ${there}, the model needs [${shape.join(', ')}]`, { file, key: name });
}

const INFO = 'model.json';

/** Where the parameters of a problem are in the checkpoint of a run. */
const PREFIX = 'problem/model/';

const size = z.int().min(1);
const rate = z.number().min(0).lt(1);

/** The sizes of a model in a file. */
export const sizesSchema = z.strictObject({
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

function readInfo(folder: string): TranslationInfo {
  return readJsonFile(join(folder, INFO), infoSchema);
}
