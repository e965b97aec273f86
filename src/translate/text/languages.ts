import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { InputError } from '../../errors.js';
import { readBytes, readText, writeFileAtomic } from '../../files.js';
import { type BpeCodes, formatBpeCodes, parseBpeCodes } from './bpe.js';
import type { PipelineConfig } from './pipeline.js';
import { formatCounts, parseCounts, parseVocabulary, type Vocabulary, type WordCounts } from './vocabulary.js';

/** Converts the text of one language to ids and back. */
export interface Language {
  readonly config: PipelineConfig;
  readonly codes?: BpeCodes;
  readonly units?: WordCounts;
  readonly tokenizerJson?: string;
  readonly sentencePiece?: Uint8Array;
  readonly vocabulary: Vocabulary;
}

export interface Languages {
  readonly source: Language;
  readonly target: Language;
}

/** Id of the token that every target begins with, if its lines have a prefix. */
export function firstToken({ target }: Languages): number | undefined {
  const [token] = target.config.prefix ?? [];
  return token === undefined ? undefined : target.vocabulary.id(token);
}

/** The file of a corpus or run that describes its tokenisation. */
export const TEXT_FILE = 'text.json';

const tokenizerSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('moses'),
    aggressive: z.boolean().optional(),
    escape: z.boolean().optional(),
    protectedPatterns: z.array(z.string()).optional(),
  }),
  z.strictObject({ kind: z.literal('jieba'), spaces: z.boolean().optional() }),
  z.strictObject({ kind: z.enum(['none', 'char', 'huggingface', 'sentencepiece']) }),
]);

const pipelineSchema = z.strictObject({
  language: z.string().min(1),
  lowercase: z.boolean(),
  normalize: z.boolean(),
  tokenizer: tokenizerSchema,
  bpe: z
    .strictObject({ glossaries: z.array(z.string()).optional(), threshold: z.number().int().min(1).optional() })
    .optional(),
  prefix: z.array(z.string().min(1)).length(1).optional(),
});

const textSchema = z.strictObject({ source: pipelineSchema, target: pipelineSchema });

/**
 * Writes the languages into a folder: `text.json`, and for each language L `dict.L.txt`, `codes.L`, `units.L` and
 * `tokenizer.L.json` or `spm.L.model` if they are used. A corpus and a run contain these files, so either can process text by itself.
 */
export function saveLanguages(folder: string, { source, target }: Languages): void {
  for (const language of [source, target]) {
    const name = language.config.language;
    const write = (file: string, content: string | Uint8Array): void => writeFileAtomic(join(folder, file), content);
    write(`dict.${name}.txt`, language.vocabulary.format());
    if (language.codes) write(`codes.${name}`, formatBpeCodes(language.codes));
    if (language.units) write(`units.${name}`, formatCounts(language.units));
    if (language.tokenizerJson !== undefined) write(`tokenizer.${name}.json`, language.tokenizerJson);
    if (language.sentencePiece !== undefined) write(`spm.${name}.model`, language.sentencePiece);
  }
  const text = { source: source.config, target: target.config };
  writeFileAtomic(join(folder, TEXT_FILE), `${JSON.stringify(text, null, 2)}\n`);
}

export function loadLanguages(folder: string): Languages {
  const { source, target } = readTextConfig(folder);
  return { source: load(folder, source), target: load(folder, target) };
}

/** How the text of both languages is tokenised. */
export function readTextConfig(folder: string): z.infer<typeof textSchema> {
  const file = join(folder, TEXT_FILE);
  try {
    return textSchema.parse(JSON.parse(readText(file)));
  } catch (error) {
    if (error instanceof InputError) throw error;
    const issue = error instanceof z.ZodError ? error.issues[0] : undefined;
    throw new InputError(`not a description of two languages: ${issue?.message ?? (error as Error).message}`, {
      file,
      key: issue?.path.join('.'),
    });
  }
}

function load(folder: string, config: PipelineConfig): Language {
  const optional = <T>(name: string, parse: (text: string, file: string) => T): T | undefined => {
    const file = join(folder, name);
    return existsSync(file) ? parse(readText(file), file) : undefined;
  };
  const dict = join(folder, `dict.${config.language}.txt`);
  const codes = optional(`codes.${config.language}`, parseBpeCodes);
  const units = optional(`units.${config.language}`, parseCounts);
  const missing = (name: string): InputError =>
    new InputError('the file is missing, text.json refers to it', { file: join(folder, name) });
  const spm = join(folder, `spm.${config.language}.model`);
  if (config.tokenizer.kind === 'sentencepiece' && !existsSync(spm)) throw missing(`spm.${config.language}.model`);
  if (config.bpe && !codes) throw missing(`codes.${config.language}`);
  if (config.bpe?.threshold !== undefined && !units) throw missing(`units.${config.language}`);
  return {
    config,
    codes,
    units,
    tokenizerJson: optional(`tokenizer.${config.language}.json`, (text) => text),
    sentencePiece: existsSync(spm) ? readBytes(spm) : undefined,
    vocabulary: parseVocabulary(readText(dict), dict),
  };
}
