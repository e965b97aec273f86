import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { syntheticMarket } from '../../src/forecast/index.js';
import { tcts } from './train-process.js';

const folder = mkdtempSync(join(tmpdir(), 'tcts-neutral-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SECTORS = ['steel', 'banks', 'tea'];
const sectorOf = (symbol: string) => SECTORS[symbol.charCodeAt(symbol.length - 1) % 3]!;

/** Daily prices with the sector of each stock, and a run of trees on them. */
beforeAll(async () => {
  const { calendar, symbols, fields, values } = syntheticMarket({ stocks: 20, days: 120, strength: 0.6 });
  const lines = calendar.flatMap((date, day) =>
    symbols.map((symbol, stock) => {
      const at = (day * symbols.length + stock) * fields.length;
      const cells = [...values.subarray(at, at + fields.length)].map((x) => (Number.isNaN(x) ? '' : x));
      return `${date},${symbol},${cells.join(',')},${sectorOf(symbol)}`;
    }),
  );
  writeFileSync(join(folder, 'prices.csv'), [`date,symbol,${fields.join(',')},sector`, ...lines, ''].join('\n'));
  const [train, validation, test] = [
    [10, 70],
    [71, 95],
    [96, 119],
  ].map(([first, last]) => [calendar[first!], calendar[last!]]);
  const config = {
    problem: {
      kind: 'forecast',
      data: { format: 'csv', path: 'prices.csv' },
      split: { train, validation, test },
      features: { window: 5 },
      backtest: { top: 5, drop: 2 },
      model: { name: 'trees', rounds: 5, numLeaves: 4 },
    },
    strategy: { name: 'mtl' },
    training: { episodes: 4, steps: 3 },
  };
  writeFileSync(join(folder, 'neutral.yaml'), JSON.stringify(config));
  const trained = await tcts(folder, 'train', 'neutral.yaml', '--json');
  // One ensemble, although twelve updates were asked for.
  expect(JSON.parse(trained.stdout), trained.stderr).toMatchObject({ updates: 1 });
}, 60_000);

function rowsOf(file: string): { date: string; instrument: string; prediction: number }[] {
  const [, ...lines] = readFileSync(file, 'utf8').trimEnd().split('\n');
  return lines.map((line) => {
    const [date, instrument, prediction] = line.split(',');
    return { date: date!, instrument: instrument!, prediction: Number(prediction) };
  });
}

/** Largest absolute sum of the predictions of a sector on a day. */
function largestSum(rows: ReturnType<typeof rowsOf>): number {
  const sums = new Map<string, number>();
  for (const { date, instrument, prediction } of rows) {
    const key = `${date} ${sectorOf(instrument)}`;
    sums.set(key, (sums.get(key) ?? 0) + prediction);
  }
  return Math.max(...[...sums.values()].map(Math.abs));
}

it('evaluate and forecast take sectors out of the forecasts, and leave what was evaluated before', async () => {
  const plain = await tcts(folder, 'evaluate', 'runs/neutral', '--json');
  expect(plain.code, plain.stderr).toBe(0);
  const neutral = await tcts(folder, 'evaluate', 'runs/neutral', '--neutralise', '{group: sector, beta: 20}');
  expect(neutral.stdout).toContain('without the mean of each sector and what the beta of 20 days explains, day by day');
  expect(neutral.stdout).toMatch(/capacity [\d.]+ (million|billion)/);
  const evaluations = join(folder, 'runs', 'neutral', 'evaluation');
  expect(largestSum(rowsOf(join(evaluations, 'test', 'predictions.csv')))).toBeGreaterThan(0.01);
  expect(largestSum(rowsOf(join(evaluations, 'test-neutral-sector-beta-20', 'predictions.csv')))).toBeLessThan(1e-5);

  const flags = ['--from', '2015-06-01', '--neutralise', '{group: sector}', '--out', 'neutral.csv'];
  expect(await tcts(folder, 'forecast', 'runs/neutral', ...flags)).toMatchObject({ code: 0, stderr: '' });
  expect(largestSum(rowsOf(join(folder, 'neutral.csv')))).toBeLessThan(1e-5);
}, 60_000);

it('a group that the data does not have is one sentence', async () => {
  const failed = await tcts(folder, 'evaluate', 'runs/neutral', '--neutralise', '{group: region}');
  expect(failed).toMatchObject({ code: 1, stdout: '' });
  expect(failed.stderr).toMatch(/^tcts: prices.csv:1: there is no column "region" among date, symbol, .*sector\n$/);
  const empty = await tcts(folder, 'evaluate', 'runs/neutral', '--neutralise', '{}');
  expect(empty.stderr).toBe('tcts: --neutralise: expected group, beta or both\n');
  const price = await tcts(folder, 'evaluate', 'runs/neutral', '--neutralise', '{group: close}');
  expect(price.stderr).toBe('tcts: problem.neutralise.group: "close" is a column of prices already\n');
}, 60_000);

it('what a run takes out by itself is left in on demand', async () => {
  // Without the penalties, which leave no split: forecasts that are all the same would be neutral anyway.
  const own = readFileSync(join(folder, 'neutral.yaml'), 'utf8')
    .replace('"kind"', '"neutralise":{"group":"sector"},"kind"')
    .replace('"numLeaves":4', '"numLeaves":4,"lambdaL1":0,"lambdaL2":1');
  writeFileSync(join(folder, 'always.yaml'), own);
  expect(await tcts(folder, 'train', 'always.yaml', '--quiet')).toMatchObject({ code: 0, stderr: '' });
  for (const flags of [[], ['--neutralise', 'null']]) {
    expect(await tcts(folder, 'evaluate', 'runs/always', ...flags)).toMatchObject({ code: 0, stderr: '' });
  }
  const of = (name: string) => rowsOf(join(folder, 'runs', 'always', 'evaluation', name, 'predictions.csv'));
  const highest = (rows: ReturnType<typeof rowsOf>) => Math.max(...rows.map(({ prediction }) => prediction));
  expect(largestSum(of('test'))).toBeLessThan(1e-5);
  expect(largestSum(of('test-plain'))).toBeGreaterThan(0.01);
  for (const name of ['test', 'test-plain']) expect(highest(of(name))).toBeGreaterThan(0.01);
}, 60_000);

it('what was kept of the data is never used when it is damaged', async () => {
  const cache = join(folder, 'runs', 'neutral', 'data.cache');
  const bytes = readFileSync(cache);
  const forecast = async (out: string) => {
    const { code, stderr } = await tcts(folder, 'forecast', 'runs/neutral', '--out', out);
    expect(code, stderr).toBe(0);
    return readFileSync(join(folder, out), 'utf8');
  };
  const whole = await forecast('whole.csv');
  bytes[bytes.length - 100]! ^= 1;
  writeFileSync(cache, bytes);
  expect(await forecast('damaged.csv')).toBe(whole);
  expect(readFileSync(cache).equals(bytes)).toBe(false);
}, 60_000);

it('score forecast takes columns of its file out', async () => {
  // Within each sector the order is right, and between them it is wrong.
  const rows = ['a,1,2,x', 'b,2,3,x', 'c,11,0,y', 'd,12,1,y'].map((row) => `2020-01-01,${row}`);
  writeFileSync(join(folder, 'scored.csv'), ['date,instrument,prediction,label,sector', ...rows, ''].join('\n'));
  const score = async (...flags: string[]) =>
    JSON.parse((await tcts(folder, 'score', 'forecast', 'scored.csv', '--json', ...flags)).stdout) as {
      RankIC: number;
    };
  expect((await score()).RankIC).toBeCloseTo(-0.6, 9); // ranks 1 2 3 4 against 3 4 1 2: 1 − 6 · 16 ∕ 60
  // Neutral −.5 .5 −.5 .5, tied ranks 1.5 3.5 1.5 3.5 against 3 4 1 2: covariance 2 over √(4 · 5).
  expect((await score('--neutralise', '{group: sector}')).RankIC).toBeCloseTo(2 / Math.sqrt(20), 9);
}, 60_000);
