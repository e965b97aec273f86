import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Random } from '../../src/random.js';
import { tcts } from './train-process.js';

const folder = mkdtempSync(join(tmpdir(), 'tcts-formats-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const [STOCKS, DAYS] = [8, 150];
const FIELDS = ['open', 'high', 'low', 'close', 'volume', 'signal'] as const;

/** A bar of a stock; all values are floats of 32 bits, the precision of qlib's files. */
interface Bar {
  readonly time: string;
  readonly symbol: string;
  readonly values: readonly number[];
}

/** Bars whose next move is half known from the column `signal`. */
function bars(times: readonly string[]): Bar[] {
  const random = new Random(9);
  return Array.from({ length: STOCKS }, (_, s) => {
    let [price, signal] = [10, random.normal()];
    return times.map((time) => {
      price *= 1 + 0.02 * (0.7 * signal + 0.7 * random.normal());
      signal = random.normal();
      return { time, symbol: `S${s}`, values: [price, price, price, price, 1000, signal].map(Math.fround) };
    });
  }).flat();
}

function asCsv(rows: readonly Bar[]): string {
  const lines = rows.map(({ time, symbol, values }) => [time, symbol, ...values].join(','));
  return [`date,symbol,${FIELDS.join(',')}`, ...lines, ''].join('\n');
}

function asParquet(rows: readonly Bar[]): Uint8Array {
  const columnData = [
    { name: 'date', data: rows.map(({ time }) => time), type: 'STRING' as const },
    { name: 'symbol', data: rows.map(({ symbol }) => symbol), type: 'STRING' as const },
    ...FIELDS.map((name, f) => ({ name, data: rows.map(({ values }) => values[f]), type: 'DOUBLE' as const })),
  ];
  return new Uint8Array(parquetWriteBuffer({ columnData }));
}

/** Each series is little-endian floats: the place of its first day in the calendar, then its values. */
function writeQlib(rows: readonly Bar[], times: readonly string[], home: string): void {
  const write = (name: string, data: string | Uint8Array): void => {
    mkdirSync(dirname(join(home, name)), { recursive: true });
    writeFileSync(join(home, name), data);
  };
  write('calendars/day.txt', `${times.join('\n')}\n`);
  const symbols = [...new Set(rows.map(({ symbol }) => symbol))];
  write('instruments/all.txt', symbols.map((symbol) => `${symbol}\t${times[0]}\t${times.at(-1)}\n`).join(''));
  for (const symbol of symbols) {
    const own = rows.filter((row) => row.symbol === symbol);
    for (const [f, field] of FIELDS.entries()) {
      const series = Float32Array.from([0, ...own.map(({ values }) => values[f])]);
      write(`features/${symbol.toLowerCase()}/${field}.day.bin`, new Uint8Array(series.buffer));
    }
  }
}

const days = Array.from({ length: DAYS }, (_, d) => new Date(Date.UTC(2015, 0, 5 + d)).toISOString().slice(0, 10));

const config = (data: string, [train, validation, test]: readonly string[][]) => `problem:
  kind: forecast
  data: ${data}
  split:
    train: [${train.join(', ')}]
    validation: [${validation.join(', ')}]
    test: [${test.join(', ')}]
  tasks: 1
  features: {window: 3, columns: [signal]}
  model: {name: mlp, hidden: [8]}
  batch: {size: 100}
  learningRate: 0.02
  validation: {measure: loss}
  backtest: {preset: us, top: 2, drop: 2}
strategy: {name: fixed}
training: {episodes: 2, steps: 30}
threads: 1
`;

const PARTS = [
  ['2015-01-12', '2015-03-31'],
  ['2015-04-01', '2015-04-30'],
  ['2015-05-01', '2015-06-03'],
].map((part) => part.map((day) => `'${day}'`));

const DATA = {
  csv: '{format: csv, path: prices.csv}',
  parquet: '{format: parquet, path: prices.parquet}',
  qlib: '{format: qlib, path: prices, market: all}',
};

beforeAll(() => {
  const rows = bars(days);
  writeFileSync(join(folder, 'prices.csv'), asCsv(rows));
  writeFileSync(join(folder, 'prices.parquet'), asParquet(rows));
  writeQlib(rows, days, join(folder, 'prices'));
});

it('factors in CSV, Parquet and qlib files give the same model, and each forecasts from the others', async () => {
  const forecasts: string[] = [];
  for (const [name, data] of Object.entries(DATA)) {
    writeFileSync(join(folder, `${name}.yaml`), config(data, PARTS));
    const trained = await tcts(folder, 'train', `${name}.yaml`, '--quiet', '--json');
    expect({ code: trained.code, stderr: trained.stderr }).toEqual({ code: 0, stderr: '' });
    // Half of the variance is known: the best correlation is 1 ∕ √2 = .71, of ranks about .68.
    expect(JSON.parse(trained.stdout).test.RankIC).toBeGreaterThan(0.5);
  }
  for (const name of Object.keys(DATA)) {
    for (const data of ['prices.csv', 'prices.parquet', 'prices']) {
      const flags = ['--data', data, '--from', '2015-05-25', '--out', 'forecasts.csv'];
      expect(await tcts(folder, 'forecast', `runs/${name}`, ...flags)).toMatchObject({ code: 0, stderr: '' });
      forecasts.push(readFileSync(join(folder, 'forecasts.csv'), 'utf8'));
    }
  }
  expect(forecasts[0].trim().split('\n')).toHaveLength(1 + 10 * STOCKS);
  expect(new Set(forecasts).size).toBe(1);
}, 120_000);

it('bars within the day are read, split by whole days and counted in a year', async () => {
  const hours = days.slice(0, 60).flatMap((day) => [10, 11, 12, 13].map((hour) => `${day} ${hour}:30`));
  writeFileSync(join(folder, 'hours.csv'), asCsv(bars(hours)));
  const parts = [
    ['2015-01-07', '2015-02-05'],
    ['2015-02-06', '2015-02-15'],
    ['2015-02-16', '2015-03-05'],
  ];
  const text = config(
    '{format: csv, path: hours.csv, intraday: true}',
    parts.map((part) => part.map((day) => `'${day}'`)),
  );
  writeFileSync(join(folder, 'hours.yaml'), text);
  expect(await tcts(folder, 'train', 'hours.yaml', '--quiet')).toMatchObject({ code: 0, stderr: '' });
  const { code, stdout, stderr } = await tcts(folder, 'evaluate', 'runs/hours', '--json');
  expect(code, stderr).toBe(0);
  const { scores, dates, bar, backtest } = JSON.parse(stdout);
  expect(scores.RankIC).toBeGreaterThan(0.5);
  // From the first bar of the first day to the last one of the last; the very last bar has no label. Four a day, all days.
  expect([dates, scores.days, bar]).toEqual([['2015-02-16T10:30', '2015-03-05T13:30'], 4 * 18 - 1, 'bar']);
  expect(backtest.settings.days / (4 * 365.25)).toBeCloseTo(1, 1);
  expect(await tcts(folder, 'forecast', 'runs/hours', '--out', 'hours-forecast.csv')).toMatchObject({ code: 0 });
  expect(readFileSync(join(folder, 'hours-forecast.csv'), 'utf8')).toMatch(/\n2015-03-05T13:30,S\d,/);
}, 120_000);
