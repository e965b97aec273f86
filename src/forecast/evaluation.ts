import { join } from 'node:path';
import { makeFolder, writeFileAtomic } from '../files.js';
import type { ForecastScores } from '../metrics/index.js';
import { dataDigest, dataName, type EvaluatedData, evaluationFolder } from '../run/index.js';
import {
  type Backtest,
  type BacktestOptions,
  backtest,
  type GroupReturns,
  groupReturns,
  type Risk,
} from './backtest/index.js';
import type { ForecastConfig } from './config.js';
import { labelReach, labelStart, type Note, type Panel, type Samples, splitSamples } from './data/index.js';
import { labelSpec, openPanel, shortHistory } from './data-set.js';
import { type Forecaster, openForecaster } from './forecaster.js';
import { requireFinite, type Scores, scoresOf } from './scores.js';

export interface EvaluationOptions {
  /** Which part to forecast. Default `test`. */
  readonly split?: 'validation' | 'test';
  /** Data in place of the run's own. */
  readonly data?: string;
  /** Default 1. */
  readonly threads?: number;
  readonly backtest?: BacktestOptions;
  /** Where files are written. Default `evaluation/<split>` in the run folder, for other data with their name; null: nowhere. */
  readonly out?: string | null;
}

/** What forecasts of the main task came to. */
export interface ForecastFigures {
  readonly main: number;
  readonly samples: number;
  readonly scores: ForecastScores;
  /** Trading days that a label covers: a return of the quintiles is one over so many days. */
  readonly labelDays: number;
  /** Mean return of each fifth of the stocks, the highest forecasts first. */
  readonly quintiles: readonly number[];
  readonly backtest: {
    /** Days from a forecast to its trade, at the close where the label begins. */
    readonly delay: number;
    /** False where a trade is at the very close that its forecast is made from: an upper bound. */
    readonly executable: boolean;
    readonly benchmark: string;
    readonly portfolio: Risk;
    readonly market: Risk;
    readonly excess: Risk;
    readonly excessAfterCosts: Risk;
    readonly turnover: number;
  };
}

/** What the forecasts of a part came to. */
export interface Evaluation extends ForecastFigures {
  readonly split: 'validation' | 'test';
  readonly data: EvaluatedData;
  /** What was odd in data other than the run's own, and windows that begin before the data do. */
  readonly notes: readonly Note[];
  /** Folder with the series, if they were written. */
  readonly folder: string | undefined;
}

/**
 * Forecasts a part of the data with a run's best model and scores it. Files: `scores.json`, `daily.csv` (scores of each
 * day), `quintiles.csv`, `backtest.csv` and `predictions.csv` (which `tcts score forecast` reads).
 */
export async function evaluateForecast(run: string, options: EvaluationOptions = {}): Promise<Evaluation> {
  const { split = 'test', threads = 1 } = options;
  const forecaster = await openForecaster(run, threads);
  try {
    const { panel, cleaned, notes } = await openPanel(forecaster.config.data, options.data);
    const data = evaluatedData(forecaster, panel, options.data);
    const { out = evaluationFolder(run, split, data) } = options;
    const samples = partOf(forecaster, panel, split);
    const short = shortHistory(panel, samples, forecaster.config.features.window, split);
    const forecasts = await forecaster.predict(cleaned, samples);
    const judged = judge(forecaster.config, panel, samples, forecasts, options.backtest);
    const evaluation: Evaluation = {
      split,
      data,
      ...judged.figures,
      // Those of the run's own data were said when it was trained.
      notes: [...(options.data === undefined ? [] : notes), ...short],
      folder: out ?? undefined,
    };
    if (out !== null) writeSeries(out, panel, samples, forecasts, judged, evaluation);
    return evaluation;
  } finally {
    await forecaster.close();
  }
}

/** The figures of some forecasts, and the series behind them. */
export interface Judgement {
  readonly figures: ForecastFigures;
  readonly scores: Scores;
  readonly groups: GroupReturns;
  readonly course: Backtest;
}

/** Scores main-task forecasts, one a sample, against what happened, and trades on them where their labels begin. */
export function judge(
  config: ForecastConfig,
  panel: Panel,
  samples: Samples,
  forecasts: Float32Array,
  options?: BacktestOptions,
): Judgement {
  const { main, labels } = config;
  requireFinite(forecasts);
  const scores = scoresOf(config, panel, samples, forecasts);
  const groups = groupReturns(samples, forecasts, scores.returns, QUINTILES);
  const delay = labelStart(labels, main);
  const course = backtest(panel, samples, forecasts, delay, options);
  const figures: ForecastFigures = {
    main,
    samples: samples.length,
    scores: scores.figures,
    labelDays: labels.kind === 'daily' ? 1 : main,
    quintiles: groups.returns.map((series) => series.reduce((sum, r) => sum + r, 0) / series.length),
    backtest: {
      delay,
      executable: delay > 0,
      benchmark: course.benchmarkName,
      portfolio: course.portfolio,
      market: course.market,
      excess: course.excess,
      excessAfterCosts: course.excessAfterCosts,
      turnover: course.meanTurnover,
    },
  };
  return { figures, scores, groups, course };
}

const QUINTILES = 5;

/** The samples that training took the part to be. */
function partOf({ config }: Forecaster, panel: Panel, split: 'validation' | 'test'): Samples {
  return splitSamples(panel, config.split, labelReach(labelSpec(config)))[split];
}

function evaluatedData({ config }: Forecaster, panel: Panel, path: string | undefined): EvaluatedData {
  const { calendar, symbols, fields, values, members, index } = panel;
  const bytes = ({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array =>
    new Uint8Array(buffer, byteOffset, byteLength);
  const names = [calendar, symbols, fields, [index?.symbol ?? '']].map((list) => list.join('\n'));
  const digest = dataDigest([...names, bytes(values), members, ...(index === undefined ? [] : [bytes(index.close)])]);
  return { name: path ?? dataName(config.data), digest, own: path === undefined };
}

function writeSeries(
  folder: string,
  panel: Panel,
  samples: Samples,
  forecasts: Float32Array,
  { scores: { daily, returns }, groups, course }: Judgement,
  evaluation: Evaluation,
): void {
  makeFolder(folder);
  const { folder: _, ...figures } = evaluation;
  writeFileAtomic(join(folder, 'scores.json'), `${JSON.stringify(figures, null, 2)}\n`);
  writeCsv(join(folder, 'daily.csv'), ['date', 'IC', 'RankIC', 'zMSE'], daily.length, (d) => {
    const { date, IC, RankIC, zMSE } = daily[d];
    return [date, IC, RankIC, zMSE];
  });
  const names = groups.returns.map((_, g) => `q${g + 1}`);
  writeCsv(join(folder, 'quintiles.csv'), ['date', ...names, 'longShort'], groups.days.length, (d) => [
    panel.calendar[groups.days[d]],
    ...groups.returns.map((series) => series[d]),
    groups.longShort[d],
  ]);
  const columns = ['date', 'value', 'return', 'cost', 'turnover', 'benchmark'];
  writeCsv(join(folder, 'backtest.csv'), columns, course.dates.length, (d) => [
    course.dates[d],
    course.value[d],
    course.returns[d],
    course.costs[d],
    course.turnover[d],
    course.benchmark[d],
  ]);
  writeCsv(join(folder, 'predictions.csv'), ['date', 'instrument', 'prediction', 'label'], samples.length, (i) => [
    panel.calendar[samples.day[i]],
    panel.symbols[samples.stock[i]],
    forecasts[i],
    returns[i],
  ]);
}

/** Writes row by row; what is undefined is an empty cell. */
function writeCsv(
  path: string,
  columns: readonly string[],
  rows: number,
  row: (i: number) => readonly (string | number)[],
): void {
  writeFileAtomic(path, lines(columns, rows, row));
}

function* lines(columns: readonly string[], rows: number, row: (i: number) => readonly (string | number)[]) {
  yield `${columns.join(',')}\n`;
  for (let from = 0; from < rows; from += BLOCK) {
    let text = '';
    for (let i = from; i < Math.min(rows, from + BLOCK); i++) {
      text += `${row(i)
        .map((cell) => (Number.isNaN(cell) ? '' : cell))
        .join(',')}\n`;
    }
    yield text;
  }
}

/** Rows that are written at once. */
const BLOCK = 4096;
