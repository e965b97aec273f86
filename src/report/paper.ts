import type { Labelled } from './labels.js';
import type { DataSet } from './settings.js';

/** What the paper reports of a method for main tasks 1, 2 and 3, means of five seeds (Wu et al. 2021). */
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
export const PAPER_SEEDS = 5;

/** Its tables of stock trend forecasting: RankIC and MSE (table 3), ICIR (appendix F), in the order of the first. */
export const PAPER_ROWS: readonly PaperRow[] = [
  model('gru', [0.049, 0.018, 0.014], [1.903, 1.972, 1.989], [0.373, 0.127, 0.111]),
  model('mlp', [0.023, 0.022, 0.015], [1.961, 1.962, 1.978], [0.175, 0.164, 0.116]),
  model('trees', [0.038, 0.023, 0.007], [1.883, 1.952, 1.987], [0.297, 0.18, 0.07]),
  model('gat', [0.052, 0.024, 0.015], [1.898, 1.954, 1.973], [0.389, 0.133, 0.113]),
  scheduled('mtl', 3, [0.061, 0.023, 0.012], [1.862, 1.942, 1.956], [0.467, 0.179, 0.083]),
  scheduled('curriculum', 3, [0.051, 0.028, 0.016], [1.88, 1.941, 1.962], [0.397, 0.198, 0.112]),
  scheduled('learned', 3, [0.071, 0.03, 0.017], [1.851, 1.939, 1.963], [0.559, 0.228, 0.126]),
  scheduled('mtl', 5, [0.057, 0.021, 0.017], [1.875, 1.939, 1.959], [0.444, 0.146, 0.115]),
  scheduled('curriculum', 5, [0.056, 0.028, 0.015], [1.877, 1.942, 1.962], [0.419, 0.2, 0.11]),
  scheduled('learned', 5, [0.075, 0.032, 0.021], [1.849, 1.939, 1.955], [0.583, 0.203, 0.117]),
  scheduled('mtl', 10, [0.052, 0.02, 0.019], [1.882, 1.947, 1.952], [0.403, 0.134, 0.135]),
  scheduled('curriculum', 10, [0.051, 0.028, 0.016], [1.882, 1.95, 1.961], [0.393, 0.2, 0.117]),
  scheduled('learned', 10, [0.067, 0.03, 0.022], [1.867, 1.96, 1.942], [0.532, 0.222, 0.16]),
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
export function isPaperRow(row: PaperRow, { strategy, keys }: Labelled): boolean {
  const tasks = row.tasks === undefined || keys.get('problem.tasks') === row.tasks;
  return strategy === row.strategy && keys.get('problem.model.name') === row.model && tasks;
}

/** The row as something that has a label. */
export function asLabelled({ strategy, model, tasks }: PaperRow): Labelled {
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
  return { strategy: 'fixed', model: name, RankIC, MSE, ICIR };
}

function scheduled(strategy: string, tasks: number, RankIC: Figures, MSE: Figures, ICIR: Figures): PaperRow {
  return { strategy, model: 'gru', tasks, RankIC, MSE, ICIR };
}
