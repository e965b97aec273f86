import { type Command, Option } from 'commander';
import { InputError } from '../errors.js';
import {
  approximateRandomisation,
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
  Pcg64,
  pairedBootstrap,
  type SegmentMetric,
  type SegmentStatistics,
  SMOOTHINGS,
  type Smoothing,
  sumSegments,
  type TestSignature,
  TOKENIZER_NAMES,
  type TokenizerName,
  terMetric,
} from '../metrics/index.js';
import { positiveNumber, wholeNumber } from './flags.js';
import { registerScoreForecast } from './score-forecast.js';
import { readAligned } from './score-input.js';
import { registerLatency } from './score-latency.js';
import { print, warn } from './terminal.js';

/** `tcts score`: the metrics on files of the user's own. */
export function registerScore(program: Command): void {
  const score = program
    .command('score')
    .description('Score translations, latencies and forecasts from files.')
    .addHelpText(
      'after',
      `
Examples:
  tcts score bleu out.de test.de
  tcts score compare waitk.de tcts.de test.de
  tcts score latency instances.log --convention simuleval
  tcts score forecast predictions.csv --json`,
    );
  registerBleu(score);
  registerChrfAndTer(score);
  registerCompare(score);
  registerLatency(score);
  registerScoreForecast(score);
}

interface TextFlags extends BleuFlags {
  sentence?: boolean;
  json?: boolean;
}

/** `tcts score bleu`. */
function registerBleu(score: Command): void {
  addBleuFlags(
    score
      .command('bleu')
      .description('BLEU of a translation, as sacreBLEU or as multi-bleu.perl computes it')
      .argument('<hyp>', 'translation, one segment per line (- for standard input; also .gz)')
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
function registerChrfAndTer(score: Command): void {
  score
    .command('chrf')
    .description('chrF of a translation, as sacreBLEU computes it')
    .argument('<hyp>', 'translation, one segment per line (- for standard input; also .gz)')
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
    .argument('<hyp>', 'translation, one segment per line (- for standard input; also .gz)')
    .argument('<ref...>', 'one or more references')
    .option('--normalized', 'split punctuation off the words')
    .option('--no-punctuation', 'remove punctuation')
    .option('--asian', 'with the two above: also for Chinese and Japanese text')
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
interface BleuFlags {
  tokenize?: TokenizerName;
  smooth?: Smoothing;
  smoothValue?: number;
  lowercase?: boolean;
  effectiveOrder?: boolean;
  multiBleu?: boolean;
}

function addBleuFlags(command: Command): Command {
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
function bleuOf(flags: BleuFlags): {
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

/** BLEU of sentences that count as single words is about 0, whatever their quality. */
function warnOfSpaces({ tokenize, multiBleu }: BleuFlags, references: readonly (readonly string[])[]): void {
  if (tokenize !== undefined || multiBleu || !isWithoutSpaces(references.flat())) return;
  warn(
    'the references have no spaces, and the tokeniser 13a splits words at spaces: ' +
      'use --tokenize zh for Chinese, char for other languages',
  );
}

interface CompareFlags extends BleuFlags {
  metric: 'bleu' | 'chrf' | 'ter';
  test: 'bootstrap' | 'randomisation';
  samples?: number;
  seed: number;
  json?: boolean;
}

/** `tcts score compare`. */
function registerCompare(score: Command): void {
  addBleuFlags(
    score
      .command('compare')
      .description('is the difference between two translations of the same text more than chance?')
      .argument('<hyp_a>', 'the baseline, one segment per line')
      .argument('<hyp_b>', 'the other system')
      .argument('<ref...>', 'one or more references')
      .addOption(new Option('--metric <name>', 'what to compare').choices(['bleu', 'chrf', 'ter']).default('bleu'))
      .addOption(
        new Option('--test <name>', 'paired bootstrap or approximate randomisation')
          .choices(['bootstrap', 'randomisation'])
          .default('bootstrap'),
      )
      .option(
        '--samples <n>',
        'resamples or trials (default: 1000 for bootstrap, 10000 for randomisation)',
        wholeNumber('--samples'),
      )
      .option('--seed <n>', 'seed of the draws', wholeNumber('--seed', 0, 2 ** 32 - 1), 12345),
  )
    .option('--json', 'print one JSON object')
    .addHelpText(
      'after',
      `
Examples:
  tcts score compare waitk.de tcts.de test.de
  tcts score compare waitk.de tcts.de test.de --test randomisation --metric chrf --json

With the same seed the draws, and so the p-values, are those of sacreBLEU's --paired-bs and --paired-ar.`,
    )
    .action(async (hypA: string, hypB: string, references: string[], flags: CompareFlags) => {
      const [a, b, ...theirs] = await readAligned([hypA, hypB, ...references]);
      const metric = comparedMetric(flags);
      const samples = flags.samples ?? (flags.test === 'bootstrap' ? 1000 : 10_000);
      const test = { kind: flags.test, samples, seed: flags.seed };
      const run = flags.test === 'bootstrap' ? bootstrap : randomise;
      const result = run(metric, measureSegments(metric, a, theirs), measureSegments(metric, b, theirs), test);
      const comparison: Comparison = {
        metric: metric.name,
        test: flags.test,
        a: { file: hypA, ...result.a },
        b: { file: hypB, ...result.b },
        difference: result.b.score - result.a.score,
        p_value: result.p,
        segments: a.length,
        differing: a.filter((line, i) => line !== b[i]).length,
        signature: metric.signature(theirs.length, test),
      };
      if (flags.json) print(JSON.stringify(comparison));
      else printComparison(comparison, metric.lowerIsBetter);
    });
}

interface Scored {
  readonly score: number;
  readonly mean?: number;
  readonly ci?: number;
}

interface Comparison {
  readonly metric: string;
  readonly test: string;
  readonly a: Scored & { readonly file: string };
  readonly b: Scored & { readonly file: string };
  readonly difference: number;
  readonly p_value: number;
  readonly segments: number;
  /** Segments in which the two outputs are not the same. */
  readonly differing: number;
  readonly signature: string;
}

interface TestResult {
  readonly a: Scored;
  readonly b: Scored;
  readonly p: number;
}

type Test = (metric: SegmentMetric, a: SegmentStatistics, b: SegmentStatistics, test: TestSignature) => TestResult;

const bootstrap: Test = (metric, a, b, { samples, seed }) => {
  const random = new Pcg64(seed);
  const { baseline, systems } = pairedBootstrap(metric, a, [b], samples, (n) => random.int(n));
  const { p, ...system } = systems[0];
  return { a: baseline, b: system, p };
};

const randomise: Test = (metric, a, b, { samples, seed }) => {
  const random = new Pcg64(seed);
  const { baseline, system, p } = approximateRandomisation(metric, a, b, samples, () => random.coin());
  return { a: { score: baseline }, b: { score: system }, p };
};

function printComparison(comparison: Comparison, lowerIsBetter: boolean): void {
  const { metric, a, b, difference, p_value: p, segments, differing, signature } = comparison;
  print(`${metric}|${signature}`);
  for (const [name, { score, mean, ci, file }] of [
    ['A', a],
    ['B', b],
  ] as const) {
    const interval = mean === undefined || ci === undefined ? '' : ` (μ = ${mean.toFixed(2)} ± ${ci.toFixed(2)})`;
    print(`${name} = ${score.toFixed(2)}${interval}  ${file}`);
  }
  if (differing === 0) {
    print('The two outputs are the same in every segment: there is nothing to test.');
    return;
  }
  const direction = difference === 0 ? 'equal' : difference > 0 === lowerIsBetter ? 'A is better' : 'B is better';
  const signed = `${difference < 0 ? '−' : '+'}${Math.abs(difference).toFixed(2)}`;
  print(`B − A = ${signed} (${direction}), p = ${p.toFixed(4)}, ${differing} of ${segments} segments differ`);
}

function comparedMetric(flags: CompareFlags): SegmentMetric {
  if (flags.metric === 'bleu') return bleuOf(flags).metric;
  for (const flag of ['tokenize', 'smooth', 'smoothValue', 'multiBleu'] as const) {
    if (flags[flag] !== undefined) {
      const name = flag.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
      throw new InputError(`--${name} is an option of BLEU, not of ${flags.metric}`);
    }
  }
  if (flags.metric === 'chrf') return chrfMetric(flags);
  if (flags.lowercase) throw new InputError('TER ignores case already: --lowercase has no meaning with --metric ter');
  return terMetric();
}
