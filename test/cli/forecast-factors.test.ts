import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Random } from '../../src/random.js';
import { temporaryFolder } from '../run/temporary.js';
import { tcts } from './train-process.js';

/** Weekly closes of some stocks, whose next move is half known from the column `signal`; no volume. */
function weeklyPrices(): string {
  const random = new Random(5);
  const rows = ['date,symbol,open,high,low,close,signal,noise'];
  for (let stock = 0; stock < 12; stock++) {
    let [price, signal] = [10, random.normal()];
    for (let week = 0; week < 180; week++) {
      const date = new Date(Date.UTC(2015, 0, 2 + 7 * week)).toISOString().slice(0, 10);
      price *= 1 + 0.02 * (0.7 * signal + 0.7 * random.normal());
      signal = random.normal();
      rows.push(`${date},S${stock},${price},${price},${price},${price},${signal},${random.normal()}`);
    }
  }
  return `${rows.join('\n')}\n`;
}

const CONFIG = `problem:
  kind: forecast
  data: {format: csv, path: weekly.csv, columns: {volume: null}}
  split:
    train: ['2015-01-02', '2016-12-31']
    validation: ['2017-01-01', '2017-08-31']
    test: ['2017-09-01', '2018-06-08']
  tasks: 1
  features: {kind: none, window: 1, columns: [noise, signal], rankColumns: true}
  model: {name: linear}
  batch: {size: 200}
  learningRate: 0.05
  backtest: {preset: us, top: 3, drop: 3, cash: 1000}
strategy: {name: fixed}
training: {episodes: 3, steps: 20}
threads: 1
`;

test("factors of one's own on weekly bars without volume, from training to the forecast", {
  timeout: 60_000,
}, async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'weekly.csv'), weeklyPrices());
  writeFileSync(join(folder, 'weekly.yaml'), CONFIG);
  const trained = await tcts(folder, 'train', 'weekly.yaml', '--quiet');
  expect({ code: trained.code, stderr: trained.stderr }).toEqual({ code: 0, stderr: '' });
  const { code, stdout, stderr } = await tcts(folder, 'evaluate', 'runs/weekly', '--json');
  expect(code, stderr).toBe(0);
  const { scores, backtest } = JSON.parse(stdout);
  // The signal is half of the variance: the best correlation is 1/√2 = .71, of ranks about .68.
  expect(scores.RankIC).toBeGreaterThan(0.55);
  // A bar a week is 52 a year; the best quarter of 12 stocks earns about 1.2 · .7 · 2 % a week before costs.
  expect(backtest.settings.days).toBe(52);
  expect(backtest.excess.annualReturn).toBeGreaterThan(0.4);
  const inWords = await tcts(folder, 'evaluate', 'runs/weekly');
  expect(inWords.stdout).toMatch(/bar 1 ahead[\s\S]*3 replaced a bar\), turnover [\d.]+ % a bar/);
  const config = CONFIG.replace(', columns: {volume: null}', '').replace('problem:', 'name: priced\nproblem:');
  writeFileSync(join(folder, 'priced.yaml'), config);
  const priced = await tcts(folder, 'train', 'priced.yaml', '--quiet');
  expect(priced.stderr).toMatch(/no column "volume" .*; columns: \{volume: null\} says that the data has none/);

  const forecast = ['forecast', 'runs/weekly', '--data', 'weekly.csv', '--out', 'last.csv'];
  expect((await tcts(folder, ...forecast)).code).toBe(0);
  const ranked = readFileSync(join(folder, 'last.csv'), 'utf8').trim().split('\n').slice(1);
  const [date] = ranked[0].split(',');
  const signals = new Map(
    weeklyPrices()
      .split('\n')
      .filter((row) => row.startsWith(date))
      .map((row) => [row.split(',')[1], Number(row.split(',')[6])]),
  );
  // Rank 1 has the largest signal, or nearly: the noise gets a small weight.
  const [best, worst] = [ranked[0], ranked[ranked.length - 1]].map((row) => signals.get(row.split(',')[1])!);
  expect(best).toBeGreaterThan(worst + 1);
});

test("qlib's Alpha158 is a set of features for every model", { timeout: 60_000 }, async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'alpha.yaml'), CONFIG);
  const set = [
    'problem.data={format: synthetic, stocks: 20, days: 200, strength: 0.6}',
    'problem.split={train: [2015-03-20, 2015-06-30], validation: [2015-07-01, 2015-08-15], test: [2015-08-17, 2015-09-30]}',
    'problem.features={kind: alpha158, window: 1, columns: []}',
    'problem.model={name: trees, rounds: 40, numLeaves: 8, learningRate: 0.1, lambdaL1: 0, lambdaL2: 1}',
    'training={episodes: 1, steps: 1}',
  ].flatMap((key) => ['--set', key]);
  const { code, stdout, stderr } = await tcts(folder, 'train', 'alpha.yaml', '--quiet', '--json', ...set);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(JSON.parse(stdout).test.RankIC).toBeGreaterThan(0.15);
  const none = (columns: string) => {
    const features = ['--set', `problem.features={kind: none, columns: [${columns}]}`];
    return tcts(folder, 'train', 'alpha.yaml', ...set.slice(0, 4), ...features, '--set', 'name=none', '--quiet');
  };
  expect((await none('momentum')).stderr).toMatch(/problem\.features\.columns: the data has no column "momentum"/);
  const refused = await none('');
  expect(refused.stderr).toMatch(
    /problem\.features\.columns: expected some columns, because there are no other features/,
  );
});
