import { createHash } from 'node:crypto';
import { existsSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { InputError } from '../../errors.js';
import { type BpeCodes, bpeSegmenter, formatBpeCodes } from '../text/bpe.js';
import { learnBpe } from '../text/bpe-learning.js';
import { type Language, type Languages, loadLanguages, saveLanguages } from '../text/languages.js';
import { type PipelineConfig, textPipeline } from '../text/pipeline.js';
import { sentencePieceTokenizer } from '../text/sentencepiece.js';
import { huggingFaceTokenizer, type TokenizerFiles } from '../text/tokenizers.js';
import { buildVocabulary, countWords, sumCounts, type Vocabulary, type WordCounts } from '../text/vocabulary.js';
import {
  type CorpusSummary,
  checkDestination,
  isCorpus,
  isPrepared,
  openPartial,
  publishCorpus,
  readSummary,
  type SplitSummary,
  sequencePrefix,
  writeSummary,
} from './corpus.js';
import { encodeSplit, type Filters, filterReasons, rejectWords } from './encode-split.js';
import { readLines, readPairs } from './text-files.js';

export interface PrepareOptions {
  readonly source: LanguageRequest;
  readonly target: LanguageRequest;
  /** Files of a split are PREFIX.LANGUAGE, also with `.gz`. */
  readonly train?: string;
  readonly valid?: string;
  /** The first is the split `test`, the others are `test1`, `test2`, …, as in fairseq. */
  readonly test?: readonly string[];
  readonly out: string;
  /** Replace a corpus that is already at `out`. Default false. */
  readonly overwrite?: boolean;
  readonly learning: LearningOptions;
  /** Use given languages instead of learning them; training text is then optional. */
  readonly languages?: Languages;
}

/** Progress of the preparation: lines of a file done. */
export type PrepareProgress = (stage: string, lines: number) => void;

export interface Prepared {
  readonly summary: CorpusSummary;
  /** The same corpus already existed. */
  readonly reused: boolean;
}

/**
 * Makes a corpus of ids from parallel text files. Everything is written to `OUT.partial`, which is renamed to `out`
 * when it is complete; after an interruption, the same call continues where the last one stopped and ends with the same
 * bytes.
 */
export async function prepareTranslation(options: PrepareOptions, progress?: PrepareProgress): Promise<Prepared> {
  const source = options.source.config.language;
  const target = options.target.config.language;
  if (source === target) throw new InputError(`the two languages must differ, both are "${source}"`);
  checkNumbers(options);
  const splits = splitFiles(options, source, target);
  const record = `${JSON.stringify(origin(options, splits), null, 2)}\n`;
  if (isPrepared(options.out, record)) return { summary: readSummary(options.out), reused: true };
  checkDestination(options.out, options.overwrite ?? false);

  // The small files first: a mistake in them should not show up after hours of work on the training text.
  for (const files of splits) if (files.split !== 'train') await checkText(files);
  const folder = openPartial(options.out, record);
  if (!isCorpus(folder)) {
    const languages = await readyLanguages(folder, options, splits, progress);
    const summaries: Record<string, SplitSummary> = {};
    for (const files of splits) {
      const { split } = files;
      const filters = split === 'train' ? options.learning.filters : undefined;
      summaries[split] = await encodeSplit(folder, { ...files, filters }, languages, (n) => progress?.(split, n));
      if (summaries[split].pairs === 0) throw nothingLeft(summaries[split], files.source);
      if (split !== 'train') {
        for (const side of ['source', 'target'] as const) {
          const name = sequencePrefix(split, source, target, side === 'source' ? source : target);
          await copyText(files[side], join(folder, `${name}.txt`));
        }
      }
    }
    writeSummary(folder, {
      format: 'tcts translation corpus',
      version: 1,
      source,
      target,
      vocabulary: {
        source: languages.source.vocabulary.size,
        target: languages.target.vocabulary.size,
        shared: languages.source.vocabulary.format() === languages.target.vocabulary.format(),
      },
      splits: summaries,
    });
  }
  const summary = readSummary(folder);
  publishCorpus(folder, options.out);
  return { summary, reused: false };
}

interface SplitFiles {
  readonly split: string;
  readonly source: string;
  readonly target: string;
}

function splitFiles({ train, valid, test = [] }: PrepareOptions, source: string, target: string): SplitFiles[] {
  const prefixes: [string, string | undefined][] = [
    ['train', train],
    ['valid', valid],
    ...test.map((prefix, i): [string, string] => [i === 0 ? 'test' : `test${i}`, prefix]),
  ];
  const splits = prefixes.flatMap(([split, prefix]) =>
    prefix === undefined ? [] : [{ split, source: textFile(prefix, source), target: textFile(prefix, target) }],
  );
  if (splits.length === 0) throw new InputError('no text is given: name at least one of --train, --valid, --test');
  return splits;
}

function textFile(prefix: string, language: string): string {
  const plain = `${prefix}.${language}`;
  const found = [plain, `${plain}.gz`].find((path) => existsSync(path));
  if (found === undefined) throw new InputError('no such file, neither plain nor with .gz', { file: plain });
  return found;
}

function checkNumbers({ learning }: PrepareOptions): void {
  const { filters } = learning;
  const counts: [string, number | undefined][] = [
    ['--bpe', learning.bpe],
    ['--min-frequency', learning.minFrequency],
    ['--min-count', learning.minCount],
    ['--vocab-size', learning.vocabularySize],
    ['--padding-factor', learning.paddingFactor],
    ['--max-length', filters.maxLength],
    ['--max-tokens', filters.maxTokens],
  ];
  for (const [key, value] of counts) {
    if (value !== undefined && !(Number.isSafeInteger(value) && value >= 1)) {
      throw new InputError(`expected a whole number of at least 1, found ${value}`, { key });
    }
  }
  const { ratio } = filters;
  if (ratio !== undefined && !(ratio >= 1)) {
    throw new InputError(`expected a number of at least 1, found ${ratio}`, { key: '--ratio' });
  }
}

/** Everything the result depends on. A file counts as unchanged while its size and time of change are the same. */
function origin(options: PrepareOptions, splits: readonly SplitFiles[]): unknown {
  const file = (path: string) => {
    const { size, mtimeMs } = statSync(path);
    return { path: resolve(path), bytes: size, modified: new Date(mtimeMs).toISOString() };
  };
  const digest = (content: string | Uint8Array | undefined): string | undefined =>
    content && createHash('sha256').update(content).digest('hex');
  const side = ({ config, tokenizerJson, sentencePiece, codes, vocabulary }: LanguageRequest) => ({
    config,
    codes: digest(codes && formatBpeCodes(codes)),
    vocabulary: digest(vocabulary?.format()),
    tokenizer: digest(tokenizerJson ?? sentencePiece),
  });
  return {
    version: 1,
    source: side(options.languages?.source ?? options.source),
    target: side(options.languages?.target ?? options.target),
    learning: options.learning,
    text: splits.map(({ split, source, target }) => ({ split, source: file(source), target: file(target) })),
  };
}

async function readyLanguages(
  folder: string,
  options: PrepareOptions,
  splits: readonly SplitFiles[],
  progress?: PrepareProgress,
): Promise<Languages> {
  // text.json is the last file of the languages to be written.
  if (!existsSync(join(folder, 'text.json'))) {
    const train = splits.find(({ split }) => split === 'train');
    let { languages } = options;
    if (!languages) {
      if (!train) throw new InputError('training text is needed to learn the vocabulary', { key: '--train' });
      const { source, target, learning } = options;
      languages = await learnLanguages({ source, target }, train, learning, (n) => progress?.('words', n));
    }
    saveLanguages(folder, languages);
  }
  return loadLanguages(folder);
}

async function checkText({ split, source, target }: SplitFiles): Promise<void> {
  let lines = 0;
  for await (const block of readPairs(source, target)) lines += block.source.length;
  if (lines === 0) throw new InputError(`the file is empty, the split "${split}" needs sentences`, { file: source });
}

function nothingLeft({ filtered }: SplitSummary, file: string): InputError {
  const reasons = Object.entries(filtered).filter(([, n]) => n > 0);
  const why = reasons.map(([reason, n]) => `${n} × ${filterReasons[reason as keyof typeof filterReasons]}`).join(', ');
  return new InputError(`no training pair is left after filtering (${why})`, { file });
}

/** Keeps the original lines with the ids: scores are computed against them. */
async function copyText(from: string, to: string): Promise<void> {
  if (existsSync(to)) return;
  const part = `${to}.part`;
  writeFileSync(part, '');
  for await (const lines of readLines(from)) writeFileSync(part, `${lines.join('\n')}\n`, { flag: 'a' });
  renameSync(part, to);
}

/** What is given and what must be learned for one language. */
export interface LanguageRequest {
  readonly config: PipelineConfig;
  readonly tokenizerJson?: string;
  readonly sentencePiece?: Uint8Array;
  /** Learned when absent and `LearningOptions.bpe` is given. */
  readonly codes?: BpeCodes;
  /** Built from the training text when absent. */
  readonly vocabulary?: Vocabulary;
}

export interface LearningOptions {
  /** Merge operations to learn. Default none: the tokens are words. */
  readonly bpe?: number;
  /** Learn the merges of both languages together. */
  readonly joint: boolean;
  /** One vocabulary for both languages. */
  readonly sharedVocabulary: boolean;
  readonly minFrequency?: number;
  readonly totalSymbols?: boolean;
  readonly minCount?: number;
  readonly vocabularySize?: number;
  readonly paddingFactor?: number;
  readonly filters: Filters;
}

/** Reads the training text once and completes both languages: merge operations, units, vocabulary. */
async function learnLanguages(
  requests: { readonly source: LanguageRequest; readonly target: LanguageRequest },
  files: { readonly source: string; readonly target: string },
  options: LearningOptions,
  progress?: (lines: number) => void,
): Promise<Languages> {
  const words = await countTrainingWords(requests, files, options.filters, progress);
  const codes = learnCodes(requests, words, options);
  const sides = (['source', 'target'] as const).map((side) => {
    const { tokenizerJson, sentencePiece } = requests[side];
    const config = { ...requests[side].config, bpe: codes[side] && (requests[side].config.bpe ?? {}) };
    const units = countUnits(words[side], config, codes[side]);
    const given = requests[side].vocabulary ?? ownVocabulary({ tokenizerJson, sentencePiece });
    return { config, tokenizerJson, sentencePiece, codes: codes[side], units, given };
  });
  const shared = options.sharedVocabulary ? sumCounts(sides.map((side) => side.units.final)) : undefined;
  const languages = sides.map((side): Language => {
    const vocabulary =
      side.given ??
      buildVocabulary(shared ?? side.units.final, {
        minCount: options.minCount,
        size: options.vocabularySize,
        paddingFactor: options.paddingFactor,
      });
    const units = side.config.bpe?.threshold === undefined ? undefined : side.units.raw;
    const { config, codes: own, tokenizerJson, sentencePiece } = side;
    return { config, codes: own, units, tokenizerJson, sentencePiece, vocabulary };
  });
  return { source: languages[0], target: languages[1] };
}

/** The vocabulary of another tool's tokeniser. */
function ownVocabulary({ tokenizerJson, sentencePiece }: TokenizerFiles): Vocabulary | undefined {
  if (tokenizerJson !== undefined) return huggingFaceTokenizer(tokenizerJson).vocabulary;
  return sentencePiece && sentencePieceTokenizer(sentencePiece).vocabulary;
}

type PerSide<T> = { readonly source: T; readonly target: T };

async function countTrainingWords(
  requests: PerSide<LanguageRequest>,
  files: PerSide<string>,
  filters: Filters,
  progress?: (lines: number) => void,
): Promise<PerSide<WordCounts>> {
  const source = await textPipeline(requests.source.config, requests.source);
  const target = await textPipeline(requests.target.config, requests.target);
  const counts = { source: new Map<string, number>(), target: new Map<string, number>() };
  let pairs = 0;
  for await (const block of readPairs(files.source, files.target)) {
    for (let i = 0; i < block.source.length; i++) {
      const sourceWords = source.words(block.source[i]);
      const targetWords = target.words(block.target[i]);
      if (rejectWords(sourceWords.length, targetWords.length, filters)) continue;
      countWords(counts.source, sourceWords);
      countWords(counts.target, targetWords);
      pairs++;
    }
    progress?.(block.line + block.source.length - 1);
  }
  if (pairs === 0) throw new InputError('no training pair is left after filtering', { file: files.source });
  return counts;
}

function learnCodes(
  requests: PerSide<LanguageRequest>,
  words: PerSide<WordCounts>,
  options: LearningOptions,
): PerSide<BpeCodes | undefined> {
  const { source, target } = requests;
  const given = { source: source.codes, target: target.codes };
  if (options.bpe === undefined) return given;
  const { minFrequency, totalSymbols } = options;
  const learn = (counts: WordCounts): BpeCodes =>
    learnBpe(counts, { symbols: options.bpe as number, minFrequency, totalSymbols });
  if (options.joint) {
    const joint = learn(sumCounts([words.source, words.target]));
    return { source: given.source ?? joint, target: given.target ?? joint };
  }
  return { source: given.source ?? learn(words.source), target: given.target ?? learn(words.target) };
}

/** Units of the training text: as byte pair encoding gives them, and after the threshold has split rare ones. */
function countUnits(
  words: WordCounts,
  config: PipelineConfig,
  codes?: BpeCodes,
): { raw: WordCounts; final: WordCounts } {
  if (!codes) return { raw: words, final: words };
  const { glossaries, threshold } = config.bpe ?? {};
  const count = (segment: ReturnType<typeof bpeSegmenter>): WordCounts => {
    const units: WordCounts = new Map();
    for (const [word, n] of words) countWords(units, segment(word), n);
    return units;
  };
  const raw = count(bpeSegmenter(codes, { glossaries }));
  if (threshold === undefined) return { raw, final: raw };
  const vocabulary = new Set([...raw].filter(([, n]) => n >= threshold).map(([unit]) => unit));
  return { raw, final: count(bpeSegmenter(codes, { glossaries, vocabulary })) };
}
