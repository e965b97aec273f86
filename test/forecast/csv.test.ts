import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InputError } from '../../src/errors.js';
import { FIELDS, type PricePanel, samplesBetween, valueAt } from '../../src/forecast/data/panel.js';
import { formatFloat32, readCsv, writeCsv } from '../../src/forecast/formats/csv.js';
import { readPanel } from '../../src/forecast/formats/index.js';
import { dates, temporaryFolder, writeFiles } from './panels.js';

const home = temporaryFolder();
let files = 0;

function file(text: string): string {
  const path = join(home, `${files++}.csv`);
  writeFileSync(path, text);
  return path;
}

const HEADER = 'date,symbol,open,high,low,close,volume';

describe('a long CSV file', () => {
  it('is read in any order of columns and of stocks', async () => {
    const path = file(
      'volume,close,Symbol,low,high,open,DATE,remark\n100,10,B,9,11,10,2020-01-01,x\n200,11,B,10,12,10,2020-01-02,\n300,5,A,4,6,5.5,2020-01-02,\n',
    );
    const { panel } = await readPanel({ path });
    expect(panel.calendar).toEqual(['2020-01-01', '2020-01-02']);
    expect(panel.symbols).toEqual(['A', 'B']);
    expect(FIELDS.map((field) => valueAt(panel, 1, 0, field))).toEqual([5.5, 6, 4, 5, 300]);
    expect(FIELDS.map((field) => valueAt(panel, 0, 0, field))).toEqual([NaN, NaN, NaN, NaN, NaN]);
    expect(FIELDS.map((field) => valueAt(panel, 0, 1, field))).toEqual([10, 11, 9, 10, 100]);
    expect([...panel.members]).toEqual([1, 1, 1, 1]);
  });

  it('is read under the names the source gives its columns', async () => {
    const path = file('day;ticker;o;h;l;adj close;vol\n20200101;A;1;2;0.5;1.5;7\n');
    const columns = {
      date: 'day',
      symbol: 'ticker',
      open: 'o',
      high: 'h',
      low: 'l',
      close: 'Adj Close',
      volume: 'vol',
    };
    const { panel } = await readCsv({ path, columns, delimiter: ';', maxMove: 0.9 });
    expect(FIELDS.map((field) => valueAt(panel, 0, 0, field))).toEqual([1, 2, 0.5, 1.5, 7]);
  });

  it('has NaN for empty cells and reads quotes, a byte order mark, carriage returns and midnight times', async () => {
    const path = file(
      `\uFEFF${HEADER}\r\n2020-01-01 00:00:00,"A, B",1,1,1,1,NaN\r\n\r\n2020-01-02,"A, B",,,,1, 5 \r\n`,
    );
    const { panel } = await readCsv({ path });
    expect(panel.symbols).toEqual(['A, B']);
    expect(valueAt(panel, 0, 0, 'volume')).toBeNaN();
    expect(valueAt(panel, 1, 0, 'open')).toBeNaN();
    expect(valueAt(panel, 1, 0, 'volume')).toBe(5);
  });

  it.each(['null', 'NA', 'None', 'N/A', '.', 'nan', ' NULL '])('has NaN for %s', async (text) => {
    const { panel } = await readCsv({ path: file(`${HEADER}\n2020-01-01,A,${text},2,1,1.5,${text}\n`) });
    expect(FIELDS.map((field) => valueAt(panel, 0, 0, field))).toEqual([NaN, 2, 1, 1.5, NaN]);
  });

  it('may be unsorted, and repeat rows: both are counted', async () => {
    const rows = [
      '2020-01-03,A,3,3,3,3,1',
      '2020-01-01,A,1,1,1,1,1',
      '2020-01-02,A,2,2,2,2,1',
      '2020-01-01,A,1,1,1,1,1',
    ];
    const path = file(`${HEADER}\n${rows.join('\n')}\n`);
    const { panel, notes } = await readCsv({ path });
    expect(panel.calendar).toEqual(['2020-01-01', '2020-01-02', '2020-01-03']);
    expect([0, 1, 2].map((day) => valueAt(panel, day, 0, 'close'))).toEqual([1, 2, 3]);
    expect(notes.summary()).toEqual([
      `3 × row before an earlier date of its stock: sorted (first: A on 2020-01-01 in ${path}:3)`,
      `1 × duplicate row with the same values dropped (first: A on 2020-01-01 in ${path}:5)`,
    ]);
  });

  it.each([
    ['dmy', '03/04/2020', '2020-04-03'],
    ['mdy', '03/04/2020', '2020-03-04'],
    ['dmy', '3.4.2020', '2020-04-03'],
  ] as const)('is read with dates in the order %s', async (dateOrder, text, date) => {
    const path = file(`${HEADER}\n${text},A,1,1,1,1,1\n`);
    expect((await readCsv({ path, dateOrder })).panel.calendar).toEqual([date]);
    const wrong = file(`${HEADER}\n2020-04-03,A,1,1,1,1,1\n`);
    await expect(readCsv({ path: wrong, dateOrder })).rejects.toThrow(/"2020-04-03" is not a date/);
  });

  it('may be gzipped, and is refused when the end is missing', async () => {
    const bytes = gzipSync(`${HEADER}\n2020-01-01,A,1,1,1,1,1\n`);
    const path = join(home, 'prices.csv.gz');
    writeFileSync(path, bytes);
    expect((await readPanel({ path })).panel.symbols).toEqual(['A']);
    writeFileSync(path, bytes.subarray(0, bytes.length - 12));
    await expect(readPanel({ path })).rejects.toThrow(/prices\.csv\.gz: not a whole gzip file/);
  });

  it('has bars within the day, and no volume, on request', async () => {
    const bars = ['2020-01-01 09:30,A,1,1,1,1', '2020-01-01T10:00:00Z,A,1,1,1,2', '2020-01-02 09:30,A,1,1,1,3'];
    const path = file(`date,symbol,open,high,low,close\n${bars.join('\n')}\n`);
    const { panel } = await readCsv({ path, intraday: true, columns: { volume: null }, end: '2020-01-01' });
    expect(panel.calendar).toEqual(['2020-01-01T09:30', '2020-01-01T10:00']);
    expect(panel.fields).toEqual(['open', 'high', 'low', 'close']);
    expect(samplesBetween(panel, 0, 1).length).toBe(2);
  });

  it('has factors of its own where they are asked for', async () => {
    const path = file(`${HEADER},momentum,remark\n2020-01-01,A,1,1,1,1,1,-0.5,x\n2020-01-02,A,1,1,1,1,1,NA,y\n`);
    const { panel } = await readCsv({ path }, { factors: ['momentum'] });
    expect(panel.fields).toEqual([...FIELDS, 'momentum']);
    expect([0, 1].map((day) => valueAt(panel, day, 0, 'momentum'))).toEqual([-0.5, NaN]);
    await expect(readCsv({ path }, { factors: ['value'] })).rejects.toThrow(/:1: there is no column "value" among/);
    await expect(readCsv({ path }, { factors: ['remark'] })).rejects.toThrow(/:2: remark: "x" is not a number/);
    await expect(readCsv({ path }, { factors: ['close'] })).rejects.toThrow(/"close" is a column of prices already/);
  });

  it('belongs to the market only during the spells of a membership file', async () => {
    const path = file(
      `${HEADER}\n${dates(3)
        .flatMap((date) => ['A', 'B', 'C'].map((s) => `${date},${s},1,1,1,1,1`))
        .join('\n')}\n`,
    );
    const members = file(
      'A\t2020-01-02\t2020-01-02\nB\t2019-01-01\t2020-01-01\nB\t2020-01-03\t2021-01-01\nZ\t2020-01-01\t2020-01-03\n',
    );
    const { panel, notes } = await readCsv({ path, members });
    expect(panel.symbols).toEqual(['A', 'B']);
    expect([...panel.members]).toEqual([0, 1, 1, 0, 0, 1]);
    expect(notes.summary()).toEqual([
      `1 × member without any prices (first: ${members}:4: there is no data for Z)`,
      '1 × stock that never belongs to the market left out (first: C)',
    ]);
  });

  it.each<[string, string, RegExp]>([
    ['nothing in it', '', /\.csv: the file is empty/],
    ['a header alone', `${HEADER}\n`, /there is no row of prices/],
    ['a missing column', 'date,symbol,open,high,low,close\n', /:1: there is no column "volume" among date, symbol/],
    ['a column twice', `${HEADER},Close\n`, /:1: there are two columns "close"/],
    ['text in a number', `${HEADER}\n2020-01-01,A,1,1,1,abc,1\n`, /\.csv:2: close: "abc" is not a number/],
    ['a hexadecimal number', `${HEADER}\n2020-01-01,A,1,1,1,0x10,1\n`, /:2: close: "0x10" is not a number/],
    ['infinity', `${HEADER}\n2020-01-01,A,1,1,1,Infinity,1\n`, /:2: close: "Infinity" is not a number/],
    [
      'a number beyond float32',
      `${HEADER}\n2020-01-01,A,1,1,1,1e39,1\n`,
      /:2: close of A on 2020-01-01 is infinite or too large/,
    ],
    [
      'a price of a few float32 steps',
      `${HEADER}\n2020-01-01,A,1,1,1,1e-44,1\n`,
      /:2: close of A .* is 9\.81e-45, expected 1e-15 or more/,
    ],
    ['a price no one pays', `${HEADER}\n2020-01-01,A,1,1,1,1e16,1\n`, /:2: close of A .* is infinite or too large/],
    [
      'a volume next to nothing',
      `${HEADER}\n2020-01-01,A,1,1,1,1,1e-44\n`,
      /:2: volume of A .* expected zero, or 1e-15 or more/,
    ],
    ['a date that is none', `${HEADER}\n2020-13-01,A,1,1,1,1,1\n`, /:2: "2020-13-01" is not a date/],
    ['a time of the day', `${HEADER}\n2020-01-01 10:30:00,A,1,1,1,1,1\n`, /:2: "2020-01-01 10:30:00" is not a date/],
    ['no symbol', `${HEADER}\n2020-01-01,,1,1,1,1,1\n`, /:2: the symbol is empty/],
    [
      'a time of the day, and says how to read it',
      `${HEADER}\n2020-01-01 10:30:00,A,1,1,1,1,1\n`,
      /expected YYYY-MM-DD \(intraday: true reads times of the day\)/,
    ],
    [
      'a day in another time zone',
      `${HEADER}\n2020-01-01T05:00:00Z,A,1,1,1,1,1\n`,
      /\(intraday: true reads times of the day; if this is a day in another time zone, leave out the zone\)/,
    ],
    [
      'semicolons, and says how to read them',
      `${HEADER.replaceAll(',', ';')}\n`,
      /no column "date" among date;symbol;.*; delimiter: ";" would divide it$/,
    ],
    [
      'a date that may be of two days',
      `${HEADER}\n03/04/2020,A,1,1,1,1,1\n`,
      /:2: "03\/04\/2020" is not a date, expected YYYY-MM-DD \(dateOrder: dmy or mdy reads it\)/,
    ],
    [
      'a date of one order only',
      `${HEADER}\n31.12.2020,A,1,1,1,1,1\n`,
      /expected YYYY-MM-DD \(dateOrder: dmy reads it\)/,
    ],
    [
      'a date twice, with other values',
      `${HEADER}\n2020-01-02,A,1,1,1,1,1\n2020-01-03,A,1,1,1,1,1\n2020-01-02,A,1,1,1,2,1\n`,
      /:4: A on 2020-01-02 has different values than in line 2/,
    ],
    [
      'a price of zero',
      `${HEADER}\n2020-01-02,A,1,1,0,1,1\n`,
      /:2: low of A on 2020-01-02 is 0, expected more than zero/,
    ],
    ['a negative price', `${HEADER}\n2020-01-02,A,-1,1,1,1,1\n`, /:2: open of A on 2020-01-02 is -1/],
    ['a negative volume', `${HEADER}\n2020-01-02,A,1,1,1,1,-5\n`, /:2: volume of A on 2020-01-02 is -5/],
    ['a cell too few', `${HEADER}\n2020-01-02,A,1,1,1,1\n`, /:2: not a well-formed CSV row/],
    ['an open quote', `${HEADER}\n2020-01-02,"A,1,1,1,1,1\n`, /not a well-formed CSV row/],
    ['no price at all', `${HEADER}\n2020-01-02,A,,,,,\n`, /has no price/],
  ])('is refused with %s', async (_, text, message) => {
    const reading = readCsv({ path: file(text) });
    await expect(reading).rejects.toThrow(message);
    await expect(reading).rejects.toBeInstanceOf(InputError);
  });

  it('is refused when it is not there, has no such index, or its name does not show the format', async () => {
    await expect(readPanel({ path: join(home, 'none.csv') })).rejects.toThrow(
      /none\.csv: cannot read it: no such file/,
    );
    await expect(readCsv({ path: join(home, 'none.csv') })).rejects.toBeInstanceOf(InputError);
    const good = file(`${HEADER}\n2020-01-02,A,1,1,1,1,1\n`);
    await expect(readCsv({ path: good, index: 'I' })).rejects.toThrow(/there is no symbol "I" to serve as the index/);
    writeFiles(home, { 'prices.txt': '' });
    await expect(readPanel({ path: join(home, 'prices.txt') })).rejects.toThrow(/the name does not show the format/);
  });

  it('never gives a panel with a value that is not in the text, and no error but InputError', async () => {
    const cell = fc.oneof(
      fc.constantFrom(
        '2020-01-01',
        '2020-01-02',
        'A',
        'B',
        '1',
        '2.5',
        '',
        'NaN',
        '-1',
        '0',
        '1e400',
        '"',
        '"x"',
        '\n',
        '٣',
        '1,5',
      ),
      fc.string({ maxLength: 5 }),
      fc.double().map(String),
    );
    const good = fc.tuple(fc.constantFrom(...dates(3)), fc.constantFrom('A', 'B'), fc.integer({ min: 1, max: 99 }));
    const row = fc.oneof(
      good.map(([date, symbol, price]) => `${date},${symbol},${price},${price},${price},${price},${price}`),
      fc.array(cell, { minLength: 5, maxLength: 8 }).map((cells) => cells.join(',')),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(row, { maxLength: 5 }), async (rows) => {
        const text = `${HEADER}\n${rows.join('\n')}`;
        let panel: PricePanel;
        try {
          ({ panel } = await readCsv({ path: file(text), maxMove: null }));
        } catch (error) {
          expect(error).toBeInstanceOf(InputError);
          return;
        }
        const numbers = new Set(text.split(/[,\n"\r]/).map((part) => Math.fround(Number(part.trim()))));
        const moved = panel.values.filter((x) => !Number.isNaN(x) && !numbers.has(x));
        expect(moved).toEqual(new Float32Array(0));
        expect(panel.calendar).toEqual([...new Set(panel.calendar)].sort());
      }),
      { numRuns: 200 },
    );
  });
});

describe('a folder of CSV files', () => {
  it('has a stock a file, named after it', async () => {
    const rows = 'date,open,high,low,close,volume\n2020-01-01,1,1,1,1,1\n';
    const path = writeFiles(join(home, 'folder'), {
      'AA.csv': rows,
      'BB.csv': `${rows}2020-01-02,2,2,2,1.1,2\n`,
      'readme.txt': 'x',
    });
    const { panel } = await readPanel({ path, maxMove: 0.9 });
    expect(panel.symbols).toEqual(['AA', 'BB']);
    expect(valueAt(panel, 1, 1, 'open')).toBe(2);
  });

  it('takes the code of a stock from a column Name, reads gzipped files and counts empty ones', async () => {
    const rows = 'date,open,high,low,close,volume,Name\n2020-01-01,1,1,1,1,1,AAPL\n';
    const path = writeFiles(join(home, 'named'), {
      'stock_1.csv': rows,
      'stock_2.csv.gz': gzipSync(rows.replace('AAPL', 'MSFT')),
      'stock_3.csv': '',
      'stock_4.csv': 'date,open,high,low,close,volume,Name\n',
    });
    const { panel, notes } = await readPanel({ path });
    expect(panel.symbols).toEqual(['AAPL', 'MSFT']);
    expect(notes.count('file of the folder without any row left out')).toBe(2);
    const nothing = writeFiles(join(home, 'hollow'), { 'A.csv': '' });
    await expect(readPanel({ path: nothing })).rejects.toThrow(/hollow: the file is empty/);
  });

  it('is refused without a CSV file, and names the file that is at fault', async () => {
    const empty = writeFiles(join(home, 'none'), { 'readme.txt': 'x' });
    await expect(readCsv({ path: empty })).rejects.toThrow(/there is no CSV file in this folder/);
    const bad = writeFiles(join(home, 'bad'), {
      'AA.csv': 'date,open,high,low,close,volume\n2020-01-01,1,1,1,1,1\n',
      'BB.csv': 'date,open,high,low,close\n',
    });
    await expect(readCsv({ path: bad })).rejects.toThrow(/BB\.csv:1: there is no column "volume"/);
  });
});

describe('writing a panel', () => {
  it('prints the shortest decimal that is the same float32', () => {
    // 0.1 as float32 is 0.100000001490116…; 16777217 does not exist in float32.
    expect(formatFloat32(Math.fround(0.1))).toBe('0.1');
    expect(formatFloat32(Math.fround(1 / 3))).toBe('0.33333334');
    expect(formatFloat32(16777216)).toBe('16777216');
    expect(formatFloat32(Number.NaN)).toBe('');
    fc.assert(
      fc.property(
        fc.float({ noNaN: true, noDefaultInfinity: true }),
        (x) => Math.fround(Number(formatFloat32(x))) === Math.fround(x),
      ),
      { numRuns: 2000 },
    );
  });

  it('reads back to the same panel, bit for bit', async () => {
    const price = fc.float({ min: Math.fround(0.0001), max: Math.fround(1e9), noNaN: true });
    const cell = fc.oneof(
      { weight: 4, arbitrary: fc.tuple(price, price) },
      { weight: 1, arbitrary: fc.constant(undefined) },
    );
    const shape = fc.record({ days: fc.integer({ min: 1, max: 6 }), stocks: fc.integer({ min: 1, max: 4 }) });
    await fc.assert(
      fc.asyncProperty(
        shape,
        fc.infiniteStream(cell),
        fc.infiniteStream(fc.boolean()),
        async ({ days, stocks }, cells, flags) => {
          const values: number[] = [];
          for (let i = 0; i < days * stocks; i++) {
            const known = cells.next().value;
            // All prices of a day equal, and any volume.
            values.push(
              ...(known === undefined ? [NaN, NaN, NaN, NaN, NaN] : [known[0], known[0], known[0], known[0], known[1]]),
            );
          }
          const panel: PricePanel = {
            calendar: dates(days),
            symbols: ['A', 'B "x"', 'C, D', 'Ü'].slice(0, stocks),
            fields: FIELDS,
            values: Float32Array.from(values),
            members: Uint8Array.from({ length: days * stocks }, () => Number(flags.next().value)),
          };
          const whole = (await writeAndRead(panel))!;
          if (whole === undefined) return;
          expect(await writeAndRead(whole)).toEqual(whole);
        },
      ),
      { numRuns: 25 },
    );
  });

  it('keeps the index', async () => {
    const path = file(`${HEADER}\n2020-01-01,A,1,1,1,1,1\n2020-01-01,I,,,,3000.5,\n2020-01-02,A,1,1,1,1.1,1\n`);
    const { panel } = await readCsv({ path, index: 'I' });
    expect(panel.index).toEqual({ symbol: 'I', close: Float32Array.of(3000.5, NaN) });
    const copy = join(home, 'copy.csv');
    writeCsv(panel, copy, `${copy}.members`);
    expect(readFileSync(copy, 'utf8')).toBe(
      `${HEADER}\n2020-01-01,I,,,,3000.5,\n2020-01-01,A,1,1,1,1,1\n2020-01-02,A,1,1,1,1.1,1\n`,
    );
    expect((await readCsv({ path: copy, members: `${copy}.members`, index: 'I' })).panel).toEqual(panel);
  });
});

/** What comes back of a panel, or undefined when it holds nothing that could come back (no price of a member). */
async function writeAndRead(panel: PricePanel): Promise<PricePanel | undefined> {
  const path = join(home, 'round.csv');
  writeCsv(panel, path, `${path}.members`);
  try {
    const read = (await readCsv({ path, members: `${path}.members` })).panel;
    // Compacted panels are views of larger memory; compare the values alone.
    return { ...read, values: read.values.slice(), members: read.members.slice() };
  } catch (error) {
    expect(error).toBeInstanceOf(InputError);
    return undefined;
  }
}
