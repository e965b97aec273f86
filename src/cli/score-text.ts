import { type Command, Option } from 'commander';
import { InputError } from '../errors.js';
import {
  type BleuOptions,
  type BleuScore,
  bleuFromStatistics,
  bleuMetric,
  chrfMetric,
  formatBleu,
  formatMultiBleu,
  isWithoutSpaces,
  measureSegments,
  multiBleuFromStatistics,
  multiBleuMetric,
  type SegmentMetric,
  SMOOTHINGS,
  type Smoothing,
  sumSegments,
  TOKENIZER_NAMES,
  type TokenizerName,
  terMetric,
} from '../metrics/index.js';
import { positiveNumber, wholeNumber } from './flags.js';
import { readAligned } from './score-input.js';
import { print, warn } from './terminal.js';

interface TextFlags extends BleuFlags {
  sentence?: boolean;
  json?: boolean;
}

/** `tcts score bleu`. */
export function registerBleu(score: Command): void {
  addBleuFlags(
    score
      .command('bleu')
      .description('BLEU of a translation, as sacreBLEU or as multi-bleu.perl computes it')
      .argument('<hyp>', 'translation, a segment a line (- for standard input; .gz is read too)')
      .argument('<ref...>', 'one or more references'),
  )
    .option('--effective-order', 'average over the n-gram orders that occur')
    .option('--sentence', 'also the BLEU of each segment (with effective order)')
    .option('--json', 'print one JSON object')
    .addHelpText(
      'after',
      `
Examples:
  tcts score bleu out.de test.de
  tcts score bleu out.zh test.zh --tokenize zh --json
  tcts score bleu out.tok.de test.tok.de --multi-bleu --lowercase

The signature is sacreBLEU's; its version ends in +tcts: the figures are those of that release, computed by tcts.`,
    )
    .action(async (hypothesis: string, references: string[], flags: TextFlags) => {
      const [ours, ...theirs] = await readAligned([hypothesis, ...references]);
      warnOfSpaces(flags, theirs);
      const { metric, evaluate, format } = bleuOf(flags);
      const statistics = measureSegments(metric, ours, theirs);
      const result = evaluate(sumSegments(statistics));
      const signature = metric.signature(theirs.length);
      const sentences = flags.sentence ? sentenceScores(ours, theirs, flags) : undefined;
      if (flags.json) {
        const { score, counts, totals, precisions, bp, systemLength: sys_len, referenceLength: ref_len } = result;
        print(
          JSON.stringify({
            name: 'BLEU',
            score,
            counts,
            totals,
            precisions,
            bp,
            sys_len,
            ref_len,
            signature,
            sentences,
          }),
        );
      } else {
        for (const value of sentences ?? []) print(value.toFixed(2));
        print(format(result, signature));
      }
    });
}

/** `tcts score chrf` and `tcts score ter`. */
export function registerChrfAndTer(score: Command): void {
  score
    .command('chrf')
    .description('chrF of a translation, as sacreBLEU computes it')
    .argument('<hyp>', 'translation, a segment a line (- for standard input; .gz is read too)')
    .argument('<ref...>', 'one or more references')
    .option('--word-order <n>', 'longest n-gram of words; 2 gives chrF++', wholeNumber('--word-order', 0), 0)
    .option('--beta <n>', 'weight of recall', wholeNumber('--beta'), 2)
    .option('--lowercase', 'ignore case')
    .option('--json', 'print one JSON object')
    .addHelpText('after', '\nExample:\n  tcts score chrf out.de test.de --word-order 2')
    .action(async (hypothesis: string, references: string[], flags: ChrfFlags) =>
      printScore(chrfMetric(flags), await readAligned([hypothesis, ...references]), flags.json),
    );
  score
    .command('ter')
    .description('translation edit rate, as sacreBLEU computes it')
    .argument('<hyp>', 'translation, a segment a line (- for standard input; .gz is read too)')
    .argument('<ref...>', 'one or more references')
    .option('--normalized', 'split punctuation off the words')
    .option('--no-punctuation', 'remove punctuation')
    .option('--asian', 'with the two above: Chinese and Japanese text too')
    .option('--case-sensitive', 'keep case')
    .option('--json', 'print one JSON object')
    .addHelpText('after', '\nExample:\n  tcts score ter out.de test.de --normalized')
    .action(async (hypothesis: string, references: string[], flags: TerFlags) => {
      const metric = terMetric({ ...flags, noPunctuation: !flags.punctuation });
      printScore(metric, await readAligned([hypothesis, ...references]), flags.json);
    });
}

interface ChrfFlags {
  wordOrder: number;
  beta: number;
  lowercase?: boolean;
  json?: boolean;
}

interface TerFlags {
  normalized?: boolean;
  punctuation: boolean;
  asian?: boolean;
  caseSensitive?: boolean;
  json?: boolean;
}

function sentenceScores(ours: readonly string[], theirs: readonly (readonly string[])[], flags: TextFlags): number[] {
  const metric = bleuMetric({ ...flags, effectiveOrder: true });
  return ours.map((line, i) =>
    metric.score(
      metric.measure(
        line,
        theirs.map((reference) => reference[i]),
      ),
    ),
  );
}

function printScore(metric: SegmentMetric, [ours, ...theirs]: string[][], json = false): void {
  const score = metric.score(sumSegments(measureSegments(metric, ours, theirs)));
  const signature = metric.signature(theirs.length);
  if (json) print(JSON.stringify({ name: metric.name, score, signature }));
  else print(`${metric.name}|${signature} = ${score.toFixed(2)}`);
}

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
    .option(
      '--smooth-value <x>',
      'ε of floor (default: 0.1) or k of add-k (default: 1)',
      positiveNumber('--smooth-value'),
    )
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

/** BLEU of sentences that count as single words is 0, or next to it, whatever they say. */
function warnOfSpaces({ tokenize, multiBleu }: BleuFlags, references: readonly (readonly string[])[]): void {
  if (tokenize !== undefined || multiBleu || !isWithoutSpaces(references.flat())) return;
  warn(
    'the references are written without spaces, and the tokeniser 13a takes what stands between spaces for a word: ' +
      '--tokenize zh is for Chinese, char for other languages',
  );
}
