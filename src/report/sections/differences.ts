import { InputError } from '../../errors.js';
import { type CrossedBootstrap, crossedBootstrap, holm } from '../../metrics/index.js';
import { absent, type Block, formatP, signed, textColumn } from '../document.js';
import { taskSet } from '../labels.js';
import { dailySeries } from '../measures.js';
import type { Series, SeriesReader } from '../reader.js';
import { type DataSet, mainsOf, type Setting, taskTitle } from '../settings.js';
import { type Comparison, isPapersMethod } from '../view.js';

/** A comparison with its test over seeds and days, before and after the correction for their number. */
export interface MethodDifference extends Comparison {
  readonly test: CrossedBootstrap;
  readonly holm: number;
}

/**
 * What the paper claims, tested: each scheduler against every strategy with the same tasks and against the model without
 * other tasks; every other model against that one. All were declared before any run, so they are not chosen by data.
 */
export function methodDifferences(data: DataSet, reader: Pick<SeriesReader, 'series'>): MethodDifference[] {
  const tested = claims(data).flatMap((pair) => {
    const test = seedsAndDays(pair, reader);
    return test === undefined ? [] : [{ ...pair, test }];
  });
  const corrected = holm(tested.map(({ test }) => test.p));
  return tested.map((one, i) => ({ ...one, holm: corrected[i] }));
}

/** The differences as a table, or a line on why there are none. */
export function differencesBlock(data: DataSet, tested: readonly MethodDifference[], id: string): Block {
  if (tested.length === 0) {
    return absent('No test over seeds and days: no two methods of a main task have two evaluated seeds in common.');
  }
  const rows = tested.map(({ candidate, baseline, test, holm }) => ({
    cells: [
      taskTitle(data.kind, candidate.main),
      candidate.label,
      baseline.label,
      `${signed(test.mean, 4)} ± ${test.standardError.toFixed(4)}`,
      test.interval.map((bound) => signed(bound, 4)).join(' to '),
      String(test.seeds),
      formatP(test.p),
      formatP(holm),
    ],
  }));
  const columns = ['Main task', 'Method', 'Against', 'RankIC', '95 % interval', 'Seeds', 'p', 'p (Holm)'];
  const caption =
    'Test part. Difference of the RankIC of the same seeds on the same days ± its standard error for other seeds and other ' +
    `days: bootstrap of seeds × circular blocks of ${tested[0].test.blockLength} days; p by Student's t with the degrees of ` +
    `freedom of that error, two-sided; p (Holm) is corrected for the number of comparisons in the table, ${tested.length}.`;
  const title = 'Differences over seeds and days';
  return { kind: 'table', table: { id: `${id}-differences`, title, caption, columns: columns.map(textColumn), rows } };
}

function claims(data: DataSet): Comparison[] {
  const models = data.settings.filter((setting) => taskSet(setting) === undefined);
  const schedulers = data.settings.filter(isPapersMethod);
  const isBase = (setting: Setting): boolean =>
    schedulers.length === 0 || schedulers.some((one) => modelOf(one) === modelOf(setting));
  return mainsOf(data).flatMap((main) => {
    const [bases, others] = [true, false].map((base) =>
      models.filter((setting) => setting.main === main && isBase(setting) === base),
    );
    const pairs = schedulers
      .filter((setting) => setting.main === main)
      .flatMap((candidate) => {
        const sameTasks = data.settings.filter(
          (other) => other.main === main && !isPapersMethod(other) && taskSet(other) === taskSet(candidate),
        );
        return [...bases, ...sameTasks].map((baseline) => ({ candidate, baseline }));
      });
    const ofModels = others.flatMap((candidate) => bases.map((baseline) => ({ candidate, baseline })));
    return [...pairs, ...ofModels];
  });
}

function modelOf({ keys }: Setting): unknown {
  return keys.get('problem.model.name');
}

/** Undefined if the two have fewer than two evaluated seeds in common, or too few days. */
function seedsAndDays(
  { candidate, baseline }: Comparison,
  reader: Pick<SeriesReader, 'series'>,
): CrossedBootstrap | undefined {
  const pairs = candidate.runs.flatMap((run) => {
    const other = baseline.runs.findLast(({ info }) => info.seed === run.info.seed);
    const [own, theirs] = [run, other].map((one) => (one === undefined ? undefined : dailySeries([one], reader)[0]));
    return own === undefined || theirs === undefined ? [] : [daily(own, theirs)];
  });
  if (pairs.length < 2) return undefined;
  const dates = [...pairs[0].keys()].filter((date) => pairs.every((pair) => pair.has(date))).sort();
  try {
    return crossedBootstrap(pairs.map((pair) => dates.map((date) => pair.get(date)!)));
  } catch (error) {
    if (error instanceof InputError) return undefined;
    throw error;
  }
}

/** Difference of the RankIC of two runs by date. */
function daily(own: Series, other: Series): Map<string, number> {
  const theirs = new Map(other.dates.map((date, i) => [date, other.columns.RankIC[i]]));
  return new Map(
    own.dates.flatMap((date, i) =>
      theirs.has(date) ? [[date, own.columns.RankIC[i] - theirs.get(date)!] as const] : [],
    ),
  );
}
