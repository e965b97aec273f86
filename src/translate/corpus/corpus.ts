import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { InputError } from '../../errors.js';
import { fileError, makeFolder, readJsonFile, readText, writeFileAtomic } from '../../files.js';
import { type Languages, loadLanguages } from '../text/languages.js';
import { SequenceFile } from './sequence-file.js';

const count = z.number().int().min(0);

const sideSchema = z.strictObject({
  /** Tokens, the sentence ends not counted. */
  tokens: count,
  /** Tokens that are not in the vocabulary. */
  unknown: count,
  /** Tokens of the longest sentence, including its end. */
  longest: count,
});

const splitSchema = z.strictObject({
  /** Lines of the text files. */
  lines: count,
  /** Pairs in the corpus. */
  pairs: count,
  /** Pairs left out, by reason (training only). */
  filtered: z.strictObject({ empty: count, length: count, ratio: count, tokens: count }),
  /** Pairs with an empty side that were kept (validation and test keep every line). */
  emptyKept: count,
  source: sideSchema,
  target: sideSchema,
});

const corpusSchema = z.strictObject({
  format: z.literal('tcts translation corpus'),
  version: z.literal(1),
  source: z.string().min(1),
  target: z.string().min(1),
  /** Entries of the vocabularies, special tokens included. */
  vocabulary: z.strictObject({ source: count, target: count, shared: z.boolean() }),
  splits: z.record(z.string(), splitSchema),
});

/** The content of `corpus.json` of a prepared corpus. */
export type CorpusSummary = z.infer<typeof corpusSchema>;
export type SplitSummary = z.infer<typeof splitSchema>;
export type SideSummary = z.infer<typeof sideSchema>;

/** Sequences of token ids. */
export type Sequences = Pick<SequenceFile, 'lengths' | 'read'>;

/** Sentence pairs of one split. */
export interface PairedSequences {
  readonly count: number;
  readonly source: Sequences;
  readonly target: Sequences;
  close(): void;
}

/** Some pairs of a split as their own split, renumbered. Closing it does not close the files of the whole split. */
export function somePairs({ source, target }: PairedSequences, places: Int32Array): PairedSequences {
  const part = (all: Sequences): Sequences => ({
    lengths: places.map((place) => all.lengths[place]),
    read: (i) => all.read(places[i]),
  });
  return { count: places.length, source: part(source), target: part(target), close: () => {} };
}

export interface Corpus {
  readonly folder: string;
  readonly summary: CorpusSummary;
  readonly languages: Languages;
  /** Mean lengths of the training sentences, including their ends. */
  readonly meanLengths: { readonly source: number; readonly target: number };
  open(split: string): PairedSequences;
  /** The untouched text lines of a validation or test split, in the order of its pairs. */
  text(split: string, side: 'source' | 'target'): string[];
}

/** Rejects a corpus that a run of other languages is to be evaluated on. */
export function requireLanguages({ folder, summary }: Corpus, source: string, target: string): void {
  if (summary.source === source && summary.target === target) return;
  const sentence = `it translates ${summary.source} into ${summary.target}, the run ${source} into ${target}`;
  throw new InputError(`${sentence}: prepare the data with --like RUN`, { file: folder, key: '--data' });
}

const corpusFile = 'corpus.json';

/** Opens a folder written by `prepare`. */
export function openCorpus(folder: string): Corpus {
  const summary = readSummary(folder);
  const languages = loadLanguages(folder);
  for (const side of ['source', 'target'] as const) {
    const { size } = languages[side].vocabulary;
    if (size !== summary.vocabulary[side]) {
      const file = join(folder, `dict.${summary[side]}.txt`);
      const sentence = `the vocabulary has ${size} entries, the corpus was made with ${summary.vocabulary[side]}`;
      throw new InputError(sentence, { file });
    }
  }
  const check = (split: string): void => {
    if (summary.splits[split]) return;
    const known = Object.keys(summary.splits).join(', ');
    throw new InputError(`the corpus has no split "${split}", only ${known}`, { file: folder });
  };
  return {
    folder,
    summary,
    languages,
    meanLengths: { source: meanLength(summary, 'source'), target: meanLength(summary, 'target') },
    open(split) {
      check(split);
      return openPairs(folder, split, summary.source, summary.target);
    },
    text(split, side) {
      check(split);
      const file = join(folder, `${sequencePrefix(split, summary.source, summary.target, summary[side])}.txt`);
      if (!existsSync(file)) {
        throw new InputError('a corpus has text only for validation and test splits that were prepared from text', {
          file,
        });
      }
      return readText(file).split('\n').slice(0, -1);
    },
  };
}

/** Base name of a split's files, as in fairseq: `train.en-de.en`. */
export function sequencePrefix(split: string, source: string, target: string, language: string): string {
  return `${split}.${source}-${target}.${language}`;
}

export function isCorpus(folder: string): boolean {
  return existsSync(join(folder, corpusFile));
}

export function writeSummary(folder: string, summary: CorpusSummary): void {
  writeFileAtomic(join(folder, corpusFile), `${JSON.stringify(summary, null, 2)}\n`);
}

export function readSummary(folder: string): CorpusSummary {
  const file = join(folder, corpusFile);
  if (!existsSync(file)) {
    throw new InputError('not a prepared corpus: it has no corpus.json (see tcts prepare translate)', { file: folder });
  }
  return readJsonFile(file, corpusSchema);
}

export function openPairs(folder: string, split: string, source: string, target: string): PairedSequences {
  const path = (language: string): string => join(folder, sequencePrefix(split, source, target, language));
  const sourceFile = SequenceFile.open(path(source));
  let targetFile: SequenceFile;
  try {
    targetFile = SequenceFile.open(path(target));
  } catch (error) {
    sourceFile.close();
    throw error;
  }
  const close = (): void => {
    sourceFile.close();
    targetFile.close();
  };
  if (sourceFile.count !== targetFile.count) {
    close();
    const counts = `${sourceFile.count} sentences in ${source}, ${targetFile.count} in ${target}`;
    throw new InputError(`the two sides of "${split}" differ: ${counts}`, { file: folder });
  }
  return { count: sourceFile.count, source: sourceFile, target: targetFile, close };
}

function meanLength(summary: CorpusSummary, side: 'source' | 'target'): number {
  const train = summary.splits.train;
  return train && train.pairs > 0 ? train[side].tokens / train.pairs + 1 : Number.NaN;
}

/** Stored in the corpus: what it was made from, and how. Decides whether an interrupted preparation may continue. */
const recordFile = 'prepared-from.json';

/** A corpus made from the same files in the same way already exists. */
export function isPrepared(out: string, record: string): boolean {
  return isCorpus(out) && recordOf(out) === record;
}

/** Refuses to replace anything but a corpus, and a corpus unless requested. */
export function checkDestination(out: string, overwrite: boolean): void {
  if (!existsSync(out) || (overwrite && isCorpus(out))) return;
  let entries: string[];
  try {
    entries = readdirSync(out);
  } catch (error) {
    throw fileError(error, 'write', out);
  }
  if (entries.length === 0) return;
  const sentence = isCorpus(out)
    ? 'another corpus is there already (--overwrite replaces it)'
    : 'the folder holds something else, choose a new one';
  throw new InputError(sentence, { file: out });
}

/** `OUT.partial`, the working folder of a preparation: the unfinished one of this preparation, or a new one. */
export function openPartial(out: string, record: string): string {
  const folder = `${resolve(out)}.partial`;
  try {
    if (existsSync(folder) && recordOf(folder) !== record) {
      if (readdirSync(folder).length > 0 && recordOf(folder) === undefined) {
        throw new InputError('the folder blocks the preparation; remove or rename it', { file: folder });
      }
      rmSync(folder, { recursive: true });
    }
    makeFolder(folder);
  } catch (error) {
    throw fileError(error, 'write', folder);
  }
  if (recordOf(folder) === undefined) writeFileAtomic(join(folder, recordFile), record);
  return folder;
}

/** Renames the complete folder, without the files that only an interrupted preparation needs. */
export function publishCorpus(folder: string, out: string): void {
  for (const name of readdirSync(folder)) {
    if (/\.(done|checkpoint)\.json$|\.part$|\.tmp$/.test(name)) rmSync(join(folder, name));
  }
  if (existsSync(out)) rmSync(out, { recursive: true });
  renameSync(folder, out);
}

function recordOf(folder: string): string | undefined {
  const path = join(folder, recordFile);
  return existsSync(path) ? readText(path) : undefined;
}
