import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { syntheticMarket, writeCsv } from '../../src/forecast/index.js';
import { temporaryFolder } from '../run/temporary.js';
import { startTcts, tcts } from './train-process.js';

const CONFIG = `problem:
  kind: forecast
  data: {format: synthetic, stocks: 60, days: 160, strength: 0.6}
  split:
    train: ['2015-01-20', '2015-04-30']
    validation: ['2015-05-01', '2015-06-15']
    test: ['2015-06-16', '2015-07-31']
  features: {window: 6}
  model: {name: gru, hidden: 6, layers: 1}
  chosen: add
  batch: {size: 100}
  learningRate: 0.01
strategy: {name: learned, hidden: [8], without: [sample]}
training: {episodes: 4, steps: 10}
`;

function folderWith(config = CONFIG): string {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'small.yaml'), config);
  return folder;
}

test('a forecaster is trained, evaluated and used', { timeout: 120_000 }, async () => {
  const folder = folderWith();
  const trained = await tcts(folder, 'train', 'small.yaml', '--quiet', '--json');
  expect({ code: trained.code, stderr: trained.stderr }).toEqual({ code: 0, stderr: '' });
  const { test: figures } = JSON.parse(trained.stdout);
  expect(Object.keys(figures)).toEqual(['RankIC', 'RankICIR', 'IC', 'ICIR', 'MSE', 'zMSE', 'loss']);
  expect(figures.RankIC).toBeGreaterThan(0.1);

  const evaluated = await tcts(folder, 'evaluate', 'runs/small', '--json');
  expect({ code: evaluated.code, stderr: evaluated.stderr }).toEqual({ code: 0, stderr: '' });
  const { scores, quintiles, backtest } = JSON.parse(evaluated.stdout);
  expect(scores.RankIC).toBeCloseTo(figures.RankIC, 9);
  expect(quintiles[0]).toBeGreaterThan(quintiles[4]);
  expect(backtest.portfolio).toMatchObject({ annualReturn: expect.any(Number), maxDrawdown: expect.any(Number) });

  const scored = await tcts(folder, 'score', 'forecast', 'runs/small/evaluation/test/predictions.csv', '--json');
  expect(JSON.parse(scored.stdout).RankIC).toBeCloseTo(figures.RankIC, 6);

  const text = await tcts(folder, 'evaluate', 'runs/small', '--split', 'validation');
  expect(text.stdout).toMatch(/^validation part of synthetic market, seed \d+, day 1 ahead: \d+ forecasts on \d+ days/);
  expect(text.stdout).toMatch(/excess after costs/);
  // Day 1 without a shift begins at the close that the forecasts are made from.
  expect(text.stdout).toMatch(/traded at the close of day t, where their label begins: .*\n.*cannot be executed/);
  expect(backtest).toMatchObject({ delay: 0, executable: false });

  // Prices of days that the run has never seen, in another format.
  writeCsv(
    syntheticMarket({ stocks: 60, days: 200, strength: 0.6 }),
    join(folder, 'prices.csv'),
    join(folder, 'members'),
  );
  const forecast = await tcts(folder, 'forecast', 'runs/small', '--data', 'prices.csv', '--out', 'predictions.csv');
  expect({ code: forecast.code, stderr: forecast.stderr }).toEqual({ code: 0, stderr: '' });
  expect(forecast.stdout).toMatch(/^\d+ stocks of 2015-10-09, day 1 ahead; highest: S\d\d/);
  const [head, ...rows] = readFileSync(join(folder, 'predictions.csv'), 'utf8').trim().split('\n');
  expect(head).toBe('date,instrument,prediction,rank');
  const predictions = rows.map((row) => Number(row.split(',')[2]));
  expect(predictions.length).toBeGreaterThan(50);
  expect(predictions).toEqual([...predictions].sort((a, b) => b - a));
});

test('threads are workers by default: as many, with the same results', { timeout: 120_000 }, async () => {
  // Each worker has its own dropout masks, so that another number of them shows in every figure.
  const folder = folderWith(
    CONFIG.replace('layers: 1', 'layers: 2, dropout: 0.2').replace('episodes: 4', 'episodes: 1'),
  );
  const results = new Map<string, unknown>();
  for (const keys of ['', 'workers=2', 'workers=1', 'threads=1']) {
    const set = ['name=run', keys].filter((key) => key !== '').flatMap((key) => ['--set', key]);
    const run = await tcts(
      folder,
      'train',
      'small.yaml',
      '--quiet',
      '--json',
      '--set',
      `out=runs${results.size}`,
      ...set,
    );
    expect({ code: run.code, stderr: run.stderr }).toEqual({ code: 0, stderr: '' });
    results.set(keys, { ...JSON.parse(run.stdout), folder: '' });
  }
  expect(results.get('')).toEqual(results.get('workers=2'));
  expect(results.get('')).not.toEqual(results.get('workers=1'));
  expect(results.get('threads=1')).toEqual(results.get('workers=1'));
});

test('a run that was killed ends as one that was not', { timeout: 120_000 }, async () => {
  const folder = folderWith(CONFIG.replace('episodes: 4', 'episodes: 40'));
  const saving = ['--set', 'saving.everySteps=7', '--set', 'logging.progressSeconds=0.05'];
  const whole = await tcts(folder, 'train', 'small.yaml', '--json', '--set', 'name=whole', ...saving);
  const { child, ended } = startTcts(folder, 'train', 'small.yaml', '--set', 'name=parts', ...saving);
  child.stderr.on('data', (text: Buffer) => {
    if (/step [2-9]\d\//.test(String(text))) child.kill('SIGKILL');
  });
  expect((await ended).signal).toBe('SIGKILL');
  const resumed = await tcts(folder, 'train', '--resume', 'runs/parts', '--json', '--quiet');
  const [expected, found] = [whole, resumed].map(({ stdout }) => JSON.parse(stdout));
  expect({ ...found, folder: '' }).toEqual({ ...expected, folder: '' });
  const best = (name: string) => readFileSync(join(folder, 'runs', name, 'metrics.jsonl'), 'utf8');
  expect(best('parts')).toBe(best('whole'));
});

test('boosted trees are trained by the same verb', { timeout: 120_000 }, async () => {
  const folder = folderWith();
  const model = 'problem.model={name: trees, rounds: 40, numLeaves: 8, learningRate: 0.1, lambdaL1: 0, lambdaL2: 1}';
  const set = [model, 'strategy.name=fixed', 'training.episodes=1', 'training.steps=1'].flatMap((key) => [
    '--set',
    key,
  ]);
  const trained = await tcts(folder, 'train', 'small.yaml', '--quiet', '--json', ...set);
  expect({ code: trained.code, stderr: trained.stderr }).toEqual({ code: 0, stderr: '' });
  const { test: figures } = JSON.parse(trained.stdout);
  expect(figures.RankIC).toBeGreaterThan(0.1);
  const evaluated = await tcts(folder, 'evaluate', 'runs/small', '--json');
  expect(JSON.parse(evaluated.stdout).scores.RankIC).toBeCloseTo(figures.RankIC, 9);
});

describe('bad input is one sentence', () => {
  test.each([
    [['--set', 'problem.main=4'], /problem\.main: 4 is not among the tasks 1, 2, 3/],
    [['--set', 'problem.data={format: qlib, path: absent}'], /absent.*cannot read it: no such file or folder/],
    [['--set', 'problem.data={format: csv, path: small.yaml}'], /small\.yaml/],
    [['--set', 'problem.split.test=[2018-01-01, 2018-02-01]'], /split\.test: there is no sample between/],
    [['--set', 'problem.tasks=[90]', '--set', 'problem.main=90'], /split\.train: there is no sample between/],
    [['--set', 'problem.model.name=gru2'], /problem\.model\.name: .*"gru"/],
    [['--set', 'problem.model.name=gat', '--set', 'problem.sharing=embedding'], /problem\.sharing: with gat/],
    [['--set', 'problem.warmStart=nowhere'], /nowhere: not a run folder/],
    [['--set', 'problem.data.days=1e8'], /problem\.data\.days: expected an integer from 2 to 100000, found 100000000/],
    [
      ['--set', 'problem.data.days=100000', '--set', 'problem.data.stocks=100000'],
      /days: 100000 stocks on 100000 days are too many/,
    ],
    [['--set', 'problem.tasks=[1,1]'], /problem\.tasks: expected each horizon once/],
    [['--set', 'problem.auxiliaryWeight=1e300'], /problem\.auxiliaryWeight: expected a number from 0 to 1000000/],
    [
      ['--set', 'problem.data={format: csv, path: prices.csv, maxMove: .inf}'],
      /problem\.data\.maxMove: expected a number above 0 and below 1 or null, found Infinity/,
    ],
    [
      ['--set', 'problem.features.window=100'],
      /problem\.features\.window: a window of 100 days is longer than the history: the training part ends on 2015-04-27, and the data begins 80 days before, on 2015-01-05/,
    ],
    // The workers' threads must not keep the process alive.
    [['--set', 'problem.warmStart=nowhere', '--set', 'workers=2'], /nowhere: not a run folder/],
  ])('%j', async (args, sentence) => {
    const { code, stdout, stderr } = await tcts(folderWith(), 'train', 'small.yaml', '--quiet', ...args);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(sentence);
    expect(stderr).not.toMatch(/ {4}at |internal error/);
  });

  test.each([
    [['evaluate', '.'], /not a run folder/],
    [['forecast', '.', '--out', 'x.csv'], /not a run folder/],
  ])('%j', async (args, sentence) => {
    const { code, stderr } = await tcts(folderWith(), ...args);
    expect(code).toBe(1);
    expect(stderr).toMatch(sentence);
  });
});

test('dates of another market are not taken for granted', async () => {
  const folder = folderWith(CONFIG.replace(/ {2}split:\n( {4}.*\n)+/, ''));
  const { code, stderr } = await tcts(folder, 'train', 'small.yaml', '--quiet');
  expect(code).toBe(1);
  expect(stderr).toMatch(/problem\.split: missing, expected /);
});

test('windows that begin before the data are said', { timeout: 60_000 }, async () => {
  const folder = folderWith();
  const set = ['--set', 'problem.features.window=20', '--strategy', 'fixed', '--model', 'linear'];
  const { code, stderr } = await tcts(folder, 'train', 'small.yaml', ...set);
  expect(code).toBe(0);
  // 2015-01-20 is the twelfth weekday from 2015-01-05 on; 2015-01-30, eight days later, is the twentieth.
  expect(stderr).toMatch(
    /data: 8 × day of the training part with fewer than the 19 days .* \(first: 2015-01-20 has 11\)/,
  );
});

test('a run whose moves are not clipped is resumed', { timeout: 60_000 }, async () => {
  const folder = folderWith();
  const market = syntheticMarket({ stocks: 60, days: 160, strength: 0.6 });
  writeCsv(market, join(folder, 'prices.csv'), join(folder, 'members'));
  const data = 'problem.data={format: csv, path: prices.csv, maxMove: null}';
  const train = ['train', 'small.yaml', '--quiet', '--strategy', 'fixed', '--model', 'linear', '--set', data];
  expect(await tcts(folder, ...train)).toMatchObject({ code: 0, stderr: '' });
  expect(readFileSync(join(folder, 'runs/small/config.yaml'), 'utf8')).toMatch(/maxMove: null/);
  expect(await tcts(folder, 'train', '--resume', 'runs/small', '--quiet')).toMatchObject({ code: 0, stderr: '' });
});

test('the keys that change most often have flags of their own', { timeout: 60_000 }, async () => {
  const folder = folderWith();
  const flags = ['--strategy', 'mtl', '--main', '2', '--tasks', '4', '--model', 'linear'];
  const { code, stderr } = await tcts(folder, 'train', 'small.yaml', '--quiet', '--json', ...flags);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const config = readFileSync(join(folder, 'runs/small/config.yaml'), 'utf8');
  expect(config).toMatch(/main: 2/);
  expect(config).toMatch(/tasks: 4/);
  expect(config).toMatch(/name: linear/);
  expect(config).toMatch(/name: mtl/);
  const data = JSON.parse(readFileSync(join(folder, 'runs/small/data.json'), 'utf8'));
  expect(data).toMatchObject({ horizons: [1, 2, 3, 4], main: 2, notes: [] });
});
