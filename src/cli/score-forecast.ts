import type { Command } from 'commander';
import { dailyScores, forecastScores } from '../metrics/index.js';
import { print } from './score-flags.js';
import { type ForecastColumns, parseForecast } from './score-forecast-table.js';
import { readInput } from './score-input.js';

interface ForecastFlags extends ForecastColumns {
  perDay?: boolean;
  json?: boolean;
}

/** `tcts score forecast`. */
export function registerForecast(score: Command): void {
  score
    .command('forecast')
    .description('IC, ICIR, RankIC, RankICIR, MSE and z-scored MSE of a forecast')
    .argument('<file.csv>', 'a row for each date and instrument (- for standard input; .gz is read too)')
    .option('--date <column>', 'column of the date', 'date')
    .option('--instrument <column>', 'column of the instrument', 'instrument')
    .option('--prediction <column>', 'column of the prediction', 'prediction')
    .option('--label <column>', 'column of the label', 'label')
    .option('--per-day', 'also the daily series')
    .option('--json', 'print one JSON object')
    .addHelpText(
      'after',
      `
Example:
  tcts score forecast predictions.csv --prediction score --label return --json

IC is the mean daily Pearson correlation, RankIC Spearman's, ICIR and RankICIR mean / standard deviation over days, MSE
is taken over all pairs, zMSE over per-day z-scores. An empty cell is a missing value: its pair is left out. days counts
the days with a defined IC.`,
    )
    .action(async (path: string, flags: ForecastFlags) => {
      const days = parseForecast(await readInput(path), flags);
      const scores = forecastScores(days);
      const daily = flags.perDay ? dailyScores(days) : undefined;
      if (flags.json) {
        print(JSON.stringify({ ...scores, daily }));
        return;
      }
      if (daily !== undefined) print(['date', 'IC', 'RankIC', 'zMSE'].join('\t'));
      for (const day of daily ?? []) print([day.date, figure(day.IC), figure(day.RankIC), figure(day.zMSE)].join('\t'));
      const { days: defined, ...figures } = scores;
      for (const [name, value] of Object.entries(figures)) print(`${name.padEnd(8)}  ${figure(value)}`);
      print(`${'days'.padEnd(8)}  ${defined}${defined === days.length ? '' : ` of ${days.length}`}`);
    });
}

function figure(value: number): string {
  return Number.isNaN(value) ? 'undefined' : value.toPrecision(6);
}
