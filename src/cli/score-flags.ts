import { type Command, InvalidArgumentError, Option } from 'commander';
import { InputError } from '../errors.js';
import {
  type BleuOptions,
  type BleuScore,
  bleuFromStatistics,
  bleuMetric,
  formatBleu,
  formatMultiBleu,
  isWithoutSpaces,
  multiBleuFromStatistics,
  multiBleuMetric,
  type SegmentMetric,
  SMOOTHINGS,
  type Smoothing,
  TOKENIZER_NAMES,
  type TokenizerName,
} from '../metrics/index.js';
import { colorsFor } from './colors.js';

/** The flags that say which BLEU is meant. */
export interface BleuFlags {
  tokenize?: TokenizerName;
  smooth?: Smoothing;
  smoothValue?: number;
  lowercase?: boolean;
  effectiveOrder?: boolean;
  multiBleu?: boolean;
}

export function addBleuFlags(command: Command): Command {
  return command
    .addOption(new Option('--tokenize <name>', 'tokeniser of BLEU (default: 13a)').choices(TOKENIZER_NAMES))
    .addOption(new Option('--smooth <method>', 'smoothing of BLEU (default: exp)').choices(SMOOTHINGS))
    .option('--smooth-value <x>', 'ε of floor (default: 0.1) or k of add-k (default: 1)', positiveNumber)
    .option('--lowercase', 'ignore case')
    .addOption(
      new Option('--multi-bleu', 'BLEU of tokenised text as multi-bleu.perl prints it').conflicts([
        'tokenize',
        'smooth',
        'smoothValue',
        'effectiveOrder',
        'sentence',
      ]),
    );
}

/** The BLEU the flags ask for, and the way its own tool prints it. */
export function bleuOf(flags: BleuFlags): {
  metric: SegmentMetric;
  evaluate: (sums: ArrayLike<number>) => BleuScore;
  format: (score: BleuScore, signature: string) => string;
} {
  if (flags.multiBleu) {
    return { metric: multiBleuMetric(flags), evaluate: multiBleuFromStatistics, format: formatMultiBleu };
  }
  if (flags.smoothValue !== undefined && flags.smooth !== 'floor' && flags.smooth !== 'add-k') {
    throw new InputError('--smooth-value needs --smooth floor or --smooth add-k');
  }
  const options: BleuOptions = flags;
  return {
    metric: bleuMetric(options),
    evaluate: (sums) => bleuFromStatistics(sums, options),
    format: (score, signature) => `BLEU|${signature} = ${formatBleu(score)}`,
  };
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Something that the user should know of figures which are printed all the same. */
export function warn(sentence: string): void {
  process.stderr.write(`${colorsFor(process.stderr).yellow('tcts: warning:')} ${sentence}\n`);
}

/** BLEU of sentences that count as single words is 0, or next to it, whatever they say. */
export function warnOfSpaces({ tokenize, multiBleu }: BleuFlags, references: readonly (readonly string[])[]): void {
  if (tokenize !== undefined || multiBleu || !isWithoutSpaces(references.flat())) return;
  warn(
    'the references are written without spaces, and the tokeniser 13a takes what stands between spaces for a word: ' +
      '--tokenize zh is for Chinese, char for other languages',
  );
}

/** Parses the value of a flag. */
export function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= least && value <= most) return value;
    const limits = most === Number.MAX_SAFE_INTEGER ? `from ${least} on` : `from ${least} to ${most}`;
    throw new InvalidArgumentError(`Expected a whole number ${limits}.`);
  };
}

export function positiveNumber(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && value > 0 && Number.isFinite(value)) return value;
  throw new InvalidArgumentError('Expected a number above 0.');
}
