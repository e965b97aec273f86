import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Random } from '../../src/random.js';
import { tcts } from './train-process.js';

const folder = mkdtempSync(join(tmpdir(), 'tcts-new-user-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const CONFIG = `problem:
  kind: forecast
  data: {format: csv, path: prices.csv}
  split:
    train: ['2015-01-12', '2015-04-30']
    validation: ['2015-05-01', '2015-06-15']
    test: ['2015-06-16', '2015-07-31']
  tasks: 1
  features: {kind: none, window: 1, columns: [signal]}
  model: {name: linear}
  batch: {size: 100}
  learningRate: 0.05
  validation: {measure: IC}
  backtest: {preset: us, top: 3, drop: 3, costs: {buy: 0.002}}
strategy: {name: fixed}
training: {episodes: 2, steps: 20}
threads: 1
`;

const PRICES = 'problem.features={kind: ohlcv, window: 2, columns: []}';

/** Days of some stocks whose next move is half known from the column `signal`. */
beforeAll(async () => {
  const random = new Random(5);
  const rows = [];
  for (let stock = 0; stock < 9; stock++) {
    let [price, signal] = [10, random.normal()];
    for (let day = 0; day < 230; day++) {
      const date = new Date(Date.UTC(2015, 0, 5 + day)).toISOString().slice(0, 10);
      price *= 1 + 0.02 * (0.7 * signal + 0.7 * random.normal());
      signal = random.normal();
      const sector = ['steel', 'banks', 'tea'][stock % 3];
      rows.push(`${date},S${stock},${price},${price},${price},${price},1000,${signal},${sector}`);
    }
  }
  const write = (name: string, head: string, kept: readonly string[]) =>
    writeFileSync(join(folder, name), [head, ...kept, ''].join('\n'));
  write('prices.csv', 'date,symbol,open,high,low,close,volume,signal,sector', rows);
  // The same vendor, later, with other names.
  write(
    'new.csv',
    'date,ticker,open,high,low,close,volume,alpha,sector',
    rows.filter((row) => row >= '2015-07-20'),
  );
  writeFileSync(join(folder, 'own.yaml'), CONFIG);
  const { code, stdout, stderr } = await tcts(folder, 'train', 'own.yaml', '--quiet');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  // What picked the checkpoint, by its name: a correlation is no loss.
  expect(stdout).toMatch(/^best validation IC 0\.[4-9]\d*, at update \d+$/m);
}, 60_000);

it('columns of new data may have other names, those of factors too', async () => {
  const data = ['evaluate', 'runs/own', '--data', 'new.csv'];
  const found = await tcts(folder, ...data, '--columns', '{symbol: ticker}');
  expect(found.stderr).toMatch(/new\.csv:1: there is no column "signal" among date, ticker/);
  const wrong = await tcts(folder, ...data, '--columns', '{symbol: ticker, signl: alpha}');
  expect(wrong.stderr).toMatch(/columns\.signl: unknown key/);
  const { code, stdout, stderr } = await tcts(
    folder,
    ...data,
    '--columns',
    '{symbol: ticker, signal: alpha}',
    '--json',
  );
  expect(code, stderr).toBe(0);
  // Half of the variance is known: the best correlation is 1 ∕ √2.
  expect(JSON.parse(stdout).scores.IC).toBeGreaterThan(0.5);
}, 60_000);

it('a run with factors is compared with one without, and what is neutral does not take its place in a report', async () => {
  const prices = [PRICES, 'name=prices'];
  expect((await tcts(folder, 'train', 'own.yaml', '--quiet', ...prices.flatMap((one) => ['--set', one]))).code).toBe(0);
  for (const run of ['prices', 'own']) expect((await tcts(folder, 'evaluate', `runs/${run}`)).code).toBe(0);
  const compared = await tcts(folder, 'evaluate', 'runs/own', '--against', 'runs/prices', '--json');
  expect(compared.code, compared.stderr).toBe(0);
  const { RankIC } = JSON.parse(compared.stdout).comparison;
  expect(RankIC.mean).toBeGreaterThan(0.3);
  expect(RankIC.p).toBeLessThan(0.01);

  for (const map of ['{group: sector}', '{beta: 20}', '{group: sector, beta: 20}']) {
    const neutral = await tcts(folder, 'evaluate', 'runs/own', '--neutralise', map);
    expect(neutral.code, neutral.stderr).toBe(0);
  }
  expect((await tcts(folder, 'report', 'runs')).code).toBe(0);
  const report = readFileSync(join(folder, 'runs/report/report.md'), 'utf8');
  expect(report.match(/^\| linear .*\| Task-1 \| 3, 3 replaced \| t \|/gm)).toHaveLength(2);
  expect(report).not.toMatch(/evaluated on prices\.csv/);
}, 120_000);

it('other keys of a backtest are laid over those of the run, one by one', async () => {
  const { stdout } = await tcts(
    folder,
    'evaluate',
    'runs/own',
    '--backtest',
    '{costs: {minimum: 1}, top: 2}',
    '--json',
  );
  const { settings } = JSON.parse(stdout).backtest;
  // Bought as the run says, sold as its preset says.
  expect(settings).toMatchObject({ top: 2, drop: 3, costs: { buy: 0.002, sell: 0.0005, minimum: 1 } });
}, 60_000);

it('a backtest against nothing has no excess over it', async () => {
  const { stdout } = await tcts(folder, 'evaluate', 'runs/own', '--backtest', '{benchmark: none}');
  expect(stdout).toMatch(/^before costs .*\nafter costs .*$/m);
  expect(stdout).not.toMatch(/NaN|excess|nothing/);
}, 60_000);

it('trees whose penalties leave no split say so, quiet or not', async () => {
  const set = [PRICES, 'problem.model={name: trees, rounds: 3}', 'name=trees'].flatMap((one) => ['--set', one]);
  const { code, stderr } = await tcts(folder, 'train', 'own.yaml', '--quiet', ...set);
  expect(code).toBe(0);
  expect(stderr).toMatch(/^no tree has a split, .*lambdaL1 205\.7 and lambdaL2 581 of problem\.model/m);
  const free = ['lambdaL1=0', 'lambdaL2=1'].flatMap((one) => ['--set', `problem.model.${one}`]);
  const grown = await tcts(folder, 'train', 'own.yaml', '--quiet', ...set, ...free, '--set', 'name=free');
  expect({ code: grown.code, stderr: grown.stderr }).toEqual({ code: 0, stderr: '' });
}, 60_000);

it('two seeds forecast the mean of the ranks of their members, with the spread beside it', async () => {
  const trained = await tcts(folder, 'train', 'own.yaml', '--quiet', '--set', 'problem.seeds=2', '--set', 'name=seeds');
  expect({ code: trained.code, stderr: trained.stderr }).toEqual({ code: 0, stderr: '' });
  const forecast = async (run: string): Promise<string[][]> => {
    const { code, stderr } = await tcts(folder, 'forecast', run, '--date', '2015-07-31', '--out', 'day.csv');
    expect(code, stderr).toBe(0);
    const [head, ...lines] = readFileSync(join(folder, 'day.csv'), 'utf8').trim().split('\n');
    expect(head).toMatch(/^date,instrument,prediction,rank(,spread)?$/);
    return lines.map((line) => line.split(',')).sort(([, a], [, b]) => (a < b ? -1 : 1));
  };
  const members = [await forecast('runs/seeds/members/seed=2'), await forecast('runs/seeds/members/seed=3')];
  const whole = await forecast('runs/seeds');
  expect(whole).toHaveLength(9);
  for (const [i, [, , prediction, , spread]] of whole.entries()) {
    // The best of 9 has rank 1, the worst 1 ∕ 9; two values lie |a − b| ∕ √2 around their mean.
    const [a, b] = members.map((rows) => (10 - Number(rows[i][3])) / 9);
    expect(Number(prediction)).toBeCloseTo((a + b) / 2, 6);
    expect(Number(spread)).toBeCloseTo(Math.abs(a - b) / Math.SQRT2, 6);
  }
}, 60_000);
