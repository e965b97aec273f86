import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { clean } from '../../src/forecast/data/clean.js';
import { gatherFeatures } from '../../src/forecast/data/features.js';
import { labelTable } from '../../src/forecast/data/labels.js';
import { type PricePanel, samplesBetween } from '../../src/forecast/data/panel.js';
import { readCsv } from '../../src/forecast/formats/csv.js';
import { Notes } from '../../src/forecast/formats/format.js';
import { pearson } from '../../src/metrics/index.js';
import { dates, temporaryFolder, writeFiles } from './panels.js';
import { quotedWalks } from './quoted-walks.js';

const home = temporaryFolder();

describe('an adjusted close', () => {
  const read = (rows: string, over = {}) => {
    const folder = writeFiles(home, { 'p.csv': `date,symbol,open,high,low,close,volume,adj\n${rows}` });
    return readCsv({ path: join(folder, 'p.csv'), columns: { adjusted: 'adj' }, ...over });
  };

  it('rescales the prices of its day, and the volume inversely', async () => {
    const { panel } = await read('2020-01-02,A,10,12,9,10,100,5\n2020-01-03,A,8,8,8,8,50,8\n');
    // Half the price, twice the shares: the money traded is the same.
    expect([...panel.values]).toEqual([5, 6, 4.5, 5, 200, 8, 8, 8, 8, 50]);
  });

  it('that is missing makes the day one without trade, and is counted', async () => {
    const { panel, notes } = await read(
      '2020-01-02,A,10,12,9,10,100,\n2020-01-03,A,8,8,8,8,50,8\n2020-01-03,B,1,1,1,1,1,1\n',
    );
    expect(panel.calendar).toEqual(['2020-01-03']);
    expect(notes.count('row without an adjusted close taken as a suspension')).toBe(1);
  });

  it('of zero or less is refused, or a day without trade if asked', async () => {
    const rows = '2020-01-02,A,10,12,9,10,100,-1\n2020-01-03,A,8,8,8,8,50,8\n';
    await expect(read(rows)).rejects.toThrow(/p\.csv:2: adjusted of A on 2020-01-02 is -1, expected more than zero/);
    expect((await read(rows, { nonPositive: 'missing' })).panel.calendar).toEqual(['2020-01-03']);
  });

  it('that the file does not have is refused', async () => {
    await expect(read('', { columns: { adjusted: 'adjClose' } })).rejects.toThrow(
      'there is no column "adjClose" for adjusted among',
    );
  });
});

const STOCKS = 100;
const DAYS = 300;

/** Mean daily correlation of open / close, as the model sees it, with the return of the next day. */
function informationInOpen(panel: PricePanel): number {
  const samples = samplesBetween(panel, 0, DAYS - 2);
  const labels = labelTable(panel, samples, { kind: 'daily', horizons: [1], transform: 'raw' });
  const x = new Float32Array(samples.length * 5);
  gatherFeatures(panel, { kind: 'ohlcv', window: 1 }, samples, Int32Array.from(samples.day.keys()), x, 'flat');
  const days = samples.dayStarts.length - 1;
  let sum = 0;
  for (let d = 0; d < days; d++) {
    const places = Array.from({ length: STOCKS }, (_, i) => samples.dayStarts[d]! + i);
    sum += pearson(
      places.map((i) => x[i * 5]!),
      places.map((i) => labels[i]!),
    );
  }
  return sum / days;
}

describe('random walks with splits and dividends', () => {
  /** A correlation over 100 stocks deviates by .1 from zero, its mean over 299 days by .1 / √299 = .006. */
  const DEVIATION = 0.1 / Math.sqrt(DAYS - 1);
  const path = join(writeFiles(home, { 'prices.csv': quotedWalks(STOCKS, dates(DAYS)) }), 'prices.csv');

  it('give nothing away to a model when they are read as the documentation says', async () => {
    const docs = readFileSync(join(import.meta.dirname, '../../docs/forecasting.md'), 'utf8');
    const { columns } = parse(/columns: \{.*\}/.exec(docs)![0]);
    expect(columns).toEqual({ symbol: 'ticker', adjusted: 'adj_close' });
    const { panel, notes } = await readCsv({ path, columns });
    expect(notes.summary()).toEqual([]);
    expect(Math.abs(informationInOpen(panel))).toBeLessThan(2 * DEVIATION);
    // A split or a dividend is no move: with steps of 2 %, none is above 12 %.
    const labels = labelTable(panel, samplesBetween(panel, 0, DAYS - 2), {
      kind: 'daily',
      horizons: [1],
      transform: 'raw',
    });
    expect(Math.max(...labels.map(Math.abs))).toBeLessThan(0.12);
  });

  it('give the future away when the close alone is adjusted, which is refused', async () => {
    const columns = { symbol: 'ticker', close: 'adj_close' };
    await expect(readCsv({ path, columns })).rejects.toThrow(/some prices seem to be adjusted/);

    const { panel: adjusted } = await readCsv({ path, columns: { symbol: 'ticker', adjusted: 'adj_close' } });
    const { panel: quoted } = await readCsv({ path, columns: { symbol: 'ticker' } });
    const mixed = { ...adjusted, values: quoted.values.map((x, i) => (i % 5 === 3 ? adjusted.values[i]! : x)) };
    expect(informationInOpen(mixed)).toBeGreaterThan(5 * DEVIATION);
    expect(() => clean(mixed, null, new Notes())).toThrow(/some prices seem to be adjusted/);
  });
});
