import { copyFileSync, existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { InputError } from '../../errors.js';
import { readBytes, readText } from '../../files.js';
import { PickleObject } from '../../optim/pickle.js';
import { openTorchFile, type TorchFile, TorchTensor } from '../../optim/torch-file.js';
import {
  type CorpusSummary,
  checkDestination,
  openPairs,
  openPartial,
  publishCorpus,
  type SplitSummary,
  sequencePrefix,
  writeSummary,
} from '../corpus/corpus.js';
import { Tally } from '../corpus/encode-split.js';
import type { LanguageRequest } from '../corpus/prepare.js';
import type { Activation, TranslationModel } from '../model/config.js';
import { parseBpeCodes } from '../text/bpe.js';
import { type Language, saveLanguages } from '../text/languages.js';
import { sentencePieceTokenizer } from '../text/sentencepiece.js';
import type { TokenizerKind } from '../text/tokenizers.js';
import { parseVocabulary, special } from '../text/vocabulary.js';
import { type ForeignModel, type ForeignTensor, foreignParameters } from './foreign.js';

/** Which files of the folder to use, and what they do not contain. */
export interface FairseqImportOptions {
  /** Name of the checkpoint in the folder. Default checkpoint_best.pt, else model.pt, else the only .pt file. */
  readonly checkpoint?: string;
  /** Default: from the checkpoint. */
  readonly source?: string;
  readonly target?: string;
  /** Merges of subword-nmt. Default `bpecodes` in the folder, if there is one. */
  readonly codes?: string;
  /** SentencePiece models: one for both languages, or one each. */
  readonly spm?: readonly string[];
  /** Default moses with merges, otherwise none: the text is already tokenised. */
  readonly tokenizer?: 'moses' | 'none' | 'char' | 'jieba';
  readonly lowercase?: boolean;
  readonly normalize?: boolean;
}

/** Reads a fairseq Transformer from a folder with its checkpoint and the dictionaries of both languages. */
export function readFairseq(folder: string, options: FairseqImportOptions = {}): ForeignModel {
  const file = checkpointIn(folder, options.checkpoint);
  const opened = openTorchFile(file);
  try {
    const saved = mapOf(opened.value);
    const args = argumentsOf(saved, file);
    const state = mapOf(saved.get('model'));
    if (state.size === 0) throw new InputError('expected the parameters of a model under "model"', { file });
    const source = languageOf(folder, 'source', args, options);
    const target = languageOf(folder, 'target', args, options);
    const vocabulary = { source: source.vocabulary.size, target: target.vocabulary.size };
    const model = modelOf(args, vocabulary);
    const tensors = upgraded(tensorsOf(opened, state, file), model);
    const parameters = foreignParameters(model, { tensors, nameOf: (name) => name, file });
    return { model, languages: { source, target }, parameters };
  } finally {
    opened.close();
  }
}

function checkpointIn(folder: string, name?: string): string {
  if (name !== undefined) return join(folder, name);
  if (!existsSync(folder)) throw new InputError('there is no such folder', { file: folder });
  const known = ['checkpoint_best.pt', 'model.pt'].find((one) => existsSync(join(folder, one)));
  const others = readdirSync(folder).filter((one) => one.endsWith('.pt'));
  const chosen = known ?? (others.length === 1 ? others[0] : undefined);
  if (chosen !== undefined) return join(folder, chosen);
  const found = others.length === 0 ? 'none' : others.join(', ');
  throw new InputError(`expected checkpoint_best.pt or model.pt, found ${found}: choose with --checkpoint`, {
    file: folder,
  });
}

function mapOf(value: unknown): Map<unknown, unknown> {
  if (value instanceof Map) return value;
  return value instanceof PickleObject ? value.attributes : new Map();
}

/** The settings of a model: `args` of older checkpoints, `cfg.model` and `cfg.task` of newer ones. */
class Arguments {
  constructor(
    private readonly parts: readonly Map<unknown, unknown>[],
    readonly file: string,
  ) {}

  /** The value of a key; one such as `encoder_embed_dim` may also be `embed_dim` of `encoder`. */
  get(key: string): unknown {
    const [, side, inner] = /^(encoder|decoder)_(.+)$/.exec(key) ?? [];
    for (const part of this.parts) {
      const nested = side === undefined ? undefined : plain(mapOf(plain(part.get(side))).get(inner));
      const value = plain(part.get(key)) ?? nested;
      if (value !== undefined && value !== null) return value;
    }
    return undefined;
  }

  number(key: string, otherwise?: number): number {
    const value = this.get(key) ?? otherwise;
    if (typeof value === 'number') return value;
    throw new InputError(`expected a number, found ${value === undefined ? 'nothing' : shown(value)}`, this.at(key));
  }

  text(key: string): string | undefined {
    const value = this.get(key);
    return typeof value === 'string' ? value : undefined;
  }

  flag(key: string): boolean {
    return this.get(key) === true;
  }

  at(key: string): { readonly file: string; readonly key: string } {
    return { file: this.file, key };
  }
}

/** Unwraps omegaconf nodes. */
function plain(value: unknown): unknown {
  if (!(value instanceof PickleObject) || !value.type.module.startsWith('omegaconf')) return value;
  const { attributes } = value;
  return attributes.has('_content') ? attributes.get('_content') : attributes.get('_val');
}

function shown(value: unknown): string {
  return value instanceof PickleObject ? `an object of ${value.type}` : JSON.stringify(value);
}

function argumentsOf(saved: Map<unknown, unknown>, file: string): Arguments {
  const cfg = mapOf(plain(saved.get('cfg')));
  const parts = [saved.get('args'), cfg.get('model'), cfg.get('task')].map((part) => mapOf(plain(part)));
  if (parts.every((part) => part.size === 0)) {
    throw new InputError('expected the settings of fairseq under "args" or "cfg"', { file });
  }
  return new Arguments(parts, file);
}

/** Keys with only one supported value. */
const REFUSED: Readonly<Record<string, (value: unknown) => boolean>> = {
  encoder_learned_pos: (value) => value === true,
  decoder_learned_pos: (value) => value === true,
  no_token_positional_embeddings: (value) => value === true,
  layernorm_embedding: (value) => value === true,
  no_decoder_final_norm: (value) => value === true,
  no_cross_attention: (value) => value === true,
  cross_self_attention: (value) => value === true,
  char_inputs: (value) => value === true,
  adaptive_input: (value) => value === true,
  merge_src_tgt_embed: (value) => value === true,
  adaptive_softmax_cutoff: (value) => value !== null,
  base_layers: (value) => typeof value === 'number' && value > 0,
};

function modelOf(args: Arguments, vocabulary: { readonly source: number; readonly target: number }): TranslationModel {
  for (const [key, isRefused] of Object.entries(REFUSED)) {
    const value = args.get(key);
    if (value !== undefined && isRefused(value)) {
      throw new InputError(`the tcts model does not support ${shown(value)}`, args.at(key));
    }
  }
  const both = <T>(key: string, read: (key: string) => T): T => {
    const [encoder, decoder] = [read(`encoder_${key}`), read(`decoder_${key}`)];
    if (encoder === decoder) return encoder;
    throw new InputError(
      `it is ${decoder}, but ${encoder} in the encoder, expected one for both`,
      args.at(`decoder_${key}`),
    );
  };
  const width = both('embed_dim', (key) => args.number(key));
  for (const key of ['decoder_input_dim', 'decoder_output_dim']) {
    const value = args.number(key, width);
    if (value !== width) throw new InputError(`it is ${value}, expected ${width} as in the model`, args.at(key));
  }
  const sharesAll = args.flag('share_all_embeddings');
  return {
    encoderLayers: args.number('encoder_layers'),
    decoderLayers: args.number('decoder_layers'),
    width,
    ffn: both('ffn_embed_dim', (key) => args.number(key)),
    heads: both('attention_heads', (key) => args.number(key)),
    dropout: args.number('dropout', 0.1),
    attentionDropout: args.number('attention_dropout', 0),
    activationDropout: args.number('activation_dropout', args.number('relu_dropout', 0)),
    norm: both('normalize_before', (key) => args.flag(key)) ? 'pre' : 'post',
    activation: activationOf(args),
    scaleEmbeddings: !args.flag('no_scale_embedding'),
    sharedEmbeddings: sharesAll ? 'all' : args.flag('share_decoder_input_output_embed') ? 'decoder' : 'none',
    encoder: 'bidirectional',
    maxPositions: Math.min(args.number('max_source_positions', 1024), args.number('max_target_positions', 1024)),
    vocabulary,
  };
}

function activationOf(args: Arguments): Activation {
  const name = args.text('activation_fn') ?? 'relu';
  const known: Readonly<Record<string, Activation>> = { relu: 'relu', gelu: 'gelu', swish: 'swish' };
  if (Object.hasOwn(known, name)) return known[name];
  throw new InputError(`the tcts model does not support ${shown(name)}`, args.at('activation_fn'));
}

function tensorsOf(opened: TorchFile, state: Map<unknown, unknown>, file: string): Map<string, ForeignTensor> {
  const tensors = new Map<string, ForeignTensor>();
  for (const [key, tensor] of state) {
    const name = String(key);
    if (!(tensor instanceof TorchTensor)) throw new InputError('expected a tensor', { file, key: name });
    tensors.set(name, { shape: tensor.shape, floats: () => opened.floats(tensor) });
  }
  return tensors;
}

/** Converts names of older fairseq versions to today's; drops what is not a parameter. */
function upgraded(old: ReadonlyMap<string, ForeignTensor>, model: TranslationModel): Map<string, ForeignTensor> {
  const tensors = new Map<string, ForeignTensor>();
  for (const [name, tensor] of old) {
    if (/\.(version|_float_tensor)$|\.embed_positions\.weights$/.test(name)) continue;
    const [, attention, kind] = /^(.+)\.in_proj_(weight|bias)$/.exec(name) ?? [];
    if (attention !== undefined) {
      ['q_proj', 'k_proj', 'v_proj'].forEach((part, i) => {
        tensors.set(`${attention}.${part}.${kind}`, third(tensor, i));
      });
    } else tensors.set(currentName(name), tensor);
  }
  // Shared tables are stored under each of their names.
  const { sharedEmbeddings } = model;
  if (sharedEmbeddings !== 'none') tensors.delete('decoder.output_projection.weight');
  if (sharedEmbeddings === 'all') tensors.delete('decoder.embed_tokens.weight');
  return tensors;
}

const OLD_NORMS = {
  encoder: ['self_attn_layer_norm', 'final_layer_norm'],
  decoder: ['self_attn_layer_norm', 'encoder_attn_layer_norm', 'final_layer_norm'],
} as const;

function currentName(name: string): string {
  if (name === 'decoder.embed_out') return 'decoder.output_projection.weight';
  const [, before, side, number, after] =
    /^((encoder|decoder)\.layers\.\d+\.)layer_norms\.(\d)(\..+)$/.exec(name) ?? [];
  const norm = side === undefined ? undefined : OLD_NORMS[side as keyof typeof OLD_NORMS][Number(number)];
  return norm === undefined ? name : `${before}${norm}${after}`;
}

/** Queries, keys and values were one matrix. */
function third({ shape: [rows, ...rest], floats }: ForeignTensor, i: number): ForeignTensor {
  return {
    shape: [rows / 3, ...rest],
    floats: () => {
      const all = floats();
      return all.slice((i * all.length) / 3, ((i + 1) * all.length) / 3);
    },
  };
}

function languageOf(
  folder: string,
  side: 'source' | 'target',
  args: Arguments,
  { codes, spm, tokenizer, lowercase = false, normalize = false, ...options }: FairseqImportOptions,
): Language {
  const language = options[side] ?? args.text(`${side}_lang`);
  if (language === undefined) {
    throw new InputError(`the checkpoint does not name its ${side} language, expected --${side}`, { file: args.file });
  }
  const dictionary = join(folder, `dict.${language}.txt`);
  const vocabulary = parseVocabulary(readText(dictionary), dictionary);
  const pieces = spm?.[side === 'source' || spm.length === 1 ? 0 : 1];
  const sentencePiece = pieces === undefined ? undefined : readBytes(pieces);
  if (sentencePiece !== undefined) sentencePieceTokenizer(sentencePiece, pieces);
  const own = join(folder, 'bpecodes');
  const merges = codes ?? (pieces === undefined && existsSync(own) ? own : undefined);
  const kind: TokenizerKind =
    pieces !== undefined ? 'sentencepiece' : (tokenizer ?? (merges === undefined ? 'none' : 'moses'));
  return {
    config: { language, lowercase, normalize, tokenizer: { kind }, bpe: merges === undefined ? undefined : {} },
    codes: merges === undefined ? undefined : parseBpeCodes(readText(merges), merges),
    sentencePiece,
    vocabulary,
  };
}

export interface FairseqImport {
  /** Folder written by fairseq-preprocess (`--dataset-impl mmap`). */
  readonly folder: string;
  /** The preprocessing before fairseq, for translating new text; the files do not contain it. */
  readonly source: LanguageRequest;
  readonly target: LanguageRequest;
  readonly out: string;
  /** Replace a corpus that is already at `out`. Default false. */
  readonly overwrite?: boolean;
}

/** Makes a corpus from fairseq's binarised data: the files are copied and checked against the dictionaries. */
export function importFairseq(options: FairseqImport): CorpusSummary {
  const source = options.source.config.language;
  const target = options.target.config.language;
  checkDestination(options.out, options.overwrite ?? false);
  const { splits, pair } = findSplits(options.folder, source, target);
  const vocabularies = [source, target].map((language) => {
    const file = join(options.folder, `dict.${language}.txt`);
    return parseVocabulary(readText(file), file);
  });
  const record = { fairseq: resolve(options.folder), source: options.source.config, target: options.target.config };
  const partial = openPartial(options.out, `${JSON.stringify(record, null, 2)}\n`);
  const summaries: Record<string, SplitSummary> = {};
  for (const split of splits) {
    for (const language of [source, target]) {
      for (const ending of ['bin', 'idx']) {
        const from = join(options.folder, `${sequencePrefix(split, ...pair, language)}.${ending}`);
        if (!existsSync(from)) throw new InputError('the file is missing', { file: from });
        copyFileSync(from, join(partial, `${sequencePrefix(split, source, target, language)}.${ending}`));
      }
    }
    summaries[split] = summarize(partial, split, [source, target], [vocabularies[0].size, vocabularies[1].size]);
  }
  saveLanguages(partial, {
    source: { ...options.source, vocabulary: vocabularies[0] },
    target: { ...options.target, vocabulary: vocabularies[1] },
  });
  const summary: CorpusSummary = {
    format: 'tcts translation corpus',
    version: 1,
    source,
    target,
    vocabulary: {
      source: vocabularies[0].size,
      target: vocabularies[1].size,
      shared: vocabularies[0].format() === vocabularies[1].format(),
    },
    splits: summaries,
  };
  writeSummary(partial, summary);
  publishCorpus(partial, options.out);
  return summary;
}

/** fairseq names files after the pair it was run with, which may be the opposite direction. */
function findSplits(folder: string, source: string, target: string) {
  const names = existsSync(folder) ? readdirSync(folder) : [];
  for (const pair of [[source, target] as const, [target, source] as const]) {
    const ending = `.${pair[0]}-${pair[1]}.${source}.idx`;
    const splits = names.filter((name) => name.endsWith(ending)).map((name) => name.slice(0, -ending.length));
    if (splits.length > 0) return { splits: splits.sort(), pair };
  }
  const expected = `train.${source}-${target}.${source}.idx`;
  throw new InputError(`no binarised data for ${source}-${target}: expected files such as ${expected}`, {
    file: folder,
  });
}

function summarize(folder: string, split: string, names: [string, string], sizes: [number, number]): SplitSummary {
  const pairs = openPairs(folder, split, ...names);
  const tally = new Tally();
  try {
    for (let i = 0; i < pairs.count; i++) {
      const ids = [pairs.source.read(i), pairs.target.read(i)];
      ids.forEach((sequence, side) => {
        const file = join(folder, `${sequencePrefix(split, ...names, names[side])}.bin`);
        const bad = sequence.find((id) => id < 0 || id >= sizes[side]);
        if (bad !== undefined) {
          throw new InputError(`sentence ${i} holds the id ${bad}, the dictionary has ${sizes[side]} entries`, {
            file,
          });
        }
        if (sequence[sequence.length - 1] !== special.eos) {
          throw new InputError(`sentence ${i} does not end with </s> (id 2), as fairseq-preprocess writes it`, {
            file,
          });
        }
      });
      tally.accept(ids[0], ids[1]);
    }
  } finally {
    pairs.close();
  }
  return tally.summary();
}
