import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { readText, writeFileAtomic } from '../../files.js';
import type { Languages } from '../text/languages.js';
import { textPipeline } from '../text/pipeline.js';
import { special } from '../text/vocabulary.js';
import { type SideSummary, type SplitSummary, sequencePrefix } from './corpus.js';
import { holds, idTypeFor, SequenceWriter, type WrittenSequences } from './sequence-file.js';
import { readPairs } from './text-files.js';

export interface SplitText {
  readonly split: string;
  readonly source: string;
  readonly target: string;
  /** Filters of training text; validation and test text is kept line by line. */
  readonly filters?: Filters;
}

/** What is on disk after `lines` lines. */
interface Checkpoint {
  readonly lines: number;
  readonly source: WrittenSequences;
  readonly target: WrittenSequences;
  readonly summary: SplitSummary;
}

const linesPerCheckpoint = 100_000;

/**
 * Writes the ids of one split into `folder`, in constant memory. A checkpoint every 100,000 lines lets an interrupted
 * run continue; since every pair is encoded independently, the files are the same.
 */
export async function encodeSplit(
  folder: string,
  text: SplitText,
  languages: Languages,
  progress?: (lines: number) => void,
  checkpointEvery = linesPerCheckpoint,
): Promise<SplitSummary> {
  const names = [languages.source.config.language, languages.target.config.language] as const;
  const prefix = (language: string): string => join(folder, sequencePrefix(text.split, ...names, language));
  const doneFile = join(folder, `${text.split}.done.json`);
  if (existsSync(doneFile)) return JSON.parse(readText(doneFile)) as SplitSummary;

  const checkpointFile = join(folder, `${text.split}.checkpoint.json`);
  const source = await textPipeline(languages.source.config, languages.source);
  const target = await textPipeline(languages.target.config, languages.target);
  const types = [idTypeFor(languages.source.vocabulary.size), idTypeFor(languages.target.vocabulary.size)];
  const saved = existsSync(checkpointFile) ? (JSON.parse(readText(checkpointFile)) as Checkpoint) : undefined;
  // Without its unfinished files (the last run stopped while finishing them) a checkpoint is useless.
  const resume =
    saved && holds(prefix(names[0]), types[0], saved.source) && holds(prefix(names[1]), types[1], saved.target)
      ? saved
      : undefined;
  const tally = new Tally(resume?.summary);
  const writers = {
    source: new SequenceWriter(prefix(names[0]), types[0], resume?.source),
    target: new SequenceWriter(prefix(names[1]), types[1], resume?.target),
  };
  const done = resume?.lines ?? 0;

  /** Writes the pair, or says why it is left out. */
  const encodePair = (sourceLine: string, targetLine: string): FilterReason | undefined => {
    const { filters } = text;
    const sourceWords = source.words(sourceLine);
    const targetWords = target.words(targetLine);
    const tooFewOrMany = filters && rejectWords(sourceWords.length, targetWords.length, filters);
    if (tooFewOrMany) return tooFewOrMany;
    const sourceIds = languages.source.vocabulary.encode(source.segment(sourceWords));
    const targetIds = languages.target.vocabulary.encode(target.segment(targetWords));
    const tooLong = filters && rejectTokens(sourceIds.length, targetIds.length, filters);
    if (tooLong) return tooLong;
    writers.source.append(sourceIds);
    writers.target.append(targetIds);
    tally.accept(sourceIds, targetIds);
    return undefined;
  };

  try {
    for await (const block of readPairs(text.source, text.target)) {
      for (let i = 0; i < block.source.length; i++) {
        const line = block.line + i;
        if (line <= done) continue;
        const reason = encodePair(block.source[i], block.target[i]);
        if (reason) tally.reject(reason);
        if (line % checkpointEvery === 0) {
          const checkpoint: Checkpoint = {
            lines: line,
            source: writers.source.flush(),
            target: writers.target.flush(),
            summary: tally.summary(),
          };
          writeFileAtomic(checkpointFile, JSON.stringify(checkpoint));
        }
      }
      progress?.(block.line + block.source.length - 1);
    }
  } catch (error) {
    writers.source.close();
    writers.target.close();
    throw error;
  }
  writers.source.finish();
  writers.target.finish();
  const summary = tally.summary();
  writeFileAtomic(doneFile, JSON.stringify(summary));
  rmSync(checkpointFile, { force: true });
  return summary;
}

export interface Filters {
  /** Maximum words on either side, before byte pair encoding. Default 175. */
  readonly maxLength: number;
  /** Maximum tokens on either side, after byte pair encoding, including its end. Default 1,024. */
  readonly maxTokens: number;
  /** Largest ratio between the numbers of words of the two sides. Default no limit. */
  readonly ratio?: number;
}

export const defaultFilters: Filters = { maxLength: 175, maxTokens: 1024 };

/** Why a training pair is left out. */
export type FilterReason = 'empty' | 'length' | 'ratio' | 'tokens';

export const filterReasons: Record<FilterReason, string> = {
  empty: 'a side is empty',
  length: 'too many words',
  ratio: 'lengths too different',
  tokens: 'too many tokens',
};

/** Why a sentence pair with these word counts is filtered out; undefined: it is kept. */
export function rejectWords(source: number, target: number, filters: Filters): FilterReason | undefined {
  if (source === 0 || target === 0) return 'empty';
  if (Math.max(source, target) > filters.maxLength) return 'length';
  const { ratio } = filters;
  if (ratio !== undefined && (source > ratio * target || target > ratio * source)) return 'ratio';
  return undefined;
}

/** Including ends, as `model.maxPositions` counts them. */
function rejectTokens(source: number, target: number, filters: Filters): FilterReason | undefined {
  return Math.max(source, target) > filters.maxTokens ? 'tokens' : undefined;
}

/** Counts the pairs of a split as they are written. */
export class Tally {
  private readonly split: SplitSummary;

  /** Continues from the counts of an interrupted run. */
  constructor(resume: SplitSummary = emptySplit()) {
    this.split = structuredClone(resume);
  }

  reject(reason: FilterReason): void {
    this.split.lines++;
    this.split.filtered[reason]++;
  }

  /** Ids with the end of the sentence. */
  accept(source: Int32Array, target: Int32Array): void {
    this.split.lines++;
    this.split.pairs++;
    if (source.length === 1 || target.length === 1) this.split.emptyKept++;
    add(this.split.source, source);
    add(this.split.target, target);
  }

  summary(): SplitSummary {
    return structuredClone(this.split);
  }
}

function add(side: SideSummary, ids: Int32Array): void {
  side.tokens += ids.length - 1;
  side.longest = Math.max(side.longest, ids.length);
  for (const id of ids) if (id === special.unk) side.unknown++;
}

function emptySplit(): SplitSummary {
  const side = (): SideSummary => ({ tokens: 0, unknown: 0, longest: 0 });
  const filtered = { empty: 0, length: 0, ratio: 0, tokens: 0 };
  return { lines: 0, pairs: 0, filtered, emptyKept: 0, source: side(), target: side() };
}
