import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { InputError } from '../../errors.js';
import { readBytes, readJsonFile } from '../../files.js';
import { readSafetensors, type StoredTensor } from '../../optim/safetensors.js';
import { openTorchFile, TorchTensor, widened } from '../../optim/torch-file.js';
import type { Activation, TranslationModel } from '../model/config.js';
import type { Language } from '../text/languages.js';
import { sentencePieceTokenizer } from '../text/sentencepiece.js';
import { Vocabulary } from '../text/vocabulary.js';
import { type ForeignModel, type ForeignTensor, foreignParameters } from './foreign.js';

/*
 * Encoder–decoders in the layout of Hugging Face's transformers:
 *
 *     config.json                         sizes, `model_type`: marian (OPUS-MT) or m2m_100
 *     model.safetensors                   or pytorch_model.bin; names as in fairseq, below `model.`
 *     vocab.json, tokenizer_config.json   ids of the pieces
 *     source.spm, target.spm              of Marian; sentencepiece.bpe.model of M2M-100
 */

/** Which files of the folder to use, and what they do not contain. */
export interface HuggingFaceImportOptions {
  /** Default: from tokenizer_config.json. */
  readonly source?: string;
  readonly target?: string;
  /** A token before every source line, such as `>>fra<<` for a Marian model with several languages. Default none. */
  readonly prefix?: string;
}

/** Reads a Marian or M2M-100 model from a transformers folder. */
export function readHuggingFace(folder: string, options: HuggingFaceImportOptions = {}): ForeignModel {
  const config = new Settings(folder, 'config.json');
  const type = config.get('model_type');
  if (type !== 'marian' && type !== 'm2m_100') {
    throw new InputError(`expected a model of type marian or m2m_100, found ${JSON.stringify(type)}`, {
      file: config.file,
      key: 'model_type',
    });
  }
  const { source, target } = (type === 'marian' ? marianText : m2mText)(folder, config, options);
  const vocabulary = { source: source.language.vocabulary.size, target: target.language.vocabulary.size };
  const model = modelOf(type, config, vocabulary);
  const { tensors, file, close } = openTensors(folder);
  try {
    const parameters = foreignParameters(model, {
      tensors: renamed(tensors, model),
      rows: { source: source.ids, target: target.ids },
      nameOf: foreignName,
      file,
    });
    return { model, languages: { source: source.language, target: target.language }, parameters };
  } finally {
    close();
  }
}

/** A JSON object in a file. */
class Settings {
  readonly file: string;
  private readonly values: Readonly<Record<string, unknown>>;

  constructor(folder: string, name: string, needed = true) {
    this.file = join(folder, name);
    this.values = needed || existsSync(this.file) ? readJsonFile(this.file, objectSchema) : {};
  }

  get(key: string): unknown {
    return this.values[key] ?? undefined;
  }

  entries(): [string, unknown][] {
    return Object.entries(this.values);
  }

  number(key: string, otherwise?: number): number {
    const value = this.get(key) ?? otherwise;
    if (typeof value === 'number') return value;
    throw new InputError(`expected a number, found ${JSON.stringify(value) ?? 'nothing'}`, { file: this.file, key });
  }

  text(key: string): string | undefined {
    const value = this.get(key);
    return typeof value === 'string' ? value : undefined;
  }

  flag(key: string, otherwise: boolean): boolean {
    const value = this.get(key) ?? otherwise;
    if (typeof value === 'boolean') return value;
    throw new InputError(`expected true or false, found ${JSON.stringify(value)}`, { file: this.file, key });
  }

  /** Rejects an unsupported value. */
  require(key: string, expected: unknown): void {
    const value = this.get(key);
    if (value === undefined || value === expected) return;
    const sentence = `the tcts model does not support ${JSON.stringify(value)}, expected ${JSON.stringify(expected)}`;
    throw new InputError(sentence, { file: this.file, key });
  }
}

const objectSchema = z.record(z.string(), z.unknown());

const ACTIVATIONS: Readonly<Record<string, Activation>> = { relu: 'relu', gelu: 'gelu', swish: 'swish', silu: 'swish' };

function modelOf(
  type: 'marian' | 'm2m_100',
  config: Settings,
  vocabulary: { readonly source: number; readonly target: number },
): TranslationModel {
  const { file } = config;
  const isMarian = type === 'marian';
  config.require('normalize_before', !isMarian);
  config.require('normalize_embedding', false);
  config.require('add_final_layer_norm', !isMarian);
  config.require('static_position_embeddings', true);
  config.require('tie_word_embeddings', true);
  const both = (key: string): number => {
    const [encoder, decoder] = [config.number(`encoder_${key}`), config.number(`decoder_${key}`)];
    if (encoder === decoder) return encoder;
    const sentence = `it is ${decoder}, but ${encoder} in the encoder, expected one for both`;
    throw new InputError(sentence, { file, key: `decoder_${key}` });
  };
  const name = config.text('activation_function') ?? (isMarian ? 'gelu' : 'relu');
  if (!Object.hasOwn(ACTIVATIONS, name)) {
    throw new InputError(`the tcts model does not support ${JSON.stringify(name)}`, {
      file,
      key: 'activation_function',
    });
  }
  const startsWithPadding = config.number('decoder_start_token_id') === config.number('pad_token_id');
  if (!startsWithPadding && config.number('decoder_start_token_id') !== config.number('eos_token_id')) {
    throw new InputError('expected the id of the padding or of </s>', { file, key: 'decoder_start_token_id' });
  }
  return {
    encoderLayers: config.number('encoder_layers'),
    decoderLayers: config.number('decoder_layers'),
    width: config.number('d_model'),
    ffn: both('ffn_dim'),
    heads: both('attention_heads'),
    dropout: config.number('dropout', 0.1),
    attentionDropout: config.number('attention_dropout', 0),
    activationDropout: config.number('activation_dropout', 0),
    norm: isMarian ? 'post' : 'pre',
    activation: ACTIVATIONS[name],
    positions: isMarian ? 'marian' : 'fairseq',
    scaleEmbeddings: config.flag('scale_embedding', !isMarian),
    outputBias: isMarian,
    start: startsWithPadding ? 'pad' : 'eos',
    sharedEmbeddings: sharesAll(config) ? 'all' : 'decoder',
    encoder: 'bidirectional',
    maxPositions: config.number('max_position_embeddings', 1024),
    vocabulary,
  };
}

const sharesAll = (config: Settings): boolean => config.flag('share_encoder_decoder_embeddings', true);

/** A language, and the id in the checkpoint of each of our ids. */
interface ForeignLanguage {
  readonly language: Language;
  readonly ids: readonly number[];
}

type ForeignText = (
  folder: string,
  config: Settings,
  options: HuggingFaceImportOptions,
) => { readonly source: ForeignLanguage; readonly target: ForeignLanguage };

const marianText: ForeignText = (folder, config, options) => {
  const settings = new Settings(folder, 'tokenizer_config.json', false);
  const [source, target] = [languageName('source', settings, options), languageName('target', settings, options)];
  const own = new Settings(folder, 'vocab.json');
  const other = sharesAll(config) ? own : new Settings(folder, 'target_vocab.json');
  const size = config.number('vocab_size');
  const known = vocabularyOf(own, size, config);
  const there = other === own ? known : vocabularyOf(other, config.number('decoder_vocab_size', size), config);
  const prefix = options.prefix === undefined ? undefined : knownPrefix(options.prefix, known.vocabulary, own.file);
  return {
    source: { ids: known.ids, language: pieceLanguage(source, join(folder, 'source.spm'), known.vocabulary, prefix) },
    target: { ids: there.ids, language: pieceLanguage(target, join(folder, 'target.spm'), there.vocabulary) },
  };
};

/** Every source and every target begins with the code of its language. */
const m2mText: ForeignText = (folder, config, options) => {
  if (options.prefix !== undefined) {
    throw new InputError('an M2M-100 model uses its language codes as prefixes', { key: '--prefix' });
  }
  const settings = new Settings(folder, 'tokenizer_config.json', false);
  const [source, target] = [languageName('source', settings, options), languageName('target', settings, options)];
  const own = new Settings(folder, 'vocab.json');
  const codes = languageCodes(folder, settings, own.entries().length);
  const { vocabulary, ids } = vocabularyOf(own, config.number('vocab_size'), config, codes);
  const side = (language: string): ForeignLanguage => {
    const prefix = knownPrefix(`__${language}__`, vocabulary, own.file);
    return { ids, language: pieceLanguage(language, join(folder, 'sentencepiece.bpe.model'), vocabulary, prefix) };
  };
  return { source: side(source), target: side(target) };
};

function languageName(side: 'source' | 'target', settings: Settings, options: HuggingFaceImportOptions): string {
  const short = side === 'source' ? 'src_lang' : 'tgt_lang';
  const name = options[side] ?? settings.text(`${side}_lang`) ?? settings.text(short);
  if (name !== undefined) return name;
  throw new InputError(`the folder does not name its ${side} language, expected --${side}`, { file: settings.file });
}

/** Codes of languages follow the pieces, in the order of the tokenizer's additional special tokens. */
function languageCodes(folder: string, settings: Settings, pieces: number): [string, number][] {
  const added = new Settings(folder, 'added_tokens.json', false).entries();
  if (added.length > 0) return added.map(([token, id]) => [token, Number(id)]);
  const special = new Settings(folder, 'special_tokens_map.json', false);
  const listed = settings.get('additional_special_tokens') ?? special.get('additional_special_tokens');
  const tokens = (Array.isArray(listed) ? listed : []).map((token) =>
    typeof token === 'string' ? token : String((token as { content?: unknown }).content),
  );
  return tokens.filter((token) => /^__.+__$/.test(token)).map((token, i) => [token, pieces + i]);
}

function knownPrefix(token: string, vocabulary: Vocabulary, file: string): readonly string[] {
  if (vocabulary.tokens[vocabulary.id(token)] === token) return [token];
  throw new InputError(`the vocabulary has no token ${JSON.stringify(token)}`, { file });
}

/** Our special tokens first, then the others in the order of their ids; ids without a token get placeholders. */
function vocabularyOf(
  file: Settings,
  size: number,
  config: Settings,
  more: readonly [string, number][] = [],
): { readonly vocabulary: Vocabulary; readonly ids: readonly number[] } {
  const tokens = new Array<string | undefined>(size).fill(undefined);
  for (const [token, id] of [...file.entries(), ...more]) {
    if (!(Number.isInteger(id) && (id as number) >= 0 && (id as number) < size)) {
      throw new InputError(`the id of ${JSON.stringify(token)} is ${id}, expected one below ${size}`, {
        file: file.file,
      });
    }
    tokens[id as number] = token;
  }
  const special = [
    tokens.indexOf('<s>'),
    config.number('pad_token_id'),
    config.number('eos_token_id'),
    tokens.indexOf('<unk>'),
  ];
  const own = tokens.map((_, id) => id).filter((id) => !special.includes(id));
  let fillers = 0;
  const entries = own.map((id): [string, number] => {
    const token = tokens[id] ?? `madeupword${String(fillers++).padStart(4, '0')}`;
    if (/[\n\r]/.test(token))
      throw new InputError(`the token ${JSON.stringify(token)} has a line break`, { file: file.file });
    return [token, 0];
  });
  return { vocabulary: new Vocabulary(entries), ids: [...special, ...own] };
}

function pieceLanguage(language: string, spm: string, vocabulary: Vocabulary, prefix?: readonly string[]): Language {
  const sentencePiece = readBytes(spm);
  sentencePieceTokenizer(sentencePiece, spm);
  const config = { language, lowercase: false, normalize: false, tokenizer: { kind: 'sentencepiece' } } as const;
  return { config: { ...config, ...(prefix === undefined ? {} : { prefix }) }, sentencePiece, vocabulary };
}

interface OpenTensors {
  readonly tensors: ReadonlyMap<string, ForeignTensor>;
  /** The file that they are in, or one of several. */
  readonly file: string;
  close(): void;
}

function openTensors(folder: string): OpenTensors {
  const [whole, index, pickled] = ['model.safetensors', 'model.safetensors.index.json', 'pytorch_model.bin'].map(
    (name) => join(folder, name),
  );
  if (existsSync(whole)) return storedTensors([whole]);
  if (existsSync(index)) {
    const parts = Object.values((readJsonFile(index, objectSchema).weight_map ?? {}) as Record<string, string>);
    return storedTensors([...new Set(parts)].map((name) => join(folder, name)));
  }
  if (existsSync(pickled)) return pickledTensors(pickled);
  throw new InputError('expected model.safetensors or pytorch_model.bin in the folder', { file: folder });
}

function storedTensors(files: readonly string[]): OpenTensors {
  const tensors = new Map<string, ForeignTensor>();
  for (const file of files) {
    for (const [name, stored] of readSafetensors(file).tensors) {
      tensors.set(name, { shape: stored.shape, floats: () => floatsOf(stored, name, file) });
    }
  }
  return { tensors, file: files[0], close: () => {} };
}

function floatsOf({ dtype, data }: StoredTensor, name: string, file: string): Float32Array {
  if (data instanceof Float32Array) return data;
  if (data instanceof Float64Array) return Float32Array.from(data);
  if (data instanceof Uint16Array && (dtype === 'F16' || dtype === 'BF16')) return widened(data, dtype);
  throw new InputError(`expected a tensor of floats, found ${dtype}`, { file, key: name });
}

function pickledTensors(file: string): OpenTensors {
  const opened = openTorchFile(file);
  const state = opened.value instanceof Map ? opened.value : new Map();
  const tensors = new Map<string, ForeignTensor>();
  for (const [name, tensor] of state) {
    if (!(tensor instanceof TorchTensor)) continue;
    tensors.set(String(name), { shape: tensor.shape, floats: () => opened.floats(tensor) });
  }
  return { tensors, file, close: () => opened.close() };
}

/** Shared tables may be stored under any of their names, or under all. */
const TABLES = [
  'model.shared.weight',
  'model.encoder.embed_tokens.weight',
  'model.decoder.embed_tokens.weight',
  'lm_head.weight',
];

function renamed(given: ReadonlyMap<string, ForeignTensor>, model: TranslationModel): Map<string, ForeignTensor> {
  const tensors = new Map<string, ForeignTensor>();
  for (const [name, tensor] of given) {
    if (TABLES.includes(name) || /\.embed_positions\.weights?$/.test(name)) continue;
    if (name === 'final_logits_bias') {
      // [1, V]
      tensors.set(BIAS, { shape: tensor.shape.slice(-1), floats: tensor.floats });
    } else tensors.set(name.replace(/^model\./, ''), tensor);
  }
  const isAll = model.sharedEmbeddings === 'all';
  const table = (names: readonly string[]): ForeignTensor | undefined =>
    names.map((name) => given.get(name)).find((tensor) => tensor !== undefined);
  const source = table(isAll ? TABLES : ['model.encoder.embed_tokens.weight']);
  const target = isAll ? undefined : table(['model.decoder.embed_tokens.weight', 'lm_head.weight']);
  if (source !== undefined) tensors.set('encoder.embed_tokens.weight', source);
  if (target !== undefined) tensors.set('decoder.embed_tokens.weight', target);
  if (model.outputBias && !tensors.has(BIAS)) {
    // Like transformers, if the bias is missing.
    const [size] = (target ?? source)?.shape ?? [0];
    tensors.set(BIAS, { shape: [size], floats: () => new Float32Array(size) });
  }
  return tensors;
}

const BIAS = 'decoder.output_projection.bias';

function foreignName(name: string): string {
  return name === BIAS ? 'final_logits_bias' : `model.${name}`;
}
