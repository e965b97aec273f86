import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { type ColumnSource, parquetWriteBuffer } from 'hyparquet-writer';
import { describe, expect, it } from 'vitest';
import { InputError } from '../../src/errors.js';
import { type PricePanel, valueAt } from '../../src/forecast/data/panel.js';
import { readPanel } from '../../src/forecast/formats/index.js';
import { readParquet } from '../../src/forecast/formats/parquet.js';
import { temporaryFolder } from './panels.js';

const home = temporaryFolder();
let files = 0;

function file(bytes: Uint8Array): string {
  const path = join(home, `${files++}.parquet`);
  writeFileSync(path, bytes);
  return path;
}

/** Two days of A, one of B, with some columns replaced, and removed where undefined. */
function table(changes: Record<string, Omit<ColumnSource, 'name'> | undefined> = {}): Uint8Array {
  const price: Omit<ColumnSource, 'name'> = { data: [10, 11, 5], type: 'DOUBLE' };
  const columns: Record<string, Omit<ColumnSource, 'name'> | undefined> = {
    date: { data: ['2020-01-01', '2020-01-02', '2020-01-02'], type: 'STRING' },
    symbol: { data: ['A', 'A', 'B'], type: 'STRING' },
    open: price,
    high: price,
    low: price,
    close: price,
    volume: { data: [100n, 200n, 300n], type: 'INT64' },
    ...changes,
  };
  const columnData = Object.entries(columns).flatMap(([name, column]) =>
    column === undefined ? [] : [{ name, ...column }],
  );
  return new Uint8Array(parquetWriteBuffer({ columnData }));
}

describe('a Parquet file', () => {
  it('gives the panel of its rows', async () => {
    const { panel } = await readPanel({ path: file(table()) });
    expect(panel.calendar).toEqual(['2020-01-01', '2020-01-02']);
    expect(panel.symbols).toEqual(['A', 'B']);
    expect(valueAt(panel, 1, 0, 'close')).toBe(11);
    expect(valueAt(panel, 1, 1, 'volume')).toBe(300);
    expect(valueAt(panel, 0, 1, 'close')).toBeNaN();
  });

  it('may hold an adjusted close, which rescales its day', async () => {
    const path = file(table({ adj: { data: [5, 11, 5], type: 'DOUBLE' } }));
    const { panel } = await readParquet({ path, columns: { adjusted: 'adj' } });
    // Half the price, twice the shares.
    expect([valueAt(panel, 0, 0, 'open'), valueAt(panel, 0, 0, 'volume')]).toEqual([5, 200]);
    expect([valueAt(panel, 1, 0, 'open'), valueAt(panel, 1, 0, 'volume')]).toEqual([11, 200]);
  });

  it('may hold dates as timestamps, floats, nulls, and numbers for symbols', async () => {
    const days = ['2020-01-01', '2020-01-02', '2020-01-02'].map((date) => new Date(`${date}T00:00:00Z`));
    const path = file(
      table({
        date: { data: days, type: 'TIMESTAMP' },
        symbol: { data: [600000, 600000, 600001], type: 'INT32' },
        open: { data: [10.5, null, 5], type: 'FLOAT' },
      }),
    );
    const { panel } = await readParquet({ path });
    expect(panel.symbols).toEqual(['600000', '600001']);
    expect(panel.calendar).toEqual(['2020-01-01', '2020-01-02']);
    expect(valueAt(panel, 0, 0, 'open')).toBe(10.5);
    expect(valueAt(panel, 1, 0, 'open')).toBeNaN();
  });

  it('compressed in a way that cannot be undone is one sentence', async () => {
    const columns = ['date', 'symbol', 'open', 'high', 'low', 'close', 'volume'];
    const columnData = columns.map((name, i) => ({ name, data: [['2020-01-01', 'A'][i] ?? 2] }));
    const compressors = { LZ4_RAW: (bytes: Uint8Array) => bytes };
    const bytes = new Uint8Array(parquetWriteBuffer({ columnData, codec: 'LZ4_RAW', compressors }));
    await expect(readParquet({ path: file(bytes) })).rejects.toThrow(
      '.parquet: not a readable Parquet file: it is compressed with lz4, expected snappy, gzip, brotli or no compression',
    );
  });

  it('may be compressed with gzip', async () => {
    const columnData = ['date', 'symbol', 'open', 'high', 'low', 'close', 'volume'].map((name, i) => ({
      name,
      data: [['2020-01-01', 'A'][i] ?? 2],
    }));
    const compressors = { GZIP: (bytes: Uint8Array) => new Uint8Array(gzipSync(bytes)) };
    const bytes = new Uint8Array(parquetWriteBuffer({ columnData, codec: 'GZIP', compressors }));
    expect(valueAt((await readParquet({ path: file(bytes) })).panel, 0, 0, 'close')).toBe(2);
  });

  it.each<[string, Record<string, Omit<ColumnSource, 'name'> | undefined>, RegExp]>([
    ['a missing column', { low: undefined }, /there is no column "low" among date, symbol, open, high, close, volume/],
    ['text in a number', { low: { data: ['1', 'x', '2'] } }, /parquet:1: low: "1" is not a number/],
    ['a date that is none', { date: { data: ['2020-01-01', 'x', '2020-01-02'] } }, /parquet:2: "x" is not a date/],
    ['no date', { date: { data: ['2020-01-01', null, '2020-01-02'] } }, /parquet:2: date: no value is not a date/],
    [
      'a time of the day',
      { date: { data: [new Date('2020-01-01T09:30:00Z'), null, null] } },
      /parquet:1: "2020-01-01T09:30:00\.000Z" is not/,
    ],
    [
      'a date twice, with other values',
      { symbol: { data: ['A', 'B', 'B'] } },
      /parquet:3: B on 2020-01-02 has different values than in line 2/,
    ],
    ['a price of zero', { close: { data: [10, 0, 5] } }, /parquet:2: close of A on 2020-01-02 is 0/],
  ])('is refused with %s', async (_, changes, message) => {
    const reading = readParquet({ path: file(table(changes)) });
    await expect(reading).rejects.toThrow(message);
    await expect(reading).rejects.toBeInstanceOf(InputError);
  });

  it('is refused when it is cut off anywhere', async () => {
    const whole = table();
    for (let length = 0; length < whole.length; length += 43) {
      await expect(readParquet({ path: file(whole.subarray(0, length)) })).rejects.toBeInstanceOf(InputError);
    }
  });

  it('answers damaged bytes with a panel of sane values or an InputError', async () => {
    const whole = table();
    const damage = fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(damage, async (places) => {
        const bytes = whole.slice();
        for (const [at, byte] of places) bytes[at] = byte;
        let panel: PricePanel;
        try {
          ({ panel } = await readParquet({ path: file(bytes) }, 1500));
        } catch (error) {
          expect(error).toBeInstanceOf(InputError);
          return;
        }
        expect(panel.calendar).toEqual([...new Set(panel.calendar)].sort());
        expect(panel.values.every((x) => Number.isNaN(x) || (x >= 0 && Number.isFinite(x)))).toBe(true);
      }),
      { numRuns: 40 },
    );
  });
});
