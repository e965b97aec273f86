import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parquetMetadata, parquetReadObjects } from 'hyparquet';
import { beforeAll, describe, expect, test } from 'vitest';
import { syntheticMarket, writeCsv } from '../../src/forecast/index.js';
import { temporaryFolder } from '../forecast/panels.js';
import { tcts } from './train-process.js';

const MARKET = { stocks: 30, strength: 0.6 };

const CONFIG = `problem:
  kind: forecast
  data: {format: synthetic, stocks: 30, days: 160, strength: 0.6}
  split:
    train: ['2015-01-20', '2015-04-30']
    validation: ['2015-05-01', '2015-06-15']
    test: ['2015-06-16', '2015-07-31']
  features: {window: 6}
  model: {name: gru, hidden: 6, layers: 1}
  loss: ic
  labels: {shift: 1}
  validation: {measure: RankIC}
  batch: {days: 4}
  learningRate: 0.01
  backtest: {preset: us, top: 5, drop: 2, trade: next-open}
strategy: {name: fixed}
training: {episodes: 3, steps: 10}
threads: 1
`;

describe('from prices to a decision', () => {
  const folder = temporaryFolder();
  beforeAll(async () => {
    writeFileSync(join(folder, 'us.yaml'), CONFIG);
    const { code, stderr } = await tcts(folder, 'train', 'us.yaml', '--quiet');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    // Days that the run has never seen, from a vendor with other names.
    const file = join(folder, 'new.csv');
    writeCsv(syntheticMarket({ ...MARKET, days: 220, seed: 2 }), file, join(folder, 'members'));
    const [, ...rows] = readFileSync(file, 'utf8').split('\n');
    const late = rows.filter((row) => row >= '2015-08-10');
    writeFileSync(file, ['date,ticker,open,high,low,close,volume', ...late].join('\n'));
  }, 60_000);

  test('the loss is 1 − IC, the measure of the best checkpoint is recorded, and the backtest is that of the file', {
    timeout: 60_000,
  }, async () => {
    expect(readFileSync(join(folder, 'runs/us/config.yaml'), 'utf8')).toMatch(/measure: RankIC/);
    const { best, test: figures } = JSON.parse(readFileSync(join(folder, 'runs/us/result.json'), 'utf8'));
    expect(best.performance).toBeGreaterThan(0.1); // a correlation, not minus a loss
    expect(Math.abs(figures.loss - (1 - figures.IC))).toBeLessThan(0.1); // of ranks, and of returns
    const { stdout } = await tcts(folder, 'evaluate', 'runs/us');
    expect(stdout).toMatch(/backtest \(top 5, 2 replaced a day\), turnover [\d.]+ % a day, 9[\d.]+ % invested/);
    expect(stdout).toMatch(/forecasts of day t are traded at the open of day t \+ 1:/);
    const { backtest } = JSON.parse(readFileSync(join(folder, 'runs/us/evaluation/test/scores.json'), 'utf8'));
    expect(backtest).toMatchObject({ delay: 1, price: 'open', executable: true });
    expect(backtest.settings).toMatchObject({
      costs: { buy: 0.0005, sell: 0.0005, minimum: 0 },
      limit: null,
      days: 252,
    });
    const [head] = readFileSync(join(folder, 'runs/us/evaluation/test/backtest.csv'), 'utf8').split('\n');
    expect(head).toBe('date,value,return,cost,turnover,benchmark,exposure');
  });

  test('a run is evaluated on new dates, with columns of other names and another backtest', {
    timeout: 60_000,
  }, async () => {
    const data = ['--data', 'new.csv'];
    const refused = await tcts(folder, 'evaluate', 'runs/us', ...data);
    expect(refused.stderr).toMatch(/new\.csv:1: there is no column "symbol"/);
    const columns = ['--columns', '{symbol: ticker}'];
    const other = ['--backtest', '{longShort: true, top: 3}', '--predictions', 'new.parquet'];
    const { code, stdout, stderr } = await tcts(folder, 'evaluate', 'runs/us', ...data, ...columns, ...other, '--json');
    expect(code, stderr).toBe(0);
    const { split, dates, scores, backtest, folder: out } = JSON.parse(stdout);
    expect([split, dates[0]]).toEqual(['new', '2015-08-10']);
    expect(scores.RankIC).toBeGreaterThan(0.05);
    expect(backtest.settings).toMatchObject({ longShort: true, top: 3, drop: 2, preset: 'us' });
    expect(backtest.exposure).toBeGreaterThan(1.8);
    expect(out).toMatch(/new-on-new-csv-/);

    const rows = await parquetReadObjects({ file: bufferOf(join(folder, 'new.parquet')) });
    const csv = readFileSync(join(folder, out, 'predictions.csv'), 'utf8')
      .trim()
      .split('\n');
    expect(rows).toHaveLength(csv.length - 1);
    const [date, instrument, prediction] = csv[1].split(',');
    expect(rows[0]).toMatchObject({ date: new Date(`${date}T00:00Z`), instrument, prediction: Number(prediction) });
    expect(rows.at(-1)!.label).toBeNull();
    // pandas joins times with its own if they have no zone, as its own have none.
    const { schema } = parquetMetadata(bufferOf(join(folder, 'new.parquet')));
    expect(schema[1]!.logical_type).toEqual({ type: 'TIMESTAMP', isAdjustedToUTC: false, unit: 'MILLIS' });

    const from = await tcts(folder, 'evaluate', 'runs/us', '--from', '2015-02-02', '--to', '2015-02-27', '--json');
    const some = JSON.parse(from.stdout);
    expect(some.dates).toEqual(['2015-02-02', '2015-02-27']);
    expect(some.notes).toContainEqual({ kind: 'day of the training part', count: 20, first: '2015-02-02' });
  });

  test('many days are forecast at once, and each as if it were the last', { timeout: 60_000 }, async () => {
    const run = ['forecast', 'runs/us', '--data', 'new.csv', '--columns', '{symbol: ticker}'];
    const many = await tcts(
      folder,
      ...run,
      '--from',
      '2015-10-01',
      '--to',
      '2015-10-02',
      '--out',
      'many.csv',
      '--json',
    );
    expect(many.code, many.stderr).toBe(0);
    expect(JSON.parse(many.stdout)).toMatchObject({ date: '2015-10-02', days: 2, horizon: 1 });
    const lines = readFileSync(join(folder, 'many.csv'), 'utf8').trim().split('\n');
    expect(lines[0]).toBe('date,instrument,prediction,rank');
    await tcts(folder, ...run, '--date', '2015-10-01', '--out', 'one.parquet');
    const one = await parquetReadObjects({ file: bufferOf(join(folder, 'one.parquet')) });
    const first = lines.filter((line) => line.startsWith('2015-10-01')).map((line) => line.split(','));
    expect(one.map(({ instrument, rank }) => [instrument, rank])).toEqual(
      first.map(([, instrument, , rank]) => [instrument, Number(rank)]),
    );
    one.forEach((row, i) => {
      expect(row.prediction).toBeCloseTo(Number(first[i][2]), 5);
    });
    const wrong = await tcts(folder, ...run, '--out', 'x.txt');
    expect(wrong.stderr).toMatch(/x\.txt: the name does not show the format: expected \*\.csv or \*\.parquet/);
    expect(existsSync(join(folder, 'x.txt'))).toBe(false);
  });
});

function bufferOf(path: string): ArrayBuffer {
  const { buffer, byteOffset, byteLength } = readFileSync(path);
  return buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
}
