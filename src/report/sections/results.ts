import {
  absent,
  type Block,
  type Cell,
  formatP,
  markBest,
  markBestOfRows,
  type Row,
  type Section,
  signed,
  slug,
  type Table,
  textColumn,
} from '../document.js';
import { taskSet } from '../labels.js';
import type { Tested } from '../measures.js';
import { estimateOf, type Measure, shownValidation } from '../measures.js';
import { type DataSet, labelsOf, mainsOf, type Setting, settingOf, taskTitle } from '../settings.js';
import type { ReportView } from '../view.js';

type About = Pick<Table, 'id' | 'title' | 'caption'>;

/** Methods in rows and main tasks in columns: the layout of the paper's table of stock trend forecasting. */
export function methodRows(data: DataSet, measures: readonly Measure[], about: About): Table {
  const mains = mainsOf(data);
  const settings = labelsOf(data).map((label) => mains.map((main) => settingOf(data, label, main)));
  const rows = settings.flatMap((ofLabel) => {
    const cells = ofLabel.map((setting) => measures.map((measure) => setting && estimateOf(setting, measure)));
    if (cells.flat().every((figure) => figure === undefined)) return [];
    const setting = ofLabel.find((one) => one !== undefined)!;
    return [{ cells: [setting.label, ...cells], group: taskSet(setting) }];
  });
  const names = measures.map(({ name }) => name);
  const columns = mains.map((main) => ({ title: taskTitle(data.kind, main), measures: names }));
  const better = measures.map(({ better }) => better);
  return { ...about, columns: [textColumn('Method'), ...columns], rows: markBest(ruled(rows), better) };
}

/** Rules between the methods that train one task, and those of each set of tasks. */
export function ruled(rows: readonly (Row & { group: string | undefined })[]): Row[] {
  return rows.map(({ cells, group }, i) => ({ cells, rule: i > 0 && group !== rows[i - 1].group }));
}

/** Main tasks in rows and methods in columns: the layout of the paper's tables of translation. */
export function taskRows(
  data: DataSet,
  measure: Measure,
  about: About,
  noteOf: (setting: Setting) => string | undefined = () => undefined,
): Table {
  const labels = labelsOf(data);
  const rows = mainsOf(data).map((main): Row => {
    const cells = labels.map((label): Cell => {
      const setting = settingOf(data, label, main);
      const figure = setting && estimateOf(setting, measure);
      return [figure && setting ? { ...figure, note: noteOf(setting) } : undefined];
    });
    return { cells: [main === undefined ? 'main task' : String(main), ...cells] };
  });
  const columns = labels.map((title) => ({ title, measures: [measure.name] }));
  return { ...about, columns: [textColumn('k'), ...columns], rows: markBestOfRows(rows, measure.better) };
}

/** Every comparison with its p-values, or a line on why there are none. */
export function significance(
  { kind }: DataSet,
  tested: readonly Tested[],
  measure: Measure,
  items: string,
  about: Pick<Table, 'id' | 'title'>,
  looks: (pair: Tested) => number = () => 1,
): Block {
  if (tested.length === 0) {
    return absent('No significance test: there is no method to compare with a baseline for the same main task.');
  }
  const rows = tested.map(({ candidate, baseline, difference, seeds, tTest, wilcoxon, items }) => ({
    cells: [
      taskTitle(kind, candidate.main),
      candidate.label,
      baseline.label,
      signed(difference, measure.digits + 1),
      String(seeds),
      formatP(tTest),
      formatP(wilcoxon),
      formatP(items),
    ],
  }));
  const columns = ['Main task', 'Method', 'Baseline', measure.name, 'Seeds', 'p (t)', 'p (Wilcoxon)', `p (${items})`];
  const correction =
    tested.length === 1
      ? 'There is one comparison, so there is nothing to correct for.'
      : `Each column of p-values is corrected for its ${tested.length} comparisons with Holm's method.`;
  const most = Math.max(...tested.map(looks));
  const looked =
    most === 1
      ? ''
      : ' These are validation data, by which settings were chosen: before that each p-value is multiplied by the pairs of ' +
        `validation scores that were looked at, ${most} at most.`;
  const caption =
    `Difference of ${measure.name}, method minus baseline, averaged over the seeds that both have. For each main task ` +
    'the method that was best on validation data is compared with each baseline, of several the one with the nearest ' +
    'configuration. p-values are two-sided: paired t-test and exact Wilcoxon signed-rank test over the seeds (two seeds ' +
    `at least; no fewer than six can give p < 0.05 with Wilcoxon's), and ${ITEM_TESTS[items]}. ${correction}${looked}`;
  return { kind: 'table', table: { ...about, caption, columns: columns.map(textColumn), rows } };
}

/** A sentence for the caption of results that are too few to tell methods apart; empty if one is better for sure. */
export function undecided(tested: readonly Tested[]): string {
  if (tested.length === 0 || tested.some(({ tTest }) => tTest < 0.05)) return '';
  const seeds = Math.max(...tested.map((one) => one.seeds));
  if (seeds < 2) return ' Undecided: with one seed nothing can be said about other seeds.';
  return ` Undecided: with ${seeds} seeds no method differs significantly from a baseline.`;
}

const ITEM_TESTS: Readonly<Record<string, string>> = {
  sentences:
    'paired bootstrap over the test sentences (1,000 resamples, the outputs of all seeds for a sentence drawn together)',
  days: 'circular block bootstrap of the daily differences (10,000 resamples, blocks of ⌈n^(1/3)⌉ days, each day averaged over the seeds)',
};

/** What ± means, for captions. */
export const OVER_SEEDS = 'Mean ± standard deviation over the seeds; the best figure is in bold.';

/** Results of a problem that the report has no layout for: the figures that its runs ended with. */
export function otherSection({ data }: ReportView): Section {
  const title = `Results: ${data.title}`;
  const tests = data.settings.flatMap(({ runs }) => runs.flatMap(({ result }) => Object.keys(result?.test ?? {})));
  const measures: Measure[] = [
    shownValidation(data),
    ...[...new Set(tests)].map(
      (name): Measure => ({
        name,
        digits: 4,
        better: /loss|error|mse/i.test(name) ? 'lower' : 'higher',
        of: ({ result }) => result?.test?.[name] ?? Number.NaN,
      }),
    ),
  ];
  if (data.settings.every((setting) => measures.every((measure) => estimateOf(setting, measure) === undefined))) {
    return { title, blocks: [absent('No results: no run has written any.')] };
  }
  const names = measures.map(({ name }) => name).join(', ');
  const table = methodRows(data, measures, {
    id: `${slug(data.title)}-results`,
    title: 'Results',
    caption: `${names[0].toUpperCase()}${names.slice(1)}, from left to right. ${OVER_SEEDS}`,
  });
  return { title, blocks: [{ kind: 'table', table }] };
}
