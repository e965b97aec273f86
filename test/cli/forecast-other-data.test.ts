import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { Random } from '../../src/random.js';
import { temporaryFolder } from '../forecast/panels.js';
import { tcts } from './train-process.js';

const folder = temporaryFolder();
const HEAD = 'date,symbol,open,high,low,close,volume,signal';

const CONFIG = `problem:
  kind: forecast
  data: {format: csv, path: prices.csv, index: SPX}
  split:
    train: ['2015-01-12', '2015-03-31']
    validation: ['2015-04-01', '2015-04-30']
    test: ['2015-05-01', '2015-06-01']
  tasks: 1
  features: {kind: none, window: 1, columns: [signal]}
  model: {name: linear}
  batch: {size: 100}
  learningRate: 0.05
  backtest: {preset: us, top: 2, drop: 2}
strategy: {name: fixed}
training: {episodes: 1, steps: 20}
threads: 1
`;

/** Stocks whose next move is half known, and an index that is traded, too, with a signal above all of theirs. */
beforeAll(async () => {
  const random = new Random(5);
  const stocks: string[] = [];
  for (let stock = 0; stock < 8; stock++) {
    let [price, signal] = [10, random.normal()];
    for (let day = 0; day < 150; day++) {
      const date = new Date(Date.UTC(2015, 0, 5 + day)).toISOString().slice(0, 10);
      price *= 1 + 0.02 * (0.7 * signal + 0.7 * random.normal());
      signal = random.normal();
      stocks.push(`${date},S${stock},${price},${price},${price},${price},1000,${signal}`);
    }
  }
  const dates = [...new Set(stocks.map((row) => row.slice(0, 10)))];
  const index = dates.map((date, i) => `${date},SPX,${[1, 1, 1, 1].map(() => 100 + (i % 3)).join(',')},1000,9`);
  const write = (name: string, rows: readonly string[]) =>
    writeFileSync(join(folder, name), [HEAD, ...rows, ''].join('\n'));
  write('prices.csv', [...stocks, ...index]);
  const isNew = (row: string) => row >= '2015-05-01';
  write('with-index.csv', [...stocks, ...index].filter(isNew));
  write('without-index.csv', stocks.filter(isNew));
  // A vendor that repeats a row, and lists the newest first.
  const messy = stocks.filter(isNew).reverse();
  write('messy.csv', [...messy, messy[0]]);
  writeFileSync(join(folder, 'own.yaml'), CONFIG);
  expect(await tcts(folder, 'train', 'own.yaml', '--quiet')).toMatchObject({ code: 0, stderr: '' });
}, 60_000);

async function forecast(...flags: string[]): Promise<string> {
  const { code, stderr } = await tcts(folder, 'forecast', 'runs/own', '--out', 'out.csv', ...flags);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return readFileSync(join(folder, 'out.csv'), 'utf8');
}

describe('the index of a run', () => {
  test('is the market of betas in other data too, and no stock to rank', async () => {
    const beta = ['--neutralise', '{beta: 20}'];
    const own = await forecast(...beta);
    expect(own).not.toMatch(/SPX/);
    expect(await forecast('--data', 'with-index.csv', ...beta)).toBe(own);
  }, 60_000);

  test('need not be in data to forecast or to evaluate; where that matters, it is said', async () => {
    expect(await forecast('--data', 'without-index.csv')).toBe(await forecast());
    const flags = ['--data', 'without-index.csv', '--json'];
    const { stdout, stderr } = await tcts(folder, 'evaluate', 'runs/own', ...flags);
    expect(stderr).toBe('');
    const { backtest, notes } = JSON.parse(stdout);
    expect(backtest.benchmark).toBe('equal-weight members');
    const kind = 'index of the run that the data do not have: the mean of all members takes its place';
    expect(notes).toEqual([{ kind, count: 1, first: 'SPX' }]);
  }, 60_000);
});

test('what is odd about the data of a forecast is said', async () => {
  const { code, stderr } = await tcts(folder, 'forecast', 'runs/own', '--data', 'messy.csv', '--out', 'out.csv');
  expect(code).toBe(0);
  expect(stderr).toMatch(/^tcts: warning: data: \d+ × row before an earlier date of its stock: sorted .*\n/);
  expect(stderr).toMatch(/^tcts: warning: data: 1 × duplicate row with the same values dropped .*\n$/m);
}, 60_000);

test.each([
  [['evaluate', 'runs/own', '--from', '01.05.2015'], '--from: "01.05.2015"'],
  [['forecast', 'runs/own', '--out', 'out.csv', '--from', '2015-05-01', '--to', '2015-5-9'], '--to: "2015-5-9"'],
])(
  '%j names no date, whatever it would sort like',
  async (args, found) => {
    const stderr = `tcts: ${found} is not a date, expected YYYY-MM-DD\n`;
    expect(await tcts(folder, ...args)).toMatchObject({ code: 1, stdout: '', stderr });
  },
  60_000,
);
