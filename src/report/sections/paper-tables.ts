import { curriculum } from '../../schedule/strategies/curriculum.js';
import { fixed } from '../../schedule/strategies/fixed.js';
import { learned } from '../../schedule/strategies/learned.js';
import { mtl } from '../../schedule/strategies/mtl.js';
import { type Cell, markBest, type SeedEstimate, type Table, textColumn } from '../document.js';
import { type Labelled, plainLabel, taskSet } from '../labels.js';
import { estimateOf, forecastMeasure, type Measure } from '../measures.js';
import { type DataSet, labelsOf, mainsOf, type Setting, settingOf, taskTitle } from '../settings.js';
import { ruled } from './results.js';

/** Figures of the paper and how they are measured here. */
interface Published {
  readonly measure: Measure;
  of(row: PaperRow): readonly number[];
}

/** The paper's tables of RankIC and MSE and of ICIR, with its rows and columns and the figures of the runs. */
export function paperTables(data: DataSet, id: string): Table[] {
  const RankIC: Published = { measure: forecastMeasure('RankIC', 4), of: (row) => row.RankIC };
  const MSE: Published = { measure: forecastMeasure('zMSE'), of: (row) => row.MSE };
  const ICIR: Published = { measure: forecastMeasure('ICIR'), of: (row) => row.ICIR };
  const about =
    `Mean ± standard deviation over ${PAPER_SEEDS} seeds, or as many as are given. Beside it what the paper reports, a mean ` +
    `of ${PAPER_SEEDS} seeds on other data and with another budget; its LGB is the row of the trees. Bold: the best of a column.`;
  return [
    {
      id: `${id}-results`,
      title: "RankIC and MSE, the paper's table 3",
      caption: `Test part. RankIC on the left, MSE on the right: that of the z-scores of each day. ${about}`,
      ...besidePaper(data, [RankIC, MSE]),
    },
    {
      id: `${id}-icir`,
      title: "ICIR, the table of the paper's appendix F",
      caption: `Test part. The mean of the daily IC over its standard deviation. ${about}`,
      ...besidePaper(data, [ICIR]),
    },
  ];
}

function besidePaper(data: DataSet, published: readonly Published[]): Pick<Table, 'columns' | 'rows'> {
  const names = published.map(({ measure }) => measure.name);
  const mains = [...PAPER_MAINS, ...mainsOf(data).filter((main) => !isPapers(main))];
  const columns = mains.flatMap((main) => {
    const title = taskTitle(data.kind, main);
    return [title, ...(isPapers(main) ? [`${title}, paper`] : [])].map((one) => ({ title: one, measures: names }));
  });
  const rows = rowsOf(data).map(({ label, group, row }) => {
    const cells = mains.flatMap((main, place): Cell[] => {
      const own = ownCell(settingOf(data, label, main), published);
      if (!isPapers(main)) return [own];
      return [own, published.map(({ measure, of }) => row && paperFigure(of(row)[place], measure))];
    });
    return { cells: [label, ...cells], group };
  });
  const better = published.map(({ measure }) => measure.better);
  return { columns: [textColumn('Method'), ...columns], rows: markBest(ruled(rows), better) };
}

/** Main tasks of the paper, in the order of its figures. */
const PAPER_MAINS: readonly (number | undefined)[] = [1, 2, 3];

function isPapers(main: number | undefined): boolean {
  return PAPER_MAINS.includes(main);
}

interface LabelledRow {
  readonly label: string;
  readonly group: string | undefined;
  readonly row?: PaperRow;
}

/** Every row of the paper, run or not, followed by the other methods with its models and task sets. */
function rowsOf(data: DataSet): LabelledRow[] {
  const own = labelsOf(data).map((label): LabelledRow => {
    const setting = data.settings.find((one) => one.label === label)!;
    return { label, group: taskSet(setting), row: PAPER_ROWS.find((row) => isPaperRow(row, setting)) };
  });
  const rows = PAPER_ROWS.flatMap((row): LabelledRow[] => {
    const found = own.filter((one) => one.row === row);
    const labelled = asLabelled(row);
    return found.length > 0 ? found : [{ label: plainLabel('forecast', labelled), group: taskSet(labelled), row }];
  });
  for (const one of own.filter(({ row }) => row === undefined)) {
    const last = rows.findLastIndex(({ group }) => group === one.group);
    rows.splice(last < 0 ? rows.length : last + 1, 0, one);
  }
  return rows;
}

/** With the number of seeds if there are fewer than in the paper. */
function ownCell(setting: Setting | undefined, published: readonly Published[]): Cell {
  const figures = published.map(({ measure }) => setting && estimateOf(setting, measure));
  return figures.map((one, i) => (i === figures.length - 1 ? withSeeds(one) : one));
}

function withSeeds(one: SeedEstimate | undefined): SeedEstimate | undefined {
  if (one === undefined || one.n >= PAPER_SEEDS) return one;
  return { ...one, note: `(${one.n} seed${one.n === 1 ? '' : 's'})` };
}

function paperFigure(mean: number, { digits }: Measure): SeedEstimate {
  return { mean, std: Number.NaN, n: PAPER_SEEDS, digits: Math.min(3, digits) };
}

/** What the paper reports about a method for main tasks 1, 2 and 3, means of five seeds (Wu et al. 2021). */
export interface PaperRow {
  readonly strategy: string;
  readonly model: string;
  /** Of the strategies that train several tasks. */
  readonly tasks?: number;
  readonly RankIC: readonly number[];
  readonly MSE: readonly number[];
  readonly ICIR: readonly number[];
}

/** Seeds behind a figure of the paper. */
const PAPER_SEEDS = 5;

/** Its tables of stock trend forecasting: RankIC and MSE (table 3), ICIR (appendix F), in the order of the first. */
export const PAPER_ROWS: readonly PaperRow[] = [
  model('gru', [0.049, 0.018, 0.014], [1.903, 1.972, 1.989], [0.373, 0.127, 0.111]),
  model('mlp', [0.023, 0.022, 0.015], [1.961, 1.962, 1.978], [0.175, 0.164, 0.116]),
  model('trees', [0.038, 0.023, 0.007], [1.883, 1.952, 1.987], [0.297, 0.18, 0.07]),
  model('gat', [0.052, 0.024, 0.015], [1.898, 1.954, 1.973], [0.389, 0.133, 0.113]),
  scheduled(mtl.name, 3, [0.061, 0.023, 0.012], [1.862, 1.942, 1.956], [0.467, 0.179, 0.083]),
  scheduled(curriculum.name, 3, [0.051, 0.028, 0.016], [1.88, 1.941, 1.962], [0.397, 0.198, 0.112]),
  scheduled(learned.name, 3, [0.071, 0.03, 0.017], [1.851, 1.939, 1.963], [0.559, 0.228, 0.126]),
  scheduled(mtl.name, 5, [0.057, 0.021, 0.017], [1.875, 1.939, 1.959], [0.444, 0.146, 0.115]),
  scheduled(curriculum.name, 5, [0.056, 0.028, 0.015], [1.877, 1.942, 1.962], [0.419, 0.2, 0.11]),
  scheduled(learned.name, 5, [0.075, 0.032, 0.021], [1.849, 1.939, 1.955], [0.583, 0.203, 0.117]),
  scheduled(mtl.name, 10, [0.052, 0.02, 0.019], [1.882, 1.947, 1.952], [0.403, 0.134, 0.135]),
  scheduled(curriculum.name, 10, [0.051, 0.028, 0.016], [1.882, 1.95, 1.961], [0.393, 0.2, 0.117]),
  scheduled(learned.name, 10, [0.067, 0.03, 0.022], [1.867, 1.96, 1.942], [0.532, 0.222, 0.16]),
];

/** Whether runs are of the paper's stocks on the paper's test days. */
export function isPapersMarket({ kind, settings }: DataSet): boolean {
  const keys = settings[0]?.keys;
  const test = keys?.get('problem.split.test');
  return (
    kind === 'forecast' && keys?.get('problem.data.market') === 'csi300' && String(test) === '2016-01-01,2020-08-01'
  );
}

/** Whether a setting is the paper's method: the same strategy, model and tasks. */
function isPaperRow(row: PaperRow, { strategy, keys }: Labelled): boolean {
  const tasks = row.tasks === undefined || keys.get('problem.tasks') === row.tasks;
  return strategy === row.strategy && keys.get('problem.model.name') === row.model && tasks;
}

/** The row in the form needed for a label. */
function asLabelled({ strategy, model, tasks }: PaperRow): Labelled {
  return {
    strategy,
    keys: new Map<string, unknown>([
      ['problem.model.name', model],
      ['problem.tasks', tasks],
    ]),
  };
}

type Figures = readonly [number, number, number];

function model(name: string, RankIC: Figures, MSE: Figures, ICIR: Figures): PaperRow {
  return { strategy: fixed.name, model: name, RankIC, MSE, ICIR };
}

function scheduled(strategy: string, tasks: number, RankIC: Figures, MSE: Figures, ICIR: Figures): PaperRow {
  return { strategy, model: 'gru', tasks, RankIC, MSE, ICIR };
}
