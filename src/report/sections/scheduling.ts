import { absent, type Block, type Section, slug } from '../document.js';
import { forestFigure } from '../figures/forest.js';
import { bySeed, estimateOf } from '../measures.js';
import type { SeriesReader } from '../reader.js';
import {
  armCalled,
  BEST_STATIC,
  type ScheduledProblem,
  scheduledProblems,
  testLoss,
  validationLoss,
} from '../scheduling.js';
import type { DataSet, Setting } from '../settings.js';
import { type Tested, testComparisons } from '../significance.js';
import { estimate, fixed, formatP, type Row, signed, type Table, textColumn } from '../table.js';

/** What scheduling gains: for each problem every strategy against the better of `fixed` and `mtl`, paired by seeds. */
export function schedulingSection(sets: readonly DataSet[], reader: SeriesReader): Section[] {
  const problems = scheduledProblems(sets);
  if (problems.length === 0) return [];
  return [{ title: 'Scheduling', blocks: problems.flatMap((problem) => problemBlocks(problem, reader)) }];
}

function problemBlocks({ title, arms, baseline }: ScheduledProblem, reader: SeriesReader): Block[] {
  if (baseline === undefined) {
    return [absent(`${title}: fixed and mtl have no seed in common that both have a test loss of.`)];
  }
  const pairs = arms.filter((arm) => arm !== baseline).map((candidate) => ({ candidate, baseline }));
  // An arm without a common seed has nothing to be compared by.
  const tested = testComparisons(pairs, testLoss, () => Number.NaN).filter(({ seeds }) => seeds > 0);
  const id = `scheduling-${slug(title)}`;
  const table: Table = {
    id,
    title: `What scheduling gains, ${title}`,
    caption: captionOf(baseline, arms, tested),
    columns: [
      ...['Strategy', 'Seeds'].map(textColumn),
      { title: 'Test loss', measures: ['test loss'] },
      ...[`Against ${baseline.label}`, 'p (Holm)', "Of the oracle's gain"].map(textColumn),
      { title: 'Validation loss', measures: ['validation loss'] },
      textColumn('Time per update'),
    ],
    rows: arms.map((arm) => rowOf(arm, baseline, arms, tested, reader)),
  };
  return [{ kind: 'table', table }, forestOf(title, id, baseline, tested)];
}

function rowOf(
  arm: Setting,
  baseline: Setting,
  arms: readonly Setting[],
  tested: readonly Tested[],
  reader: SeriesReader,
): Row {
  const compared = tested.find(({ candidate }) => candidate === arm);
  const seeds = arm === baseline ? bySeed(arm, testLoss).size : (compared?.seeds ?? 0);
  return {
    cells: [
      arm.label,
      String(seeds),
      [estimateOf(arm, testLoss)],
      arm === baseline ? '' : differenceText(compared),
      arm === baseline ? '' : formatP(compared?.tTest),
      arm === baseline ? '' : gainText(arm, baseline, arms),
      [estimateOf(arm, validationLoss)],
      costText(arm, arms, reader),
    ],
  };
}

/** `−0.0743 ± 0.0100`, or why there is no interval. */
function differenceText(compared: Tested | undefined): string {
  if (compared === undefined) return 'no seed in common';
  const { difference, high, seeds } = compared;
  if (seeds < 2) return `${signed(difference, 4)} (one seed, no interval)`;
  return `${signed(difference, 4)} ± ${fixed(high - difference, 4)}`;
}

/** How much of what the oracle gains over the baseline, over the seeds that all three have. */
function gainText(arm: Setting, baseline: Setting, arms: readonly Setting[]): string {
  const oracle = armCalled(arms, 'oracle');
  if (oracle === undefined) return '–';
  const [own, base, best] = [arm, baseline, oracle].map((setting) => bySeed(setting, testLoss));
  const seeds = [...own.keys()].filter((seed) => base.has(seed) && best.has(seed));
  const gainOf = (losses: ReadonlyMap<number, number>) =>
    seeds.reduce((sum, seed) => sum + base.get(seed)! - losses.get(seed)!, 0);
  const all = gainOf(best);
  // Where the oracle itself gains nothing there is nothing to have a share of.
  return all > 0 ? `${fixed((100 * gainOf(own)) / all, 0)} %` : '–';
}

/** Against `mtl`; the mixes that the best static one was chosen among have been trained all. */
function costText(arm: Setting, arms: readonly Setting[], reader: SeriesReader): string {
  const secondsOf = ({ runs }: Setting) =>
    estimate(
      runs.map((run) => reader.updateSeconds(run) ?? Number.NaN),
      2,
    )?.mean;
  const own = secondsOf(arm);
  const uniform = secondsOf(armCalled(arms, 'mtl')!);
  return own === undefined || uniform === undefined ? '–' : `${fixed(own / uniform, 2)} ×`;
}

function captionOf(baseline: Setting, arms: readonly Setting[], tested: readonly Tested[]): string {
  const sentences = [
    'Loss of the best model by validation on the main task of the test data, lower is better; mean ± standard deviation over the seeds.',
    `Against ${baseline.label}, the better of fixed and mtl: mean difference over the seeds that both have (Seeds), negative is better, with its 95 % t interval.`,
    `p: paired t-test, corrected for ${tested.filter(({ tTest }) => !Number.isNaN(tTest)).length} comparisons with Holm's method.`,
    armCalled(arms, 'oracle')
      ? "Of the oracle's gain: 100 % is the loss of the strategy that knows the answer, 0 % that of the baseline."
      : '',
    'Time per update: against mtl, validations included; only runs that had a machine of one kind to themselves can be compared.',
    armCalled(arms, BEST_STATIC)
      ? `${BEST_STATIC}: for each seed the static mix with the best validation; all of them have to be trained for it.`
      : '',
  ];
  return sentences.filter((sentence) => sentence !== '').join(' ');
}

function forestOf(title: string, id: string, baseline: Setting, tested: readonly Tested[]): Block {
  if (tested.every(({ seeds }) => seeds < 2)) {
    return absent(`${title}: no forest plot, as no strategy has two seeds in common with ${baseline.label}.`);
  }
  const arms = tested.map(({ candidate, difference, low, high, seeds, tTest }) => ({
    label: candidate.label,
    ...{ difference, low, high, seeds, p: tTest },
  }));
  const single = tested.some(({ seeds }) => seeds < 2) ? ' Strategies with one seed have no interval.' : '';
  const figure = forestFigure(
    arms,
    {
      id: `${id}-forest`,
      title: `Test loss against ${baseline.label}, ${title}`,
      caption: `Mean difference of the main task's test loss to ${baseline.label} over paired seeds, with its 95 % t interval; left of the line is better. Filled: p < 0.05 after Holm's correction.${single}`,
    },
    `test loss minus that of ${baseline.label}`,
  );
  return { kind: 'figure', figure };
}
