import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readTable } from '../../src/series/index.js';
import { temporaryFolder } from '../run/temporary.js';
import { describeWithShared, shared } from '../shared.js';
import { unzipped } from './zip.js';

function fileOf(text: string | Buffer): string {
  const path = join(temporaryFolder(), 'table.csv');
  writeFileSync(path, text);
  return path;
}

describe('a table', () => {
  it('has its date in any column, and its names in UTF-8 or Latin-1', () => {
    const text = 'T (°C),when,p\n1.5,2020/1/2 9:00,10\n-2,2020/1/2 10:00,11\n';
    for (const encoding of ['utf8', 'latin1'] as const) {
      const { names, columns, dates } = readTable({ path: fileOf(Buffer.from(text, encoding)) });
      expect(names).toEqual(['T (°C)', 'p']);
      expect(columns.map((column) => [...column])).toEqual([
        [1.5, -2],
        [10, 11],
      ]);
      expect(dates).toEqual(['2020/1/2 9:00', '2020/1/2 10:00']);
    }
  });

  it('fills what is missing with the value before, and counts it', () => {
    const path = fileOf('date,a,b\n2020-01-01,1,2\n2020-01-02,-9999,3\n2020-01-03,,4\n');
    const { columns, filled } = readTable({ path, missing: -9999 });
    expect([...columns[0]]).toEqual([1, 1, 1]);
    expect(filled).toBe(2);
  });

  it.each([
    ['no rows', 'date,a\n', /table.csv: expected a header line and rows/],
    ['no date', 'a,b\n1,2\n', /table.csv:2: expected a column of dates such as/],
    ['a date alone', 'date\n2020-01-01\n', /table.csv:1: expected a column of numbers in addition to the date/],
    ['a text', 'date,a\n2020-01-01,1\n2020-01-02,warm\n', /table.csv:3: a: expected a number, found "warm"/],
    ['a gap at the beginning', 'date,a\n2020-01-01,\n', /table.csv:2: a: expected a number, found ""/],
    ['a short row', 'date,a\n2020-01-01,1\n2020-01-02\n', /table.csv:3: expected 2 cells, found 1/],
    ['a step back', 'date,a\n2020-01-02,1\n2020-01-01,1\n', /table.csv:3: date: expected a date not before/],
    ['an open quote', 'date,a\n2020-01-01,"1\n', /table.csv.*: this is not CSV: /],
  ])('is refused with %s', (_, text, message) => {
    expect(() => readTable({ path: fileOf(text) })).toThrow(message);
  });
});

describeWithShared('the public series', () => {
  // Rows, columns and dates of the data's own description.
  it.each([
    ['ETT-small.zip', 'ETT-small/ETTh1.csv', 17420, 7, '2016-07-01 00:00:00', '2018-06-26 19:00:00', 0],
    ['ETT-small.zip', 'ETT-small/ETTm1.csv', 69680, 7, '2016-07-01 00:00:00', '2018-06-26 19:45:00', 0],
    ['weather.zip', 'weather/weather.csv', 52696, 21, '2020-01-01 00:10:00', '2021-01-01 00:00:00', 81],
    ['exchange_rate.zip', 'exchange_rate/exchange_rate.csv', 7588, 8, '1990/1/1 0:00', '2010/10/10 0:00', 0],
  ])('%s: %s is read', (archive, name, rows, columns, first, last, filled) => {
    const path = fileOf(unzipped(shared(`data/longterm_ts/${archive}`), name));
    const table = readTable({ path, missing: -9999 });
    expect(table.dates).toHaveLength(rows);
    expect([table.dates[0], table.dates.at(-1)]).toEqual([first, last]);
    expect(table.columns).toHaveLength(columns);
    expect(table.names.at(-1)).toBe('OT');
    expect(table.filled).toBe(filled);
  });
});
