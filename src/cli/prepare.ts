import { type Command, Option } from 'commander';
import { InputError } from '../errors.js';
import { readBytes, readText } from '../files.js';
import { bleuTokenizer, latencyUnit } from '../metrics/index.js';
import { Progress } from '../run/progress.js';
import type { CorpusSummary, SideSummary } from '../translate/corpus/corpus.js';
import { defaultFilters, filterReasons } from '../translate/corpus/encode-split.js';
import { type LanguageRequest, type PrepareOptions, prepareTranslation } from '../translate/corpus/prepare.js';
import { importFairseq } from '../translate/exchange/fairseq.js';
import { parseBpeCodes } from '../translate/text/bpe.js';
import { loadLanguages } from '../translate/text/languages.js';
import { sentencePieceTokenizer } from '../translate/text/sentencepiece.js';
import { huggingFaceTokenizer, type TokenizerConfig } from '../translate/text/tokenizers.js';
import { parseVocabulary } from '../translate/text/vocabulary.js';
import { wholeNumber } from './flags.js';
import { warn } from './terminal.js';

/** `tcts prepare translate`: parallel text to a corpus of ids. */
export function registerPrepare(program: Command): void {
  const prepare = program.commands.find((command) => command.name() === 'prepare') ?? program.command('prepare');
  prepare.description('Turn raw data into what training reads.');
  prepare
    .command('translate')
    .description('Turn parallel text into a corpus of token ids.')
    .requiredOption('--source <language>', 'source language, the ending of its files')
    .requiredOption('--target <language>', 'target language')
    .requiredOption('--out <folder>', 'the corpus; the same command continues an interrupted preparation')
    .option('--train <prefix>', 'training text: PREFIX.LANGUAGE, plain or with .gz')
    .option('--valid <prefix>', 'validation text')
    .option('--test <prefix...>', 'test text, several are test, test1, …')
    .addOption(
      tokenizerOption(
        '--tokenizer <name>',
        'how lines are split into words (default: char for languages without spaces, otherwise moses)',
      ),
    )
    .addOption(tokenizerOption('--source-tokenizer <name>', 'the same for the source only'))
    .addOption(tokenizerOption('--target-tokenizer <name>', 'the same for the target only'))
    .option('--tokenizer-json <file...>', "Hugging Face's tokenizer.json, for both languages or one each")
    .option('--spm <file...>', "SentencePiece's .model, unigram or bpe, for both languages or one each")
    .option('--lowercase', 'lowercase everything')
    .option('--normalize', 'normalise punctuation as Moses does')
    .option('--aggressive', 'split hyphens inside words (moses)')
    .option('--no-escape', 'do not escape & < > | [ ] and quotes (moses)')
    .option('--protected <file>', 'patterns that stay one token, one per line (moses)')
    .option('--bpe <merges>', 'learn byte pair encoding with this many merges', wholeNumber('--bpe', 0))
    .option('--joint', 'learn it from both languages together, with one vocabulary')
    .option('--codes <file...>', 'use these merges instead, for both languages or one file each')
    .option(
      '--bpe-threshold <count>',
      'split units that are rarer than this in their language',
      wholeNumber('--bpe-threshold', 0),
    )
    .option('--glossaries <pattern...>', 'patterns that byte pair encoding leaves whole')
    .option('--min-frequency <count>', 'learn no merge that is rarer (default: 2)', wholeNumber('--min-frequency', 0))
    .option('--total-symbols', 'let --bpe also count the characters')
    .option('--vocab <file...>', 'use these dict.txt instead of building the vocabulary')
    .option('--shared-vocab', 'one vocabulary for both languages (default: with --joint)')
    .option('--no-shared-vocab', 'separate vocabularies, also with --joint')
    .option('--min-count <count>', 'rarer tokens become <unk> (default: 1)', wholeNumber('--min-count', 0))
    .option(
      '--vocab-size <entries>',
      'maximum vocabulary size, special tokens included',
      wholeNumber('--vocab-size', 0),
    )
    .option('--padding-factor <n>', 'fill vocabularies up to a multiple of n', wholeNumber('--padding-factor', 0))
    .option(
      '--max-length <words>',
      'leave out longer training pairs',
      wholeNumber('--max-length', 0),
      defaultFilters.maxLength,
    )
    .option(
      '--max-tokens <tokens>',
      'the same after byte pair encoding, counting sentence ends, like problem.model.maxPositions',
      wholeNumber('--max-tokens', 0),
      defaultFilters.maxTokens,
    )
    .option('--ratio <r>', 'leave out training pairs whose lengths differ by a larger factor', decimalNumber('--ratio'))
    .option('--like <folder>', 'use the tokeniser, merges and vocabularies of this corpus or run')
    .option('--fairseq <folder>', 'import the binarised data of fairseq-preprocess instead of text')
    .option('--overwrite', 'replace an existing corpus')
    .option('--json', 'print the summary as JSON')
    .addHelpText(
      'after',
      `
Example: English to German with joint subword units
  tcts prepare translate --source en --target de --train data/train --valid data/val --test data/test_2016_flickr \\
    --lowercase --normalize --bpe 6000 --joint --out corpora/multi30k`,
    )
    .action(prepareTranslate);
}

interface Flags {
  readonly source: string;
  readonly target: string;
  readonly out: string;
  readonly train?: string;
  readonly valid?: string;
  readonly test?: string[];
  readonly tokenizer?: ChosenTokenizer;
  readonly sourceTokenizer?: ChosenTokenizer;
  readonly targetTokenizer?: ChosenTokenizer;
  readonly tokenizerJson?: string[];
  readonly spm?: string[];
  readonly lowercase?: boolean;
  readonly normalize?: boolean;
  readonly aggressive?: boolean;
  readonly escape: boolean;
  readonly protected?: string;
  readonly bpe?: number;
  readonly joint?: boolean;
  readonly codes?: string[];
  readonly bpeThreshold?: number;
  readonly glossaries?: string[];
  readonly minFrequency?: number;
  readonly totalSymbols?: boolean;
  readonly vocab?: string[];
  readonly sharedVocab?: boolean;
  readonly minCount?: number;
  readonly vocabSize?: number;
  readonly paddingFactor?: number;
  readonly maxLength: number;
  readonly maxTokens: number;
  readonly ratio?: number;
  readonly like?: string;
  readonly fairseq?: string;
  readonly overwrite?: boolean;
  readonly json?: boolean;
}

type ChosenTokenizer = 'moses' | 'none' | 'jieba' | 'char';
type Side = 'source' | 'target';

async function prepareTranslate(flags: Flags): Promise<void> {
  const start = performance.now();
  const { summary, reused } = flags.fairseq === undefined ? await fromText(flags) : fromFairseq(flags, flags.fairseq);
  const seconds = (performance.now() - start) / 1000;
  if (flags.json) {
    process.stdout.write(`${JSON.stringify({ out: flags.out, reused, seconds, ...summary }, null, 2)}\n`);
  } else {
    process.stdout.write(describe(summary));
    process.stdout.write(reused ? `${flags.out} already exists\n` : `${flags.out} in ${seconds.toFixed(1)} s\n`);
  }
}

async function fromText(flags: Flags) {
  const progress = new Stages();
  try {
    return await prepareTranslation(preparation(flags), (stage, lines) => progress.update(stage, lines));
  } finally {
    progress.finish();
  }
}

function fromFairseq(flags: Flags, folder: string) {
  if (flags.train ?? flags.valid ?? flags.test) {
    throw new InputError('binarised data bring their own splits: leave out --train, --valid and --test', {
      key: '--fairseq',
    });
  }
  if (flags.bpe !== undefined || flags.bpeThreshold !== undefined) {
    throw new InputError('nothing is learned from binarised data: leave out --bpe and --bpe-threshold', {
      key: '--fairseq',
    });
  }
  const source = request(flags, 'source');
  const target = request(flags, 'target');
  return {
    summary: importFairseq({ folder, source, target, out: flags.out, overwrite: flags.overwrite }),
    reused: false,
  };
}

function preparation(flags: Flags): PrepareOptions {
  if (flags.bpe !== undefined && flags.codes) {
    throw new InputError('either learn merges with --bpe or give them with --codes', { key: '--codes' });
  }
  if (flags.joint && flags.bpe === undefined) throw new InputError('needs --bpe', { key: '--joint' });
  if (flags.bpe !== undefined && flags.tokenizerJson) {
    throw new InputError('a tokenizer.json has its own subword units: leave out --bpe', { key: '--tokenizer-json' });
  }
  if (flags.spm && (flags.bpe !== undefined || flags.codes || flags.tokenizerJson)) {
    throw new InputError(
      'a SentencePiece model has its own subword units: leave out --bpe, --codes and --tokenizer-json',
      {
        key: '--spm',
      },
    );
  }
  const languages = flags.like === undefined ? undefined : loadLanguages(flags.like);
  for (const side of ['source', 'target'] as const) {
    const found = languages?.[side].config.language;
    if (found !== undefined && found !== flags[side]) {
      throw new InputError(`its ${side} language is ${found}, not ${flags[side]}`, { key: '--like', file: flags.like });
    }
  }
  return {
    source: request(flags, 'source'),
    target: request(flags, 'target'),
    train: flags.train,
    valid: flags.valid,
    test: flags.test,
    out: flags.out,
    overwrite: flags.overwrite,
    languages,
    learning: {
      bpe: flags.bpe,
      joint: flags.joint ?? false,
      sharedVocabulary: flags.sharedVocab ?? flags.joint ?? false,
      minFrequency: flags.minFrequency,
      totalSymbols: flags.totalSymbols,
      minCount: flags.minCount,
      vocabularySize: flags.vocabSize,
      paddingFactor: flags.paddingFactor,
      filters: { maxLength: flags.maxLength, maxTokens: flags.maxTokens, ratio: flags.ratio },
    },
  };
}

function request(flags: Flags, side: Side): LanguageRequest {
  const codesFile = oneOf(flags.codes, side, '--codes');
  const vocabularyFile = oneOf(flags.vocab, side, '--vocab');
  const tokenizerFile = oneOf(flags.tokenizerJson, side, '--tokenizer-json');
  const tokenizerJson = tokenizerFile === undefined ? undefined : readText(tokenizerFile);
  // Report a damaged file now, not in a later step that knows only its content.
  if (tokenizerJson !== undefined) huggingFaceTokenizer(tokenizerJson, tokenizerFile);
  const spmFile = oneOf(flags.spm, side, '--spm');
  const sentencePiece = spmFile === undefined ? undefined : readBytes(spmFile);
  if (sentencePiece !== undefined) sentencePieceTokenizer(sentencePiece, spmFile);
  const usesBpe = flags.bpe !== undefined || codesFile !== undefined;
  const piecesFile = spmFile ?? tokenizerFile;
  if (piecesFile !== undefined) noteArrival(flags, side, piecesFile);
  const own = tokenizerJson === undefined ? undefined : 'huggingface';
  const kind = sentencePiece === undefined ? own : 'sentencepiece';
  return {
    config: {
      language: flags[side],
      lowercase: flags.lowercase ?? false,
      normalize: flags.normalize ?? false,
      tokenizer: kind === undefined ? tokenizerConfig(flags, side, usesBpe) : { kind },
      bpe: usesBpe ? { glossaries: flags.glossaries, threshold: flags.bpeThreshold } : undefined,
    },
    tokenizerJson,
    sentencePiece,
    codes: codesFile === undefined ? undefined : parseBpeCodes(readText(codesFile), codesFile),
    vocabulary: vocabularyFile === undefined ? undefined : parseVocabulary(readText(vocabularyFile), vocabularyFile),
  };
}

function tokenizerConfig(flags: Flags, side: Side, usesBpe: boolean): TokenizerConfig {
  const chosen = (side === 'source' ? flags.sourceTokenizer : flags.targetTokenizer) ?? flags.tokenizer;
  const kind = chosen ?? tokenizerFor(flags, side, usesBpe);
  if (kind === 'jieba') noteOtherThanChinese(flags, side);
  // A vocabulary from elsewhere does not know the mark of a space.
  if (kind === 'jieba') return { kind, spaces: flags.vocab === undefined && flags.fairseq === undefined };
  if (kind !== 'moses') return { kind };
  const patterns = flags.protected === undefined ? undefined : readText(flags.protected).split(/\r?\n/);
  return {
    kind,
    aggressive: flags.aggressive,
    escape: flags.escape ? undefined : false,
    protectedPatterns: patterns?.filter((pattern) => pattern !== ''),
  };
}

/** Languages without spaces are split into characters, unless byte pair encoding finds their units; a note reports either. */
function tokenizerFor(flags: Flags, side: Side, usesBpe: boolean): ChosenTokenizer {
  const language = flags[side];
  if (latencyUnit(language) === 'word') return 'moses';
  if (usesBpe) {
    noteArrival(flags, side, 'moses and --bpe');
    return 'moses';
  }
  if (flags.like === undefined) {
    warn(
      `${language} is written without spaces: its text is cut into characters (--${side}-tokenizer chooses otherwise)`,
    );
  }
  return 'char';
}

/** Units that may lie across any place of a line arrive with the next space. Another corpus has its own tokeniser. */
function noteArrival(flags: Flags, side: Side, units: string): void {
  const language = flags[side];
  if (side === 'target' || flags.like !== undefined || latencyUnit(language) === 'word') return;
  warn(
    `${language} is written without spaces: a source that is cut by ${units} arrives as one word, all at once; ` +
      '--source-tokenizer char or jieba reads it character by character',
  );
}

/** Jieba cuts at every space and hyphen of other languages, and keeps the spaces as tokens. */
function noteOtherThanChinese(flags: Flags, side: Side): void {
  const language = flags[side];
  if (flags.like !== undefined || isChinese(language)) return;
  const other = side === 'source' ? 'target' : 'source';
  const instead = isChinese(flags[other])
    ? `--${other}-tokenizer jieba chooses it for ${flags[other]} alone`
    : `--${side}-tokenizer chooses another`;
  warn(`${language} is not Chinese, but jieba is to cut its text: ${instead}`);
}

const isChinese = (language: string): boolean => bleuTokenizer(language) === 'zh';

/** One file for both languages, or the source's and the target's. */
function oneOf(files: readonly string[] | undefined, side: Side, key: string): string | undefined {
  if (files && files.length > 2) throw new InputError(`expected one file or two, found ${files.length}`, { key });
  return side === 'source' ? files?.[0] : (files?.[1] ?? files?.[0]);
}

function describe(summary: CorpusSummary): string {
  const { source, target, vocabulary } = summary;
  const entries = vocabulary.shared
    ? `${thousands(vocabulary.source)} entries for both languages`
    : `${thousands(vocabulary.source)} entries (${source}), ${thousands(vocabulary.target)} (${target})`;
  const lines = [`vocabulary  ${entries}`];
  for (const [split, counts] of Object.entries(summary.splits)) {
    lines.push(`${split.padEnd(12)}${thousands(counts.pairs)} pairs of ${thousands(counts.lines)} lines`);
    for (const side of ['source', 'target'] as const)
      lines.push(`  ${describeSide(summary[side], counts[side], counts.pairs)}`);
    for (const [reason, sentence] of Object.entries(filterReasons)) {
      const n = counts.filtered[reason as keyof typeof filterReasons];
      if (n > 0) lines.push(`  left out: ${thousands(n)}, ${sentence}`);
    }
    if (counts.emptyKept > 0) lines.push(`  kept although a side is empty: ${thousands(counts.emptyKept)}`);
  }
  return `${lines.join('\n')}\n`;
}

function describeSide(language: string, { tokens, unknown, longest }: SideSummary, pairs: number): string {
  const rate = tokens === 0 ? 0 : (100 * unknown) / tokens;
  const mean = (tokens / Math.max(1, pairs)).toFixed(1);
  return `${language.padEnd(10)}${thousands(tokens)} tokens, ${mean} a sentence, longest ${longest - 1}, unknown ${rate.toFixed(3)} %`;
}

function thousands(n: number): string {
  return n.toLocaleString('en-US');
}

/** Progress over several files, one after the other. */
class Stages {
  private stage = '';
  private progress: Progress | undefined;

  update(stage: string, lines: number): void {
    if (stage !== this.stage) {
      this.progress?.clear();
      this.stage = stage;
      this.progress = new Progress({ unit: 'line' });
    }
    this.progress?.update(lines, { reading: this.stage });
  }

  finish(): void {
    this.progress?.clear();
  }
}

function tokenizerOption(flags: string, description: string): Option {
  return new Option(flags, description).choices(['moses', 'none', 'jieba', 'char']);
}

function decimalNumber(key: string): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === '' || Number.isNaN(value)) throw new InputError(`expected a number, found "${text}"`, { key });
    return value;
  };
}
