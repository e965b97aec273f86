import type { SavedForecastFigures } from '../../run/index.js';
import { absent, type Block, type Row, type Section, slug, type Table, textColumn } from '../document.js';
import { quintileFigure } from '../figures/bars.js';
import { type DailyLine, dailyFigure, movingMean } from '../figures/curves.js';
import { PLAIN_STYLE } from '../figures/figure.js';
import {
  dailySeries,
  estimateOf,
  forecastMeasure,
  type Measure,
  rankICTest,
  testComparisons,
  testForecast,
} from '../measures.js';
import { meanSeries, type Series } from '../reader.js';
import { mainsOf, type Setting, settingOf, taskTitle } from '../settings.js';
import { comparisons, type ReportView } from '../view.js';
import { differencesBlock, methodDifferences } from './differences.js';
import { isPapersMarket, paperTables } from './paper-tables.js';
import { methodRows, OVER_SEEDS, significance, undecided } from './results.js';

/** Results of stock trend forecasting. */
export function forecastSection(view: ReportView): Section {
  const { data, reader, baselines } = view;
  const id = slug(data.title);
  const RankIC = forecastMeasure('RankIC');
  const tested = testComparisons(
    comparisons(data, baselines),
    RankIC,
    (pair) => rankICTest(pair, reader)?.p ?? Number.NaN,
  );
  const scored = data.settings.filter((setting) => estimateOf(setting, RankIC) !== undefined);
  const blocks: Block[] = [];
  if (scored.length === 0) {
    blocks.push(absent('No results: no run has test figures (problem.test: true, or tcts evaluate RUN).'));
  } else {
    const tables = isPapersMarket(data)
      ? paperTables(data, id)
      : [resultsTable(view, id, undecided(tested)), icirTable(view, id)];
    blocks.push(
      ...tables.map((table): Block => ({ kind: 'table', table })),
      differencesBlock(data, methodDifferences(data, reader), id),
      significance(data, tested, RankIC, 'days', { id: `${id}-significance`, title: 'Significance' }),
    );
  }
  const evaluated = data.settings.filter(({ runs }) => runs.some((run) => testForecast(run) !== undefined));
  if (evaluated.length === 0) {
    blocks.push(
      absent('No backtest, RankIC over time or returns by fifth: no run has been evaluated (tcts evaluate RUN).'),
    );
  } else {
    blocks.push({ kind: 'table', table: backtestTable(view, id, evaluated) });
    if (evaluated.some((setting) => windowsOf(setting).length > 0)) {
      blocks.push({ kind: 'table', table: windowTable(view, id, evaluated) });
    }
    for (const main of mainsOf(data)) blocks.push(...figuresOf(view, id, main));
  }
  return { title: `Forecasting: ${data.title}`, blocks };
}

function resultsTable({ data }: ReportView, id: string, verdict: string): Table {
  return methodRows(data, [forecastMeasure('RankIC'), forecastMeasure('zMSE')], {
    id: `${id}-results`,
    title: 'RankIC and MSE',
    caption: `Test part. RankIC on the left, MSE on the right: that of the z-scores of each day, as in the paper. ${OVER_SEEDS}${verdict}`,
  });
}

function icirTable({ data }: ReportView, id: string): Table {
  return methodRows(data, [forecastMeasure('ICIR'), forecastMeasure('RankICIR'), forecastMeasure('IC')], {
    id: `${id}-icir`,
    title: 'ICIR, RankICIR and IC',
    caption: `Test part: ICIR, RankICIR and IC, from left to right. ICIR is the mean of the daily IC over its standard deviation. ${OVER_SEEDS}`,
  });
}

function backtestTable({ data }: ReportView, id: string, evaluated: readonly Setting[]): Table {
  const rows = evaluated.map((setting): Row => {
    const cells = BACKTEST_MEASURES.map((measure) => [estimateOf(setting, measure)]);
    return { cells: [setting.label, taskTitle(data.kind, setting.main), held(setting), tradedAt(setting), ...cells] };
  });
  const columns = BACKTEST_MEASURES.map(({ name }) => ({ title: name, measures: [name] }));
  return {
    id: `${id}-backtest`,
    title: 'Backtest',
    caption:
      "Test part, a portfolio of the highest forecasts with the given number held and replaced per day (in qlib's " +
      'manner). Traded at the close of the given day, or at its open if stated; t is the day of the forecast. The close of t ' +
      'is the one that the forecast uses: an upper bound that cannot be executed. An evaluation that does not say when it traded did so at t + 1, whether or not the label ' +
      'begins there: evaluate the run again. Per cent a year, added up and not ' +
      'compounded: return after costs, excess over the benchmark before and after costs. Information ratio of the excess ' +
      'after costs; drawdown of the portfolio, daily turnover and invested share of the portfolio in per cent; ' +
      'capacity in millions, the portfolio with which 95 % of the trading stays within a twentieth (backtest.participation) of what ' +
      'the stock trades that day. Mean ± standard deviation over the seeds.',
    columns: [textColumn('Method'), textColumn('Main task'), textColumn('Held'), textColumn('Traded at'), ...columns],
    rows,
  };
}

/** `50, 5 replaced`. */
function held({ runs }: Setting): string {
  return differing(runs, ({ settings }) => {
    if (settings === undefined) return 'not said';
    const { top, drop, longShort } = settings;
    return `${longShort ? `${top} long, ${top} short` : top}, ${drop} replaced`;
  });
}

/** `t`, `t + 1`, `open of t + 1`. */
function tradedAt({ runs }: Setting): string {
  return differing(runs, ({ delay, price }) => {
    if (delay === undefined) return 'not said';
    return `${price === 'open' ? 'open of ' : ''}${delay === 0 ? 't' : `t + ${delay}`}`;
  });
}

/** The distinct values in the backtests of some runs. */
function differing(runs: Setting['runs'], say: (backtest: SavedForecastFigures['backtest']) => string): string {
  const found = runs.flatMap((run) => testForecast(run) ?? []);
  return [...new Set(found.map(({ backtest }) => say(backtest)))].join('; ');
}

/** The windows of a walk-forward. */
function windowsOf({ runs }: Setting): NonNullable<SavedForecastFigures['windows']> {
  return runs.map((run) => testForecast(run)?.windows ?? []).find((windows) => windows.length > 0) ?? [];
}

function windowTable({ data }: ReportView, id: string, evaluated: readonly Setting[]): Table {
  const rows = evaluated.flatMap((setting) =>
    windowsOf(setting).map(({ train, test, days }, i): Row => {
      const cells = (['RankIC', 'IC'] as const).map((name) => [
        estimateOf(setting, {
          name,
          digits: 3,
          better: 'higher',
          of: (run) => testForecast(run)?.windows?.[i]?.[name] ?? Number.NaN,
        }),
      ]);
      const dates = [train, test].map((range) => range.join(' to '));
      return { cells: [setting.label, taskTitle(data.kind, setting.main), ...dates, String(days), ...cells] };
    }),
  );
  const texts = ['Method', 'Main task', 'Trained on', 'Tested on', 'Days'].map(textColumn);
  return {
    id: `${id}-windows`,
    title: 'Windows of the walk-forward',
    caption:
      'Each window has its own model, which forecasts the days after its validation part. Tables and figures of the ' +
      'test part are of all windows together. Mean ± standard deviation over the seeds.',
    columns: [...texts, ...['RankIC', 'IC'].map((name) => ({ title: name, measures: [name] }))],
    rows,
  };
}

type Risks = 'portfolio' | 'excess' | 'excessAfterCosts';

const BACKTEST_MEASURES: readonly Measure[] = [
  riskMeasure('annual return', 'portfolio', 'annualReturn', 100, 1),
  riskMeasure('excess', 'excess', 'annualReturn', 100, 1),
  riskMeasure('excess after costs', 'excessAfterCosts', 'annualReturn', 100, 1),
  riskMeasure('information ratio', 'excessAfterCosts', 'informationRatio', 1, 2),
  riskMeasure('drawdown', 'portfolio', 'maxDrawdown', 100, 1),
  {
    name: 'turnover',
    digits: 1,
    better: 'lower',
    of: (run) => 100 * (testForecast(run)?.backtest.turnover ?? Number.NaN),
  },
  {
    name: 'exposure',
    digits: 1,
    better: 'higher',
    of: (run) => 100 * (testForecast(run)?.backtest.exposure ?? Number.NaN),
  },
  {
    name: 'capacity',
    digits: 1,
    better: 'higher',
    of: (run) => (testForecast(run)?.backtest.capacity ?? Number.NaN) / 1e6,
  },
];

function riskMeasure(
  name: string,
  series: Risks,
  figure: 'annualReturn' | 'informationRatio' | 'maxDrawdown',
  scale: number,
  digits: number,
): Measure {
  const of: Measure['of'] = (run) => scale * (testForecast(run)?.backtest[series][figure] ?? Number.NaN);
  return { name, digits, better: 'higher', of };
}

/** RankIC over time, cumulative return and returns by fifth for one main task. */
function figuresOf(view: ReportView, id: string, main: number | undefined): Block[] {
  const { data, reader, methods, leftOut } = view;
  const task = taskTitle(data.kind, main);
  const at = main === undefined ? '' : `-task-${main}`;
  const shown = methods.flatMap(({ label, style }) => {
    const setting = settingOf(data, label, main);
    return setting?.runs.some((run) => testForecast(run)) ? [{ label, style, setting }] : [];
  });
  if (shown.length === 0) return [absent(`${task}: no figures, because no run has been evaluated.`)];

  const rankIC: DailyLine[] = [];
  const returns: DailyLine[] = [];
  let market: DailyLine | undefined;
  let window = 1;
  for (const { label, style, setting } of shown) {
    const { dates, values } = meanSeries(dailySeries(setting.runs, reader), 'RankIC');
    window = Math.min(MOVING_DAYS, Math.max(1, Math.floor(dates.length / 5)));
    if (dates.length > 1) rankIC.push({ label, style, dates, values: movingMean(values, window) });
    const portfolios = setting.runs.flatMap((run) => {
      const evaluation = testForecast(run);
      return (evaluation && reader.series(run, evaluation, 'backtest')) ?? [];
    });
    if (portfolios.length === 0) continue;
    const afterCosts = meanSeries(portfolios.map(withNet), 'net');
    returns.push({ label, style, dates: afterCosts.dates, values: runningSum(afterCosts.values) });
    const benchmark = meanSeries(portfolios, 'benchmark');
    const name = setting.runs.map(testForecast).find((found) => found !== undefined)!.backtest.benchmark;
    market ??= { label: name, style: PLAIN_STYLE, dates: benchmark.dates, values: runningSum(benchmark.values) };
  }
  const marks = [...new Set(shown.flatMap(({ setting }) => windowsOf(setting).map(({ test: [from] }) => from)))];
  const seeds = `Mean over the seeds.${marks.length === 0 ? '' : ' Dotted lines: where the windows of the walk-forward begin.'}`;
  const blocks: Block[] = [];
  if (rankIC.length > 0) {
    const caption =
      `Test part, ${task}: moving mean of the daily RankIC over ${window} days. ${seeds} ${leftOut}`.trim();
    const about = { id: `${id}-rank-ic${at}`, title: `RankIC over time, ${task}`, caption };
    blocks.push({ kind: 'figure', figure: dailyFigure(rankIC, about, { label: 'RankIC' }, marks) });
  }
  if (market !== undefined) {
    const caption =
      `Test part, ${task}: running sum of the daily returns of the backtest's portfolio after costs, and of the benchmark. ${seeds} ${leftOut}`.trim();
    const about = { id: `${id}-cumulative-return${at}`, title: `Cumulative return, ${task}`, caption };
    blocks.push({
      kind: 'figure',
      figure: dailyFigure([...returns, market], about, { label: 'cumulative return', percent: true }, marks),
    });
  }
  const fifths = shown.map(({ label, setting }) => ({ label, ...quintilesOf(setting) }));
  const caption =
    `Test part, ${task}: mean daily return of the stocks by predicted fifth, q1 with the highest forecasts. Lines on the bars: ± one standard deviation over the seeds. ${leftOut}`.trim();
  const about = { id: `${id}-quintile-returns${at}`, title: `Returns by predicted fifth, ${task}`, caption };
  blocks.push({ kind: 'figure', figure: quintileFigure(fifths, about) });
  return blocks;
}

/** Days of the moving mean: about a quarter of a year. */
const MOVING_DAYS = 60;

function withNet(series: Series): Series {
  const { return: gross, cost } = series.columns;
  return { ...series, columns: { ...series.columns, net: gross.map((value, i) => value - cost[i]) } };
}

function quintilesOf(setting: Setting): { means: number[]; deviations: number[] } {
  const fifths = [0, 1, 2, 3, 4].map((q) =>
    estimateOf(setting, {
      name: `q${q + 1}`,
      digits: 4,
      better: 'higher',
      of: (run) => testForecast(run)?.quintiles[q] ?? Number.NaN,
    }),
  );
  return { means: fifths.map((one) => one?.mean ?? 0), deviations: fifths.map((one) => one?.std ?? Number.NaN) };
}

function runningSum(values: readonly number[]): number[] {
  let sum = 0;
  return values.map((value) => {
    sum += Number.isNaN(value) ? 0 : value;
    return sum;
  });
}
