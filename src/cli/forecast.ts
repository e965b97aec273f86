import { type Command, Option } from 'commander';
import type { DeviceChoice } from '../devices.js';
import { columnsOption, deviceOption, neutraliseOption, wholeNumber } from './flags.js';
import { runFolder } from './names.js';
import { warn } from './terminal.js';

interface ForecastFlags {
  readonly data?: string;
  readonly columns?: Readonly<Record<string, string | null>>;
  readonly date?: string;
  readonly from?: string;
  readonly to?: string;
  readonly neutralise?: { readonly group?: string; readonly beta?: number } | null;
  readonly out: string;
  readonly threads: number;
  readonly device?: DeviceChoice;
  readonly json: boolean;
}

export function registerForecast(program: Command): void {
  program
    .command('forecast')
    .description("Rank the stocks of a day, or of many days, by a run's best model.")
    .argument('<run>', 'run folder')
    .option('--data <path>', "prices up to the day, in any known format (default: the run's own)")
    .addOption(columnsOption())
    .option('--date <YYYY-MM-DD>', 'the last day that may be seen (default: the last day of the data)')
    .option('--from <YYYY-MM-DD>', 'forecast many days, from this one on')
    .option('--to <YYYY-MM-DD>', 'forecast many days, up to this one')
    .addOption(neutraliseOption("keys of problem.neutralise, such as '{group: sector}', instead of the run's"))
    .requiredOption('--out <file>', 'file to write, .csv or .parquet: date, instrument, prediction, rank')
    .addOption(
      new Option('--threads <n>', 'threads of the model').argParser(wholeNumber('--threads', 1, 99)).default(2),
    )
    .addOption(deviceOption())
    .option('--json', 'print a summary as JSON', false)
    .addHelpText(
      'after',
      `
The prediction is that of the run's main task, on the scale of its training labels; rank 1 is the highest of its day. Prices
are normalised as in training: nothing is fitted anew, and nothing after a day is looked at for its forecast.

Examples:
  tcts forecast runs/csi300 --data data/cn_data --out predictions.csv
  tcts forecast runs/csi300 --data prices.csv --date 2020-09-25 --out predictions.csv
  tcts forecast runs/csi300 --data prices.csv --columns '{symbol: ticker}' --from 2020-08-01 --out predictions.parquet`,
    )
    .action(forecastCommand);
}

async function forecastCommand(run: string, { out, json, ...options }: ForecastFlags): Promise<void> {
  const { forecastDays, writeForecasts } = await import('../forecast/predictions.js');
  const { days, milliseconds, notes } = await forecastDays(runFolder(run), options);
  for (const { kind, count, first } of notes) warn(`data: ${count} × ${kind} (first: ${first})`);
  writeForecasts(out, days);
  const last = days[days.length - 1];
  const { date, horizon, stocks } = last;
  const best = stocks.slice(0, 5).map(({ instrument }) => instrument);
  if (json) {
    const summary = { date, horizon, stocks: stocks.length, days: days.length, milliseconds, out, best };
    process.stdout.write(`${JSON.stringify(summary)}\n`);
    return;
  }
  const what = days.length === 1 ? '' : `${days.length} days from ${days[0].date} on, the last with `;
  process.stdout.write(
    `${what}${stocks.length} stocks of ${date}, day ${horizon} ahead; highest: ${best.join(', ')}\nwritten to ${out}\n`,
  );
}
