import { basename } from 'node:path';
import { InputError } from '../../errors.js';
import { evaluatedDataInWords } from '../../run/index.js';
import { type Evaluate, type EvaluateFlags, refuseFlags } from '../../schedule/problem-kind.js';
import { formatFigure, textTable } from '../../text-table.js';
import { noteInWords } from '../formats/format.js';
import {
  compareForecasts,
  type Evaluation,
  type EvaluationOptions,
  evaluateForecast,
  type ForecastComparison,
} from './evaluation.js';
import type { Risk } from './risk.js';

type EvaluateForecastFlags = EvaluateFlags & Omit<EvaluationOptions, 'split'> & { readonly against?: string };

/** `tcts evaluate` for a run of a forecast. */
export const evaluateForecastRun: Evaluate = async (run, flags) => {
  refuseFlags(
    flags,
    'forecast',
    'k',
    'policy',
    'models',
    'beam',
    'earlyEnd',
    'checkpoint',
    'loss',
    'unit',
    'computationAware',
    'speculate',
  );
  const { split, data, columns, from, to, backtest, neutralise, predictions, against, threads, device } =
    flags as EvaluateForecastFlags;
  if (split !== undefined && split !== 'test' && split !== 'validation') {
    throw new InputError(`expected test or validation, found ${JSON.stringify(split)}`, { key: '--split' });
  }
  const evaluation = await evaluateForecast(run, {
    split,
    data,
    columns,
    from,
    to,
    backtest,
    neutralise,
    predictions,
    threads,
    device,
  });
  if (against === undefined) return { json: evaluation, text: textOf(evaluation) };
  const comparison = compareForecasts(run, against, basename(evaluation.folder!));
  return { json: { ...evaluation, comparison }, text: `${textOf(evaluation)}\n\n${comparisonText(comparison)}` };
};

function textOf(evaluation: Evaluation): string {
  const { main, samples, scores, bar, labelDays, quintiles, backtest, notes, folder } = evaluation;
  const { days, ...all } = scores;
  // Mean ranks have no squared error.
  const figures = Object.entries(all).filter(([name, value]) => name !== 'MSE' || !Number.isNaN(value));
  return [
    `${partInWords(evaluation)}, ${bar} ${main} ahead: ${samples} forecasts on ${days} ${bar}s with a correlation`,
    ...neutralText(evaluation),
    '',
    textTable(
      figures.map(([name]) => name),
      [figures.map(([, value]) => formatFigure(value))],
    ),
    '',
    ...windowLines(evaluation),
    `mean return ${labelDays === 1 ? `of a ${bar}` : `over ${labelDays} ${bar}s`} by predicted fifth, in basis points, the highest forecasts first:`,
    textTable(
      quintiles.map((_, g) => `q${g + 1}`),
      [quintiles.map((mean) => formatFigure(1e4 * mean))],
    ),
    '',
    `backtest (${portfolioInWords(backtest.settings, bar)}), turnover ${formatFigure(100 * backtest.turnover)} % a ${bar}, ` +
      `${formatFigure(100 * backtest.exposure)} % invested;`,
    `${capacityText(backtest, bar)};`,
    `${tradesText(backtest, bar)}:`,
    textTable(
      ['', 'annual return', 'information ratio', 'maximum drawdown'],
      risksOf(backtest).map(([name, { annualReturn, informationRatio, maxDrawdown }]) => [
        name,
        ...[annualReturn, informationRatio, maxDrawdown].map(formatFigure),
      ]),
    ),
    '',
    ...notes.map(noteInWords),
    `series and predictions: ${folder}`,
  ].join('\n');
}

function risksOf({
  benchmark,
  portfolio,
  market,
  excess,
  excessAfterCosts,
  settings,
}: Evaluation['backtest']): [string, Risk][] {
  const isAlone = settings.benchmark === 'none' || (settings.benchmark === 'auto' && settings.longShort);
  // Without a benchmark, the excess is the return itself.
  if (isAlone) {
    return [
      ['before costs', excess],
      ['after costs', portfolio],
    ];
  }
  return [
    ['portfolio after costs', portfolio],
    [benchmark, market],
    ['excess before costs', excess],
    ['excess after costs', excessAfterCosts],
  ];
}

function windowLines({ windows = [] }: Evaluation): string[] {
  if (windows.length === 0) return [];
  const rows = windows.map(({ train, test, days, RankIC, IC }) => [
    train.join(' to '),
    test.join(' to '),
    String(days),
    formatFigure(RankIC),
    formatFigure(IC),
  ]);
  return ['by window of the walk-forward:', textTable(['trained on', 'tested on', 'days', 'RankIC', 'IC'], rows), ''];
}

function partInWords({ split, dates: [first, last], data }: Evaluation): string {
  const part = split === 'new' || split === 'dates' ? `${first} to ${last}` : `${split} part`;
  return `${part} of ${evaluatedDataInWords(data)}`;
}

function portfolioInWords({ top, drop, longShort }: Evaluation['backtest']['settings'], bar: string): string {
  return `top ${top}${longShort ? ` long, bottom ${top} short` : ''}, ${drop} replaced a ${bar}`;
}

function neutralText({ neutralised }: Evaluation): string[] {
  if (neutralised === undefined || neutralised === null) return [];
  const { group, beta } = neutralised;
  const parts = [group && `the mean of each ${group}`, beta && `what the beta of ${beta} days explains`].filter(
    Boolean,
  );
  return [`without ${parts.join(' and ')}, day by day`];
}

function capacityText({ capacity, settings: { participation } }: Evaluation['backtest'], bar: string): string {
  if (capacity === null) return 'capacity unknown, as there is no volume, or no trade';
  const within = `${formatFigure(100 * participation)} % of what the stock trades that ${bar}`;
  return `capacity ${formatMoney(capacity)}: with so much money 95 % of the trades are within ${within}`;
}

function formatMoney(money: number): string {
  const [unit, name] = money >= 1e9 ? [1e9, ' billion'] : money >= 1e6 ? [1e6, ' million'] : [1, ''];
  return `${formatFigure(money / unit)}${name}`;
}

function tradesText({ delay, price, settings: { trade } }: Evaluation['backtest'], bar: string): string {
  const where = trade === 'label' ? ', where their label begins' : '';
  if (delay > 0) return `forecasts of ${bar} t are traded at the ${price} of ${bar} t + ${delay}${where}`;
  return (
    `forecasts of ${bar} t are traded at the close of ${bar} t${where}: the same close that they use,\n` +
    'an upper bound that cannot be executed (unlike problem.labels.shift: 1)'
  );
}

function comparisonText({ against, RankIC, IC }: ForecastComparison): string {
  const rows = Object.entries({ RankIC, IC }).map(([name, { mean, standardError, interval, p }]) => [
    name,
    ...[mean, standardError, ...interval, p].map(formatFigure),
  ]);
  const head = ['', 'difference', 'standard error', '2.5 %', '97.5 %', 'p'];
  const { days, blockLength } = RankIC;
  return `against ${against} (block bootstrap, ${days} days, blocks of ${blockLength}):\n${textTable(head, rows)}`;
}
