import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { DeviceChoice } from '../../devices.js';
import { InputError } from '../../errors.js';
import { makeFolder, readText } from '../../files.js';
import {
  type BlockBootstrap,
  blockBootstrap,
  type DailyScore,
  type ForecastScores,
  mean,
} from '../../metrics/index.js';
import { groupBy } from '../../metrics/statistics.js';
import { Random } from '../../random.js';
import { type EvaluatedData, evaluationFolder, readEvaluatedData, writeScores } from '../../run/index.js';
import { datesOf, type ForecastConfig } from '../config.js';
import { firstDayFrom, givenDate, lastDayUntil, partSamples, type SplitDates } from '../data/calendar.js';
import { labelSpec, shortHistory } from '../data/dataset.js';
import { labelReach, labelStart } from '../data/labels.js';
import { type PricePanel, type Samples, samplesBetween } from '../data/panel.js';
import { type Forecaster, forecastsOf, openForecaster, windowAt } from '../forecaster.js';
import type { Note } from '../formats/format.js';
import { evaluatedPrices, type OtherData, openPanel } from '../formats/index.js';
import { absentIndex, neutralForecasts, neutralisation, neutralName, writeTable } from '../predictions.js';
import { requireFinite, type Scores, scoresOf } from '../scores.js';
import { type Backtest, backtest, type Execution } from './backtest.js';
import { type BacktestOptions, type BacktestSettings, backtestSettings, barName } from './portfolio.js';
import { type GroupReturns, groupReturns, type Risk } from './risk.js';

/** What to forecast and score, and on which data. */
export interface EvaluationOptions extends OtherData {
  /**
   * Which part to forecast. Default `test`; on other data without any day of it, all days after the run's validation
   * part.
   */
  readonly split?: 'validation' | 'test';
  /** First and last day to forecast, instead of a part. Default: the ends of the data. */
  readonly from?: string;
  readonly to?: string;
  /** Default 1. */
  readonly threads?: number;
  /** What computes. Default cpu. */
  readonly device?: DeviceChoice;
  readonly backtest?: BacktestOptions;
  /** What to remove from the forecasts, instead of the run's `problem.neutralise`. */
  readonly neutralise?: ForecastConfig['neutralise'];
  /** An additional file for the predictions, `*.csv` or `*.parquet`. Default: none. */
  readonly predictions?: string;
  /**
   * Where files are written. Default `evaluation/<split>` in the run folder, for other data with their name; null:
   * nowhere.
   */
  readonly out?: string | null;
}

/** Figures of the main task's forecasts. */
export interface ForecastFigures {
  readonly main: number;
  readonly samples: number;
  readonly scores: ForecastScores;
  /** What a day of windows, horizons and turnover is: a day, or a bar of intraday or weekly prices. */
  readonly bar: 'day' | 'bar';
  /** Trading days that a label covers: a return of the quintiles is one over this many days. */
  readonly labelDays: number;
  /** Mean return of each fifth of the stocks, the highest forecasts first. */
  readonly quintiles: readonly number[];
  readonly backtest: {
    /** Days from a forecast to its trade. */
    readonly delay: number;
    /** False if a trade is at the same close that its forecast uses: an upper bound. */
    readonly executable: boolean;
    readonly benchmark: string;
    readonly portfolio: Risk;
    readonly market: Risk;
    readonly excess: Risk;
    readonly excessAfterCosts: Risk;
    readonly turnover: number;
    /** Average share of the portfolio that is invested. */
    readonly exposure: number;
    /** Money that could have been traded this way: see `capacityOf`. Null: the data has no volume, or nothing was traded. */
    readonly capacity: number | null;
    /** How it was traded, and at which price of the day. */
    readonly settings: BacktestSettings;
    readonly price: 'open' | 'close';
  };
}

/** Figures of the forecasts of a part. */
export interface Evaluation extends ForecastFigures {
  /** `new`: all days of other data after the validation part; `dates`: the requested ones. */
  readonly split: 'validation' | 'test' | 'new' | 'dates';
  /** First and last day that was forecast. */
  readonly dates: readonly [string, string];
  readonly data: EvaluatedData;
  /** Of a walk-forward: the figures of each window's model on its days. */
  readonly windows?: readonly WindowScores[];
  /** What was removed from the forecasts; undefined: nothing. */
  readonly neutralised?: ForecastConfig['neutralise'];
  /** Oddities in data other than the run's own, and windows that begin before the data. */
  readonly notes: readonly Note[];
  /** Folder with the series, if they were written. */
  readonly folder: string | undefined;
}

/** A window of a walk-forward. */
export interface WindowScores extends SplitDates {
  /** Days that it forecast, and their mean correlations. */
  readonly days: number;
  readonly RankIC: number;
  readonly IC: number;
}

/**
 * Forecasts a part of the data with a run's best model and scores it. Files: `scores.json`, `daily.csv` (scores of each
 * day), `quintiles.csv`, `backtest.csv` and `predictions.csv` (which `tcts score forecast` reads).
 */
export async function evaluateForecast(run: string, options: EvaluationOptions = {}): Promise<Evaluation> {
  const forecaster = await openForecaster(run, options);
  const { config } = forecaster;
  try {
    const neutral = neutralisation(config.neutralise, options.neutralise);
    const isOwn = isDeepStrictEqual(neutral, config.neutralise);
    const reading = { run: isOwn ? run : undefined, group: neutral?.group };
    const { panel, cleaned, notes } = await openPanel(config.data, config.features, options, reading);
    const data = evaluatedPrices(config.data, panel, options.data);
    const { split, samples } = evaluatedSamples(forecaster, panel, options);
    const name = isOwn ? split : `${split}-${neutral === null ? 'plain' : `neutral-${neutralName(neutral)}`}`;
    const { out = evaluationFolder(run, name, data) } = options;
    const short = shortHistory(panel, samples, config.features.window, split);
    const { forecasts: predicted, spread } = await forecastsOf(forecaster, cleaned, samples);
    const { forecasts, notes: missing } =
      neutral === null ? { forecasts: predicted, notes: [] } : neutralForecasts(panel, samples, predicted, neutral);
    const judged = judge(config, panel, samples, forecasts, options.backtest);
    const { figures } = judged;
    const dates = [0, samples.length - 1].map((i) => panel.calendar[samples.day[i]]) as [string, string];
    const evaluation: Evaluation = {
      split,
      dates,
      data,
      ...(neutral === null ? {} : { neutralised: neutral }),
      ...figures,
      // Ranks are on another scale than returns.
      scores: spread === undefined ? figures.scores : { ...figures.scores, MSE: Number.NaN },
      windows: forecaster.windows && windowScores(forecaster.windows, judged.scores.daily),
      // Those of the run's own data were reported when it was trained.
      notes: [
        ...(options.data === undefined ? [] : notes.list()),
        ...short,
        ...seen(config, panel, samples),
        ...(isMarketOfMembers(judged, neutral) ? absentIndex(config, panel) : []),
        ...missing,
        ...thin(judged),
      ],
      folder: out ?? undefined,
    };
    const predictions = {
      ...predictionColumns(panel, samples, forecasts, judged.scores.returns),
      ...(spread === undefined ? {} : { spread }),
    };
    if (out !== null) writeSeries(out, panel, predictions, judged, evaluation);
    if (options.predictions !== undefined) writeTable(options.predictions, predictions);
    return evaluation;
  } finally {
    await forecaster.close();
  }
}

/** Whether the members are the market, for want of an index, that returns are compared with or betas are measured against. */
function isMarketOfMembers({ figures }: Judgement, neutral: ForecastConfig['neutralise']): boolean {
  const { benchmark, longShort } = figures.backtest.settings;
  return (benchmark === 'auto' && !longShort) || typeof neutral?.beta === 'number';
}

function windowScores(windows: readonly SplitDates[], daily: readonly DailyScore[]): WindowScores[] {
  const byWindow = groupBy(daily, ({ date }) => windowAt(windows, date));
  return [...byWindow].map(([window, days]) => {
    const meanOf = (name: 'RankIC' | 'IC') => mean(days.map((day) => day[name]).filter((x) => !Number.isNaN(x)));
    return { ...windows[window], days: days.length, RankIC: meanOf('RankIC'), IC: meanOf('IC') };
  });
}

/** Note about days on which the portfolio could not be filled. */
function thin({ course: { thinDays }, figures }: Judgement): Note[] {
  const { top, longShort } = figures.backtest.settings;
  if (thinDays.length === 0) return [];
  const wanted = longShort ? `twice ${top}` : `${top}`;
  return [{ kind: `day with fewer stocks than the ${wanted} to hold`, count: thinDays.length, first: thinDays[0] }];
}

/** The figures of some forecasts, and the series behind them. */
export interface Judgement {
  readonly figures: ForecastFigures;
  readonly scores: Scores;
  readonly groups: GroupReturns;
  readonly course: Backtest;
}

/** Scores main-task forecasts, one per sample, against the outcome, and trades on them where their labels begin. */
export function judge(
  config: ForecastConfig,
  panel: PricePanel,
  samples: Samples,
  forecasts: Float32Array,
  options?: BacktestOptions,
): Judgement {
  const { main, labels } = config;
  requireFinite(forecasts);
  const scores = scoresOf(config, panel, samples, forecasts);
  const groups = groupReturns(samples, forecasts, scores.returns, QUINTILES);
  const costs = { ...config.backtest.costs, ...options?.costs };
  const trading = { ...config.backtest, ...options, costs };
  const execution = executionOf(trading.trade, labelStart(labels, main));
  const course = backtest(panel, samples, forecasts, execution, trading);
  const figures: ForecastFigures = {
    main,
    samples: samples.length,
    scores: scores.figures,
    bar: barName(panel.calendar),
    labelDays: labels.kind === 'daily' ? 1 : main,
    quintiles: groups.returns.map((series) => series.reduce((sum, r) => sum + r, 0) / series.length),
    backtest: {
      ...execution,
      executable: execution.delay > 0,
      benchmark: course.benchmarkName,
      portfolio: course.portfolio,
      market: course.market,
      excess: course.excess,
      excessAfterCosts: course.excessAfterCosts,
      turnover: course.meanTurnover,
      exposure: course.meanExposure,
      // JSON has no infinity.
      capacity: Number.isFinite(course.capacity) ? course.capacity : null,
      settings: backtestSettings(trading, panel.calendar),
    },
  };
  return { figures, scores, groups, course };
}

/** @param labelStart days from a forecast to the close where its label begins */
function executionOf(trade: BacktestSettings['trade'], labelStart: number): Execution {
  if (trade === 'label') return { delay: labelStart, price: 'close' };
  if (trade === 'close') return { delay: 0, price: 'close' };
  return { delay: 1, price: trade === 'next-open' ? 'open' : 'close' };
}

const QUINTILES = 5;

/** The samples of a part as in training, or those of other dates. */
function evaluatedSamples(
  { config, windows }: Forecaster,
  panel: PricePanel,
  { split = 'test', from, to, data }: EvaluationOptions,
): { readonly split: Evaluation['split']; readonly samples: Samples } {
  const { calendar } = panel;
  const between = (first: string | undefined, last: string | undefined, key: string): Samples => {
    const [start, end] = [
      firstDayFrom(calendar, first ?? ''),
      last === undefined ? calendar.length - 1 : lastDayUntil(calendar, last),
    ];
    const samples = samplesBetween(panel, start, end);
    if (samples.length > 0) return samples;
    const wanted = `from ${first ?? 'the beginning'} to ${last ?? 'the end'}`;
    throw new InputError(`there is no sample ${wanted}; the data holds ${calendar[0]} to ${calendar.at(-1)}`, { key });
  };
  if (from !== undefined || to !== undefined) {
    const [start, end] = [from && givenDate(from, calendar, '--from'), to && givenDate(to, calendar, '--to')];
    return { split: 'dates', samples: between(start, end, '--from, --to') };
  }
  if (windows !== undefined && split === 'validation') {
    throw new InputError('each window of a walk-forward has its own validation part: evaluate a member', {
      key: '--split',
    });
  }
  const dates = datesOf(config);
  const [first, last] = dates[split];
  const holdsPart = firstDayFrom(calendar, first) <= lastDayUntil(calendar, last);
  if (data !== undefined && split === 'test' && !holdsPart) {
    const [, end] = dates.validation;
    return { split: 'new', samples: between(`${end}~`, undefined, '--data') };
  }
  return { split, samples: partSamples(panel, dates, split, labelReach(labelSpec(config))) };
}

/** Note about days that the model was trained or validated on. */
function seen(config: ForecastConfig, { calendar }: PricePanel, { day, dayStarts }: Samples): Note[] {
  const days = [...dayStarts.subarray(0, -1)].map((start) => calendar[day[start]].slice(0, 10));
  const [first, last] = datesOf(config).train;
  const known = days.filter((date) => date >= first && date <= last);
  return known.length === 0 ? [] : [{ kind: 'day of the training part', count: known.length, first: known[0] }];
}

function predictionColumns(panel: PricePanel, samples: Samples, forecasts: Float32Array, returns: Float32Array) {
  return {
    date: Array.from(samples.day, (day) => panel.calendar[day]),
    instrument: Array.from(samples.stock, (stock) => panel.symbols[stock]),
    prediction: forecasts,
    label: returns,
  };
}

function writeSeries(
  folder: string,
  panel: PricePanel,
  predictions: ReturnType<typeof predictionColumns>,
  { scores: { daily }, groups, course }: Judgement,
  evaluation: Evaluation,
): void {
  makeFolder(folder);
  const { folder: _, ...figures } = evaluation;
  writeScores(folder, figures);
  const write = (name: string, columns: Parameters<typeof writeTable>[1]) => writeTable(join(folder, name), columns);
  write('daily.csv', {
    date: daily.map(({ date }) => date ?? ''),
    IC: daily.map(({ IC }) => IC),
    RankIC: daily.map(({ RankIC }) => RankIC),
    zMSE: daily.map(({ zMSE }) => zMSE),
  });
  write('quintiles.csv', {
    date: Array.from(groups.days, (day) => panel.calendar[day]),
    ...Object.fromEntries(groups.returns.map((series, g) => [`q${g + 1}`, series])),
    longShort: groups.longShort,
  });
  const { dates, value, returns, costs, turnover, benchmark, exposure } = course;
  write('backtest.csv', { date: dates, value, return: returns, cost: costs, turnover, benchmark, exposure });
  write('predictions.csv', predictions);
}

/** How much one run's daily scores exceed another's. */
export interface ForecastComparison {
  readonly against: string;
  /** Of RankIC and IC, the mean daily difference with its block bootstrap. */
  readonly RankIC: BlockBootstrap;
  readonly IC: BlockBootstrap;
}

/**
 * Compares two runs that have been evaluated on the same part of the same data, day by day: a circular block bootstrap
 * of the daily differences, 10,000 resamples, the same ones every time.
 *
 * @param evaluation name of the folder of the evaluation, the same in both runs
 */
export function compareForecasts(run: string, against: string, evaluation: string): ForecastComparison {
  const folders = [run, against].map((folder) => join(folder, 'evaluation', evaluation));
  if (!existsSync(folders[1])) {
    const first = `tcts evaluate ${against}, with the same part, data and days`;
    throw new InputError(`it has no evaluation to compare with, expected that of: ${first}`, { file: folders[1] });
  }
  const [own, other] = folders.map((folder) => readDaily(join(folder, 'daily.csv')));
  requireSameData(folders[0], folders[1]);
  const dates = [...own.keys()].filter((date) => other.has(date));
  const test = (column: 'RankIC' | 'IC'): BlockBootstrap => {
    const random = new Random(1).fork('block bootstrap');
    const differences = dates.map((date) => own.get(date)![column] - other.get(date)![column]);
    return blockBootstrap(differences, (n) => random.int(n));
  };
  return { against, RankIC: test('RankIC'), IC: test('IC') };
}

function requireSameData(own: string, other: string): void {
  const [a, b] = [own, other].map(readEvaluatedData);
  if (a?.digest === b?.digest) return;
  const [first, second] = [a, b].map((data) => (data === undefined ? 'data that it does not name' : data.name));
  const again = first === second ? ', as it was at another time: evaluate both again' : '';
  throw new InputError(`it was evaluated on ${second}, but the other run on ${first}${again}`, { file: other });
}

function readDaily(file: string): Map<string, { IC: number; RankIC: number }> {
  const [head, ...lines] = readText(file).trimEnd().split('\n');
  if (head !== 'date,IC,RankIC,zMSE') {
    throw new InputError(`expected the columns date,IC,RankIC,zMSE, found ${head}`, { file, line: 1 });
  }
  const number = (cell: string) => (cell === '' ? Number.NaN : Number(cell));
  return new Map(
    lines.map((line) => {
      const [date, IC, RankIC] = line.split(',');
      return [date, { IC: number(IC), RankIC: number(RankIC) }];
    }),
  );
}
