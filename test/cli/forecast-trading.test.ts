import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { Random } from '../../src/random.js';
import { temporaryFolder } from '../forecast/panels.js';
import { tcts } from './train-process.js';

const folder = temporaryFolder();
const PRICES = ['date', 'symbol', 'open', 'high', 'low', 'close', 'volume'];

const CONFIG = `problem:
  kind: forecast
  data: {format: csv, path: prices.csv}
  split:
    train: ['2015-01-12', '2015-03-31']
    validation: ['2015-04-01', '2015-04-30']
    test: ['2015-05-01', '2015-05-31']
  tasks: 1
  features: {kind: none, window: 1, columns: [signal]}
  model: {name: linear}
  batch: {size: 50}
  learningRate: 0.05
  backtest: {top: 1, drop: 1, trade: next-close, costs: {buy: .001, sell: .002, minimum: 0}, cash: 1000, invested: 1, limit: null}
strategy: {name: fixed}
training: {episodes: 1, steps: 30}
threads: 1
`;

const dayOf = (day: number) => new Date(Date.UTC(2015, 0, 5 + day)).toISOString().slice(0, 10);
const write = (name: string, head: readonly string[], rows: readonly (readonly (string | number)[])[]) =>
  writeFileSync(join(folder, name), `${[head, ...rows].map((row) => row.join(',')).join('\n')}\n`);

/** A run whose forecasts rise with the column `signal`: half of the next day's return. */
beforeAll(async () => {
  const random = new Random(5);
  const rows: (string | number)[][] = [];
  for (const symbol of ['A', 'B']) {
    let [price, signal] = [10, random.normal()];
    for (let day = 0; day < 147; day++) {
      price *= 1 + 0.02 * (0.7 * signal + 0.7 * random.normal());
      signal = random.normal();
      rows.push([dayOf(day), symbol, price, price, price, price, 100, signal]);
    }
  }
  // The table of docs/forecasting.md, from Monday, 1 June 2015 on.
  const closes = { A: [10, 10, 11, 11], B: [20, 20, 20, 21] };
  const signals = { A: [1, -1, -1, 0], B: [-1, 1, 1, 0] };
  for (const symbol of ['A', 'B'] as const) {
    closes[symbol].forEach((price, i) => {
      rows.push([dayOf(147 + i), symbol, price, price, price, price, 100, signals[symbol][i]]);
    });
  }
  write('prices.csv', [...PRICES, 'signal'], rows);
  writeFileSync(join(folder, 'trade.yaml'), CONFIG);
  expect(await tcts(folder, 'train', 'trade.yaml', '--quiet')).toMatchObject({ code: 0, stderr: '' });
}, 60_000);

async function evaluated(...flags: string[]) {
  const { code, stdout, stderr } = await tcts(folder, 'evaluate', 'runs/trade', '--json', ...flags);
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout);
}

test('three days are traded as docs/forecasting.md does it by hand', async () => {
  const { folder: out, backtest } = await evaluated('--from', '2015-06-01', '--to', '2015-06-03');
  const [head, ...rows] = readFileSync(join(folder, out, 'backtest.csv'), 'utf8')
    .trim()
    .split('\n');
  expect(head).toBe('date,value,return,cost,turnover,benchmark,exposure');
  const cells = rows.map((row) => row.split(','));
  expect(cells.map(([date]) => date)).toEqual(['2015-06-02', '2015-06-03', '2015-06-04']);
  const expected = [
    [1000 / 1.001, 0, 0.001 / 1.001, 1 / 1.001],
    [1095.61, 0.1, 0.0033, 2.197],
    [1150.39, 0.05, 0, 0],
  ];
  expected.forEach((row, i) => {
    const digits = [2, 9, 4, 3];
    row.forEach((x, j) => {
      expect(Number(cells[i][j + 1])).toBeCloseTo(x, digits[j]);
    });
  });
  expect(backtest.capacity).toBeCloseTo(50, 9);
}, 60_000);

const [STOCKS, DAYS, SIGMA] = [20, 120, 0.02];

/** Random walks with columns that know the return from each possible trade to the next, and one that knows nothing. */
function walks(): void {
  const random = new Random(11);
  const rows = Array.from({ length: STOCKS }, (_, stock) => {
    const closes = [10];
    for (let day = 1; day < DAYS + 2; day++) closes.push(closes[day - 1] * (1 + SIGMA * random.normal()));
    const opens = closes.map((close, day) => (closes[day - 1] ?? close) * (1 + 0.1 * SIGMA * random.normal()));
    const known = (prices: readonly number[], day: number) => (prices[day + 1] / prices[day] - 1) / SIGMA;
    return Array.from({ length: DAYS }, (_, day) => {
      const [open, close] = [opens[day], closes[day]];
      const oracles = [known(closes, day), known(opens, day + 1), known(closes, day + 1)].map((x) => x || 0);
      const range = [Math.max(open, close), Math.min(open, close)];
      return [dayOf(200 + day), `W${stock}`, open, ...range, close, 1000, ...oracles, random.normal()];
    });
  }).flat();
  write('walks.csv', [...PRICES, 'close1', 'open2', 'close2', 'noise'], rows);
}

test.each([
  ['close', 'close1', 0],
  ['next-open', 'open2', 1],
  ['next-close', 'close2', 1],
  ['next-close', 'noise', 1],
])(
  'what a forecast traded at the %s earns that is made from the column %s',
  async (trade, column, delay) => {
    walks();
    const data = ['--data', 'walks.csv', '--columns', `{signal: ${column}}`];
    const costs = '{buy: .01, sell: .01, minimum: 0}';
    const keys = `{preset: us, trade: ${trade}, top: 2, drop: 2, invested: .95, costs: ${costs}}`;
    const { backtest } = await evaluated(...data, '--backtest', keys);
    const { excess, excessAfterCosts, turnover } = backtest;
    expect(backtest).toMatchObject({ delay, executable: delay > 0 });
    // A hundredth of what is traded, 252 days a year.
    expect(excessAfterCosts.annualReturn - excess.annualReturn).toBeCloseTo(-0.01 * turnover * 252, 6);
    // The best two of 20 draws of N(0, σ²) have the mean 1.64 σ = 3.3 % a day, of which at least 95 % is held: 780 % a year.
    if (column !== 'noise') expect(excess.annualReturn).toBeGreaterThan(6);
    // Two stocks drawn blindly deviate by σ ∕ √2; the mean of 118 days, times 252, by .33: four of them.
    else expect(Math.abs(excess.annualReturn)).toBeLessThan(1.3);
  },
  60_000,
);

test('keys of the backtest: days of a year, weights, a limit, and more stocks than there are', async () => {
  walks();
  const keys = '{preset: china, top: 30, trade: close, limit: .5, days: 100, weights: score, benchmark: members}';
  const {
    backtest,
    notes,
    folder: out,
  } = await evaluated(...['--data', 'walks.csv', '--columns', '{signal: noise}', '--backtest', keys]);
  expect(backtest.settings).toMatchObject({ limit: 0.5, days: 100, weights: 'score', top: 30, drop: 1 });
  expect(notes).toEqual([{ kind: 'day with fewer stocks than the 30 to hold', count: DAYS, first: dayOf(200) }]);
  const rows = readFileSync(join(folder, out, 'backtest.csv'), 'utf8')
    .trim()
    .split('\n')
    .slice(1);
  const net = rows.map((row) => Number(row.split(',')[2]) - Number(row.split(',')[3]));
  const sums = net.map((_, i) => net.slice(0, i + 1).reduce((a, b) => a + b, 0));
  expect(backtest.portfolio.annualReturn).toBeCloseTo((100 * sums[DAYS - 1]) / DAYS, 9);
  // The deepest fall of the running sum below its highest point before.
  const falls = sums.map((sum, i) => sum - Math.max(...sums.slice(0, i + 1)));
  expect(backtest.portfolio.maxDrawdown).toBeCloseTo(Math.min(...falls), 9);
}, 60_000);
