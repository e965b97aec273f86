import { type Cell, type Estimate, markBest, type Table, textColumn } from '../document.js';
import { plainLabel, taskSet } from '../labels.js';
import { estimateOf, forecastMeasure, type Measure } from '../measures.js';
import { asLabelled, isPaperRow, PAPER_ROWS, PAPER_SEEDS, type PaperRow } from '../paper.js';
import { type DataSet, labelsOf, type Setting, settingOf, taskTitle } from '../settings.js';
import { ruled } from './results.js';

/** Figures of the paper and how they are measured here. */
interface Published {
  readonly measure: Measure;
  of(row: PaperRow): readonly number[];
}

/** The paper's tables of RankIC and MSE and of ICIR, with its rows and columns, and the figures of the runs beside them. */
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
  const columns = MAINS.flatMap((main) => {
    const title = taskTitle(data.kind, main);
    return [title, `${title}, paper`].map((one) => ({ title: one, measures: names }));
  });
  const rows = rowsOf(data).map(({ label, group, row }) => {
    const cells = MAINS.flatMap((main, place): Cell[] => [
      ownCell(settingOf(data, label, main), published),
      published.map(({ measure, of }) => row && paperFigure(of(row)[place], measure)),
    ]);
    return { cells: [label, ...cells], group };
  });
  const better = published.map(({ measure }) => measure.better);
  return { columns: [textColumn('Method'), ...columns], rows: markBest(ruled(rows), better) };
}

/** Main tasks of the paper. */
const MAINS = [1, 2, 3];

interface LabelledRow {
  readonly label: string;
  readonly group: string | undefined;
  readonly row?: PaperRow;
}

/** Every row of the paper, whether or not it was run, and behind its models and sets of tasks what else was. */
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

/** With the number of seeds where there are fewer than the paper has. */
function ownCell(setting: Setting | undefined, published: readonly Published[]): Cell {
  const figures = published.map(({ measure }) => setting && estimateOf(setting, measure));
  return figures.map((one, i) => (i === figures.length - 1 ? withSeeds(one) : one));
}

function withSeeds(one: Estimate | undefined): Estimate | undefined {
  if (one === undefined || one.n >= PAPER_SEEDS) return one;
  return { ...one, note: `(${one.n} seed${one.n === 1 ? '' : 's'})` };
}

function paperFigure(mean: number, { digits }: Measure): Estimate {
  return { mean, std: Number.NaN, n: PAPER_SEEDS, digits: Math.min(3, digits) };
}
