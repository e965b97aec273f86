import { type Command, Option } from 'commander';
import { InputError } from '../errors.js';

interface ForecastFlags {
  readonly data?: string;
  readonly date?: string;
  readonly out: string;
  readonly threads: string;
  readonly json: boolean;
}

export function registerForecast(program: Command): void {
  program
    .command('forecast')
    .description("Rank the stocks of a day by a run's best model.")
    .argument('<run>', 'run folder')
    .option('--data <path>', "prices up to the day, in any known format (default: the run's own)")
    .option('--date <YYYY-MM-DD>', 'the last day that may be seen (default: the last day of the data)')
    .requiredOption('--out <file.csv>', 'file to write: date,instrument,prediction,rank')
    .addOption(new Option('--threads <n>', 'threads of the model').default('2'))
    .option('--json', 'print a summary as JSON', false)
    .addHelpText(
      'after',
      `
The prediction is that of the run's main task, on the scale of its training labels; rank 1 is the highest. Prices are
normalised as in training: nothing is fitted anew, and nothing after the day is looked at.

Examples:
  tcts forecast runs/csi300 --data data/cn_data --out predictions.csv
  tcts forecast runs/csi300 --data prices.csv --date 2020-09-25 --out predictions.csv`,
    )
    .action(forecastCommand);
}

async function forecastCommand(run: string, { data, date, out, threads, json }: ForecastFlags): Promise<void> {
  const { forecastDay, writeForecast } = await import('../forecast/forecast-day.js');
  if (!/^[1-9]\d?$/.test(threads)) {
    throw new InputError(`expected a whole number from 1 on, found ${JSON.stringify(threads)}`, { key: '--threads' });
  }
  const forecast = await forecastDay(run, { data, date, threads: Number(threads) });
  writeForecast(out, forecast);
  const { stocks, horizon } = forecast;
  const summary = { date: forecast.date, horizon, stocks: stocks.length, milliseconds: forecast.milliseconds, out };
  const best = stocks.slice(0, 5).map(({ instrument }) => instrument);
  process.stdout.write(
    json
      ? `${JSON.stringify({ ...summary, best })}\n`
      : `${stocks.length} stocks of ${forecast.date}, day ${horizon} ahead; highest: ${best.join(', ')}\nwritten to ${out}\n`,
  );
}
