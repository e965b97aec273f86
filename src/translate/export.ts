import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { DeviceName } from '../devices.js';
import { InputError } from '../errors.js';
import { makeFolder, writeFileAtomic } from '../files.js';
import type { Arena } from '../optim/index.js';
import { type StoredTensor, writeSafetensors } from '../optim/safetensors.js';
import { type CheckpointChoice, openRun } from '../run/index.js';
import { type DType, type Executable, formatShape, type TensorType } from '../tensor/index.js';
import { stepPrograms } from './decode/steps.js';
import type { TranslationModel } from './model/config.js';
import { policyOf, redecodes } from './monotonic/config.js';
import { firstToken, type Language, type Languages, saveLanguages } from './text/languages.js';
import { special, type Vocabulary } from './text/vocabulary.js';
import { decidingAttention, openTrained, trainedMonotonic } from './trained.js';

/** What of a run is exported. */
export interface ExportOptions {
  /** Default `best`. */
  readonly checkpoint?: CheckpointChoice;
  /** Beam for which there must be enough candidates. Default 5. */
  readonly beam?: number;
  /**
   * Target device of the models. For devices other than the CPU, i64 inputs become i32, and outputs may.
   * Default cpu.
   */
  readonly device?: DeviceName;
}

/** What was written, file by file. */
export interface Exported {
  readonly files: readonly { readonly name: string; readonly bytes: number }[];
}

/**
 * Writes a run's model for use without this library: `encoder-step.onnx` and `decoder-step.onnx` (see
 * `decode/steps.ts` for their contract), the vocabularies and text settings, and `settings.json` with the sizes, the
 * special tokens and the inputs and outputs of both models.
 */
export function exportTranslation(run: string, folder: string, options: ExportOptions = {}): Exported {
  const { model, languages, step, encoder, decoder, training } = opened(run, options);
  makeFolder(folder);
  saveLanguages(folder, languages);
  const settings = {
    format: 'tcts translation model',
    version: 1,
    ...training,
    updates: step,
    languages: { source: languages.source.config.language, target: languages.target.config.language },
    model: {
      encoder: model.encoder,
      encoderLayers: model.encoderLayers,
      decoderLayers: model.decoderLayers,
      width: model.width,
      heads: model.heads,
      maxPositions: model.maxPositions,
      vocabulary: model.vocabulary,
    },
    tokens: { start: special.eos, end: special.eos, padding: special.pad, unknown: special.unk, firstOwn: 4 },
    encoderStep: { file: ENCODER, ...describedStep(encoder) },
    decoderStep: { file: DECODER, ...describedStep(decoder) },
  };
  const written: [string, string | Uint8Array][] = [
    [ENCODER, encoder.onnx],
    [DECODER, decoder.onnx],
    ['settings.json', `${JSON.stringify(settings, null, 2)}\n`],
  ];
  for (const [name, content] of written) writeFileAtomic(join(folder, name), content);
  return { files: written.map(([name, content]) => ({ name, bytes: Buffer.byteLength(content) })) };
}

/** The programs of any translation run, and how it was trained: k, or its own policy. */
function opened(run: string, { checkpoint, beam, device }: ExportOptions) {
  if (!learnsWhenToRead(run)) {
    const { main, waits, ...trained } = openTrained(run, checkpoint);
    const programs = stepPrograms(trained.model, trained.arena, {
      ...{ beam, device },
      weights: true,
      first: firstToken(trained.languages),
    });
    return { ...trained, ...programs, training: { main, waits } };
  }
  const trained = trainedMonotonic(run, checkpoint);
  const { model, arena } = trained;
  const programs = stepPrograms(model, arena, { beam, device, attend: decidingAttention(model) });
  const { attention, candidates } = model;
  const training = {
    policy: policyOf(attention),
    attention,
    ...(candidates && { candidates }),
    redecodes: redecodes(model),
  };
  return { ...trained, ...programs, training };
}

function learnsWhenToRead(run: string): boolean {
  const { problem } = openRun(run).config as { problem?: { kind?: string } };
  return problem?.kind === 'monotonic';
}

/**
 * Writes the parameters of any translation run, without its optimiser, as one safetensors file: names are fairseq's,
 * the metadata hold the model's sizes and the number of updates. Returns the bytes written.
 */
export function exportParameters(run: string, file: string, checkpoint?: CheckpointChoice): number {
  const open = learnsWhenToRead(run) ? trainedMonotonic : openTrained;
  const { model, arena, step } = open(run, checkpoint);
  const tensors = arena.names.map((name): [string, StoredTensor] => {
    const data = arena.value(name) as Float32Array;
    return [name, { dtype: 'F32', shape: arena.shape(name), data }];
  });
  writeSafetensors(file, new Map(tensors), { format: 'pt', model: JSON.stringify(model), updates: String(step) });
  return statSync(file).size;
}

const ENCODER = 'encoder-step.onnx';
const DECODER = 'decoder-step.onnx';

function describedStep({ device, inputs, outputs }: Executable) {
  const integer: DType = device === 'cpu' ? 'i64' : 'i32';
  const given = Object.entries(inputs).map(([name, { dtype, shape }]): [string, TensorType] => [
    name,
    { dtype: dtype === 'i64' ? integer : dtype, shape },
  ]);
  return { inputs: described(Object.fromEntries(given)), outputs: described(outputs) };
}

function described(types: Readonly<Record<string, TensorType>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(types).map(([name, { dtype, shape }]) => [name, `${dtype}${formatShape(shape)}`]),
  );
}

/**
 * Writes a run's model as a folder that `MarianMTModel.from_pretrained` and `MarianTokenizer.from_pretrained` of
 * transformers load. A model that does not fit Marian's layout is rejected with the offending key. The
 * token `<s>`, which Marian does not have, is left out: it is never proposed.
 */
export function exportHuggingFace(run: string, folder: string, checkpoint?: CheckpointChoice): Exported {
  const { model, languages, arena } = openTrained(run, checkpoint);
  requireExpressible(model, languages, run);
  const shares = model.sharedEmbeddings === 'all';
  const [source, target] = [rowsOf(languages.source.vocabulary, shares), rowsOf(languages.target.vocabulary, shares)];
  const padding = source.indexOf(special.pad);
  const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;
  const written: [string, string | Uint8Array][] = [
    ['config.json', json(configOf(model, { source: source.length, target: target.length, padding }))],
    ['generation_config.json', json(generationOf(model, padding))],
    ['tokenizer_config.json', json(tokenizerOf(model, languages))],
    ['vocab.json', json(idsOf(languages.source.vocabulary, source))],
    ...(shares ? [] : [['target_vocab.json', json(idsOf(languages.target.vocabulary, target))] as [string, string]]),
    ['source.spm', piecesOf(languages.source, run)],
    ['target.spm', piecesOf(languages.target, run)],
  ];
  makeFolder(folder);
  for (const [name, content] of written) writeFileAtomic(join(folder, name), content);
  const weights = join(folder, 'model.safetensors');
  writeSafetensors(weights, tensorsOf(model, arena, { source, target }), { format: 'pt' });
  const files = written.map(([name, content]) => ({ name, bytes: Buffer.byteLength(content) }));
  return { files: [...files, { name: 'model.safetensors', bytes: statSync(weights).size }] };
}

/** Marian's values for keys that may differ in our models. */
const MARIAN = { encoder: 'bidirectional', norm: 'post', positions: 'marian', start: 'pad' } as const;
const DEFAULTS = { norm: 'post', positions: 'fairseq', start: 'eos' } as const;

function requireExpressible(model: TranslationModel, { source, target }: Languages, file: string): void {
  const own = { ...DEFAULTS, ...model };
  for (const key of Object.keys(MARIAN) as (keyof typeof MARIAN)[]) {
    if (own[key] === MARIAN[key]) continue;
    const sentence = `Marian's layout in transformers does not support ${own[key]}, expected ${MARIAN[key]}`;
    throw new InputError(sentence, { file, key: `model.${key}` });
  }
  if (model.sharedEmbeddings === 'none') {
    const sentence = "Marian's layout in transformers does not support none, expected decoder or all";
    throw new InputError(sentence, { file, key: 'model.sharedEmbeddings' });
  }
  for (const { config } of [source, target]) {
    if (config.tokenizer.kind !== 'sentencepiece' || config.lowercase || config.normalize) {
      const found = config.lowercase
        ? 'lower case'
        : config.normalize
          ? 'normalised punctuation'
          : config.tokenizer.kind;
      const sentence = `the text of ${config.language} is cut by SentencePiece alone in Marian's layout, not by ${found}`;
      throw new InputError(sentence, { file });
    }
  }
  if (target.config.prefix !== undefined) {
    throw new InputError("Marian's layout does not support a token that begins every output", { file });
  }
}

/** Our ids in the order of Marian's: </s> and <unk> first; padding last, or third, so that it is the same on both sides. */
function rowsOf({ size }: Vocabulary, paddingLast: boolean): number[] {
  const own = Array.from({ length: size }, (_, id) => id).filter((id) => id > special.unk);
  const first = [special.eos, special.unk];
  return paddingLast ? [...first, ...own, special.pad] : [...first, special.pad, ...own];
}

function idsOf({ tokens }: Vocabulary, rows: readonly number[]): Record<string, number> {
  return Object.fromEntries(rows.map((id, i) => [tokens[id], i]));
}

function piecesOf({ sentencePiece, config }: Language, file: string): Uint8Array {
  if (sentencePiece !== undefined) return sentencePiece;
  throw new InputError(`the run has no SentencePiece model of ${config.language}`, { file });
}

interface ForeignSizes {
  readonly source: number;
  readonly target: number;
  /** Id of the padding. */
  readonly padding: number;
}

function configOf(model: TranslationModel, { source, target, padding }: ForeignSizes): Record<string, unknown> {
  return {
    architectures: ['MarianMTModel'],
    model_type: 'marian',
    is_encoder_decoder: true,
    activation_function: model.activation ?? 'relu',
    d_model: model.width,
    encoder_layers: model.encoderLayers,
    decoder_layers: model.decoderLayers,
    encoder_ffn_dim: model.ffn,
    decoder_ffn_dim: model.ffn,
    encoder_attention_heads: model.heads,
    decoder_attention_heads: model.heads,
    dropout: model.dropout,
    attention_dropout: model.attentionDropout,
    activation_dropout: model.activationDropout,
    max_position_embeddings: model.maxPositions,
    scale_embedding: model.scaleEmbeddings ?? true,
    static_position_embeddings: true,
    share_encoder_decoder_embeddings: model.sharedEmbeddings === 'all',
    tie_word_embeddings: true,
    vocab_size: source,
    decoder_vocab_size: target,
    eos_token_id: 0,
    forced_eos_token_id: 0,
    pad_token_id: padding,
    decoder_start_token_id: padding,
    torch_dtype: 'float32',
  };
}

function generationOf({ maxPositions }: TranslationModel, padding: number): Record<string, unknown> {
  return {
    bad_words_ids: [[padding]],
    decoder_start_token_id: padding,
    eos_token_id: 0,
    forced_eos_token_id: 0,
    max_length: maxPositions,
    num_beams: 5,
    pad_token_id: padding,
  };
}

function tokenizerOf({ maxPositions, sharedEmbeddings }: TranslationModel, { source, target }: Languages) {
  return {
    tokenizer_class: 'MarianTokenizer',
    source_lang: source.config.language,
    target_lang: target.config.language,
    separate_vocabs: sharedEmbeddings !== 'all',
    model_max_length: maxPositions,
    unk_token: '<unk>',
    eos_token: '</s>',
    pad_token: '<pad>',
  };
}

function tensorsOf(
  model: TranslationModel,
  arena: Arena,
  rows: { readonly source: readonly number[]; readonly target: readonly number[] },
): Map<string, StoredTensor> {
  const tensors = new Map<string, StoredTensor>();
  const table = (name: string, ids: readonly number[]): StoredTensor => {
    const values = arena.value(name) as Float32Array;
    const width = arena.shape(name)[1] ?? 1;
    const data = new Float32Array(ids.length * width);
    for (const [i, id] of ids.entries()) data.set(values.subarray(id * width, (id + 1) * width), i * width);
    return { dtype: 'F32', shape: [ids.length, width], data };
  };
  const isAll = model.sharedEmbeddings === 'all';
  for (const name of arena.names) {
    if (name === BIAS) continue;
    if (name === 'encoder.embed_tokens.weight') {
      tensors.set(isAll ? 'model.shared.weight' : `model.${name}`, table(name, rows.source));
    } else if (name === 'decoder.embed_tokens.weight') {
      const stored = table(name, rows.target);
      tensors.set(`model.${name}`, stored);
      tensors.set('lm_head.weight', stored);
    } else {
      tensors.set(`model.${name}`, { dtype: 'F32', shape: arena.shape(name), data: arena.value(name) as Float32Array });
    }
  }
  const size = rows.target.length;
  const bias = arena.has(BIAS) ? (table(BIAS, rows.target).data as Float32Array) : new Float32Array(size);
  return tensors.set('final_logits_bias', { dtype: 'F32', shape: [1, size], data: bias });
}

const BIAS = 'decoder.output_projection.bias';
