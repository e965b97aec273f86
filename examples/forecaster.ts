/**
 * A forecaster of tomorrow's returns on a CSV file of daily prices, and the stocks that it ranks highest.
 * `node examples/dist/forecaster.js prices.csv` (columns date, symbol, open, high, low, close, volume); without a file
 * it makes up a market in which yesterday's move tells a little about today's.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { Random, trainRun } from 'tcts';
import { evaluateForecast, forecastDay } from 'tcts/forecast';

const [path = 'runs/prices.csv', folder = 'runs/forecaster'] = process.argv.slice(2);
if (!existsSync(path)) writePrices(path);

if (!existsSync(folder)) {
  const { result } = await trainRun(
    {
      problem: {
        kind: 'forecast',
        data: { format: 'csv', path },
        split: {
          train: ['2019-02-01', '2019-12-31'],
          validation: ['2020-01-01', '2020-06-30'],
          test: ['2020-07-01', '2020-12-31'],
        },
        tasks: 3, // the returns of 1, 2 and 3 days ahead
        main: 1,
        features: { window: 10 },
        model: { name: 'gru', hidden: 16, layers: 1 },
        batch: { size: 256 },
        learningRate: 3e-3,
      },
      strategy: { name: 'learned', hidden: [32] },
      training: { episodes: 30, steps: 6 },
    },
    { folder },
  );
  console.log('best model, on test data:', result?.test);
}

const { scores, backtest } = await evaluateForecast(folder);
console.log(`RankIC ${scores.RankIC.toFixed(3)} over ${scores.days} days`);
console.log(`excess return after costs ${(100 * backtest.excessAfterCosts.annualReturn).toFixed(1)} % a year`);

const { date, stocks } = await forecastDay(folder, { data: path });
const best = stocks.slice(0, 5).map(({ instrument }) => instrument);
console.log(`after the close of ${date}: ${best.join(', ')}`);

/** 60 stocks over two years; a fifth of each move comes back the next day. */
function writePrices(file: string): void {
  const random = new Random(1);
  const stocks = Array.from({ length: 60 }, (_, i) => ({ name: `S${100 + i}`, close: 50, move: 0 }));
  const lines = ['date,symbol,open,high,low,close,volume'];
  for (let day = Date.parse('2019-01-01'); day <= Date.parse('2020-12-31'); day += 86_400_000) {
    const date = new Date(day);
    if (date.getUTCDay() % 6 === 0) continue;
    for (const stock of stocks) {
      const open = stock.close;
      stock.move = -0.2 * stock.move + 0.02 * random.normal();
      stock.close *= Math.exp(stock.move);
      const cells = [
        open,
        Math.max(open, stock.close),
        Math.min(open, stock.close),
        stock.close,
        1e5 + random.int(1e4),
      ];
      lines.push([date.toISOString().slice(0, 10), stock.name, ...cells.map((cell) => cell.toFixed(4))].join(','));
    }
  }
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${lines.join('\n')}\n`);
}
