import { type Command, Option } from 'commander';
import { InputError } from '../errors.js';
import {
  approximateRandomisation,
  chrfMetric,
  measureSegments,
  Pcg64,
  pairedBootstrap,
  type SegmentMetric,
  type SegmentStatistics,
  type TestSignature,
  terMetric,
} from '../metrics/index.js';
import { wholeNumber } from './flags.js';
import { readAligned } from './score-input.js';
import { addBleuFlags, type BleuFlags, bleuOf } from './score-text.js';
import { print } from './terminal.js';

interface CompareFlags extends BleuFlags {
  metric: 'bleu' | 'chrf' | 'ter';
  test: 'bootstrap' | 'randomisation';
  samples?: number;
  seed: number;
  json?: boolean;
}

/** `tcts score compare`. */
export function registerCompare(score: Command): void {
  addBleuFlags(
    score
      .command('compare')
      .description('is the difference between two translations of the same text more than chance?')
      .argument('<hyp_a>', 'the baseline, a segment a line')
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
