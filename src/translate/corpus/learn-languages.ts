import { InputError } from '../../errors.js';
import { type BpeCodes, bpeSegmenter } from '../text/bpe.js';
import { learnBpe } from '../text/bpe-learning.js';
import type { Language, Languages } from '../text/languages.js';
import { type PipelineConfig, textPipeline } from '../text/pipeline.js';
import { sentencePieceTokenizer } from '../text/sentencepiece.js';
import { huggingFaceTokenizer, type TokenizerFiles } from '../text/tokenizers.js';
import { buildVocabulary, countWords, sumCounts, type Vocabulary, type WordCounts } from '../text/vocabulary.js';
import { type Filters, rejectWords } from './encode-split.js';
import { readPairs } from './text-files.js';

/** What is given and what is to be learned for one language. */
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
export async function learnLanguages(
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

/** The vocabulary that the tokeniser of another tool brings. */
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
