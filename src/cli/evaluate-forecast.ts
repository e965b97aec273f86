import { basename } from 'node:path';
import { InputError } from '../errors.js';
import type { Risk } from '../forecast/backtest/index.js';
import { type Comparison, compareForecasts } from '../forecast/comparison.js';
import { type Evaluation, evaluateForecast } from '../forecast/evaluation.js';
import { dataInWords, type Evaluate, refuseFlags } from './evaluate.js';
import { textTable } from './text-table.js';
import { formatFigure } from './train.js';

/** `tcts evaluate` for a run of a forecast. */
export const evaluateForecastRun: Evaluate = async (run, flags) => {
  refuseFlags(flags, 'forecast', 'k', 'policy', 'models', 'beam', 'earlyEnd', 'checkpoint', 'loss', 'unit');
  const { split = 'test', data, against, threads } = flags;
  if (split !== 'test' && split !== 'validation') {
    throw new InputError(`expected test or validation, found ${JSON.stringify(split)}`, { key: '--split' });
  }
  const evaluation = await evaluateForecast(run, { split, data, threads });
  if (against === undefined) return { json: evaluation, text: textOf(evaluation) };
  const comparison = compareForecasts(run, against, basename(evaluation.folder!));
  return { json: { ...evaluation, comparison }, text: `${textOf(evaluation)}\n\n${comparisonText(comparison)}` };
};

function textOf(evaluation: Evaluation): string {
  const { split, data, main, samples, scores, labelDays, quintiles, backtest, notes, folder } = evaluation;
  const { days, ...figures } = scores;
  const risks: [string, Risk][] = [
    ['portfolio after costs', backtest.portfolio],
    [backtest.benchmark, backtest.market],
    ['excess before costs', backtest.excess],
    ['excess after costs', backtest.excessAfterCosts],
  ];
  return [
    `${split} part of ${dataInWords(data)}, day ${main} ahead: ${samples} forecasts on ${days} days with a correlation`,
    '',
    textTable(Object.keys(figures), [Object.values(figures).map(formatFigure)]),
    '',
    `mean return ${labelDays === 1 ? 'of a day' : `over ${labelDays} days`} by predicted fifth, in basis points, the highest forecasts first:`,
    textTable(
      quintiles.map((_, g) => `q${g + 1}`),
      [quintiles.map((mean) => formatFigure(1e4 * mean))],
    ),
    '',
    `backtest (top 50, 5 replaced a day), turnover ${formatFigure(100 * backtest.turnover)} % a day;`,
    `${tradesText(backtest.delay)}:`,
    textTable(
      ['', 'annual return', 'information ratio', 'maximum drawdown'],
      risks.map(([name, { annualReturn, informationRatio, maxDrawdown }]) => [
        name,
        ...[annualReturn, informationRatio, maxDrawdown].map(formatFigure),
      ]),
    ),
    '',
    ...notes.map(({ kind, count, first }) => `data: ${count} × ${kind} (first: ${first})`),
    `series and predictions: ${folder}`,
  ].join('\n');
}

function tradesText(delay: number): string {
  if (delay > 0) return `forecasts of day t are traded at the close of day t + ${delay}, where their label begins`;
  return (
    'forecasts of day t are traded at the close of day t, where their label begins: the very close that they are made ' +
    'from,\nso an upper bound that cannot be executed (problem.labels.shift: 1 can)'
  );
}

function comparisonText({ against, RankIC, IC }: Comparison): string {
  const rows = Object.entries({ RankIC, IC }).map(([name, { mean, standardError, interval, p }]) => [
    name,
    ...[mean, standardError, ...interval, p].map(formatFigure),
  ]);
  const head = ['', 'difference', 'standard error', '2.5 %', '97.5 %', 'p'];
  const { days, blockLength } = RankIC;
  return `against ${against} (block bootstrap, ${days} days, blocks of ${blockLength}):\n${textTable(head, rows)}`;
}
