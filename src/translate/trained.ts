import { join } from 'node:path';
import { z } from 'zod';
import { InputError } from '../errors.js';
import { readJsonFile, writeFileAtomic } from '../files.js';
import { Arena, type Floats, traceModel } from '../optim/index.js';
import { type CheckpointChoice, openRun } from '../run/index.js';
import { loadParameters } from '../schedule/index.js';
import type { Parameter } from '../tensor/index.js';
import type { SourceAttention } from './decode/steps.js';
import {
  ACTIVATION_NAMES,
  adaptersSchema,
  evaluationMode,
  isAdapter,
  modelFile,
  type TranslationModel,
} from './model/config.js';
import { lossInputs, lossModel } from './model/transformer.js';
import { stoppingAttention } from './monotonic/attention.js';
import { ATTENTIONS, type MonotonicModel } from './monotonic/config.js';
import { momentSteps } from './monotonic/hmt.js';
import { copyAttentionToInformation, transportSteps } from './monotonic/itst.js';
import { monotonicInputs, monotonicLossModel } from './monotonic/loss.js';
import { type Languages, loadLanguages, saveLanguages } from './text/languages.js';

/** A wait this long means "full sentence". */
export const FULL = 1_000_000;

/** What a run folder records about its model, besides the parameters. */
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
  writeFileAtomic(modelFile(folder), `${JSON.stringify(info, null, 2)}\n`);
}

/** Reads a model from a run folder, its adapters merged into the matrices that they belong to. */
export function openTrained(folder: string, checkpoint: CheckpointChoice = 'best'): TrainedTranslation {
  openRun(folder);
  const info: TranslationInfo = readJsonFile(modelFile(folder), infoSchema);
  const { adapters, ...model } = info.model;
  const languages = languagesOf(folder, model);
  const arena = arenaOf(info.model);
  const step = loadParameters(folder, arena, checkpoint);
  if (adapters === undefined) return { ...info, languages, arena, step };
  return { ...info, model, languages, arena: merge(arena, arenaOf(model), adapters), step };
}

/** The parameters of a model to be run: they have no gradients. */
function arenaOf(model: TranslationModel): Arena {
  const { parameters } = traceModel(lossModel(evaluationMode(model), { smoothing: 0 }), lossInputs);
  return new Arena(parameters.map(({ name, shape }) => ({ name, shape, frozen: true })));
}

/** The parameters of `into` with the values of `arena` and its adapters. */
function merge(arena: Arena, into: Arena, adapters: { readonly rank: number; readonly alpha: number }): Arena {
  for (const name of into.names) into.value(name).set(arena.value(name) as never);
  for (const name of arena.names.filter((one) => one.endsWith('.lora_A.weight'))) {
    const layer = name.slice(0, -'.lora_A.weight'.length);
    const [down, up] = [arena.value(name), arena.value(`${layer}.lora_B.weight`)];
    addProduct(into.value(`${layer}.weight`), up, down, adapters);
  }
  return into;
}

/** W ← W + α/r·B·A, with B [out, r] and A [r, in]; summed in f64. */
function addProduct(
  weight: Floats,
  up: Floats,
  down: Floats,
  { rank, alpha }: { readonly rank: number; readonly alpha: number },
): void {
  const [out, size] = [up.length / rank, down.length / rank];
  for (let o = 0; o < out; o++) {
    for (let i = 0; i < size; i++) {
      let sum = 0;
      for (let r = 0; r < rank; r++) sum += up[o * rank + r] * down[r * size + i];
      weight[o * size + i] += (alpha / rank) * sum;
    }
  }
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
  writeFileAtomic(modelFile(folder), `${JSON.stringify({ model }, null, 2)}\n`);
}

/** Reads a model from a run folder, its adapters merged into the matrices that they belong to. */
export function trainedMonotonic(folder: string, checkpoint: CheckpointChoice = 'best'): TrainedMonotonic {
  openRun(folder);
  const { model: trained } = readJsonFile(modelFile(folder), monotonicInfoSchema);
  const { adapters, ...model } = trained;
  const languages = languagesOf(folder, model);
  const arena = new Arena(parametersOf(trained));
  const step = loadParameters(folder, arena, checkpoint);
  if (adapters === undefined) return { model, languages, arena, step };
  return { model, languages, arena: merge(arena, new Arena(parametersOf(model)), adapters), step };
}

/** The attention of a model that learns when to read, step by step. */
export function decidingAttention(model: MonotonicModel): SourceAttention {
  if (model.attention === 'itst') return transportSteps(model);
  return model.attention === 'hmt' ? momentSteps(model) : stoppingAttention(model);
}

/**
 * Fills an arena with the best parameters of a run with the same vocabularies: all of them if it was trained with
 * monotonic attention, otherwise those that this model shares with the Transformer. The moving heads are new; with `itst`
 * information begins where the attention looks.
 */
export function warmStartMonotonic(folder: string, arena: Arena, languages: Languages, model: MonotonicModel): void {
  const { config } = openRun(folder);
  const { problem } = config as { problem?: Record<string, unknown> };
  if (problem?.kind === 'monotonic') {
    warmStartTranslation(folder, arena, languages, model, () => trainedMonotonic(folder).arena);
    return;
  }
  const known = new Arena(transformerParameters(model).filter(({ name }) => arena.has(name)));
  warmStartTranslation(folder, known, languages, model);
  for (const name of known.names) arena.value(name).set(known.value(name) as never);
  if (model.attention === 'itst') copyAttentionToInformation(arena);
}

/** The parameters that a model shares with the Transformer of its sizes that waits and has no adapters. */
export function transformerParameters({ adapters, ...model }: TranslationModel): readonly Parameter[] {
  return traceModel(lossModel(evaluationMode(model), { smoothing: 0 }), lossInputs).parameters;
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

/**
 * Fills an arena with the best parameters of a run that was trained with the same vocabularies. Adapters of the arena
 * are unchanged; those of the run are merged into its other parameters.
 *
 * @param opened the run's parameters, merged
 */
export function warmStartTranslation(
  folder: string,
  arena: Arena,
  languages: Languages,
  model: TranslationModel,
  opened: () => Arena = () => openTrained(folder).arena,
): void {
  openRun(folder);
  const { model: before } = readJsonFile(modelFile(folder), z.looseObject({ model: startSchema }));
  for (const [key, otherwise] of Object.entries(UNSHAPED)) {
    const [was, is] = [before[key] ?? otherwise, (model as unknown as Record<string, unknown>)[key] ?? otherwise];
    if (was === undefined || was === is) continue;
    throw new InputError(`it is ${is}, but ${was} in the run the model starts from, expected the same`, {
      file: folder,
      key: `problem.model.${key}`,
    });
  }
  const known = loadLanguages(folder);
  for (const side of ['source', 'target'] as const) {
    if (known[side].vocabulary.format() === languages[side].vocabulary.format()) continue;
    const file = join(folder, `dict.${known[side].config.language}.txt`);
    throw new InputError(
      `its ${side} vocabulary differs from that of the corpus: prepare the corpus with --like ${folder}`,
      {
        file,
        key: 'problem.warmStart',
      },
    );
  }
  const isPlain = !arena.names.some(isAdapter) && before.adapters === undefined;
  if (isPlain) {
    loadParameters(folder, arena);
    return;
  }
  const start = opened();
  for (const name of arena.names.filter((one) => !isAdapter(one))) {
    const there = start.has(name) ? `[${start.shape(name).join(', ')}]` : 'nothing';
    const needed = `[${arena.shape(name).join(', ')}]`;
    if (there !== needed) {
      throw new InputError(`the run holds ${there}, the model needs ${needed}`, { file: folder, key: name });
    }
    arena.value(name).set(start.value(name) as never);
  }
}

/** Keys that change the meaning of parameters but not their shapes, with the values of runs that do not have them. */
const UNSHAPED = {
  heads: undefined,
  norm: 'post',
  activation: 'relu',
  positions: 'fairseq',
  scaleEmbeddings: true,
  start: 'eos',
} as const;

const startSchema = z.looseObject({ adapters: z.unknown().optional() });

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
  activation: z.enum(ACTIVATION_NAMES).optional(),
  positions: z.enum(['fairseq', 'marian']).optional(),
  scaleEmbeddings: z.boolean().optional(),
  outputBias: z.boolean().optional(),
  start: z.enum(['eos', 'pad']).optional(),
  adapters: adaptersSchema.optional(),
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
