import { copyFileSync, existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { InputError } from '../../errors.js';
import { readText } from '../../files.js';
import { saveLanguages } from '../text/languages.js';
import { parseVocabulary, special } from '../text/vocabulary.js';
import {
  type CorpusSummary,
  checkDestination,
  openPairs,
  openPartial,
  publish,
  type SplitSummary,
  sequencePrefix,
  writeSummary,
} from './corpus.js';
import { Tally } from './encode-split.js';
import type { LanguageRequest } from './learn-languages.js';

export interface FairseqImport {
  /** Folder that fairseq-preprocess has written (`--dataset-impl mmap`). */
  readonly folder: string;
  /** The pipelines are what the text went through before fairseq, for translating new text; the files do not tell. */
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
  publish(partial, options.out);
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
