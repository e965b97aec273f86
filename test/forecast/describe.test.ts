import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { describePrices } from '../../src/forecast/formats/describe.js';
import { readPanel } from '../../src/forecast/formats/index.js';
import { temporaryFolder, writeFiles } from './panels.js';

const rows = (date: (day: number) => string, symbol = ',A', separator = ',') =>
  [1, 2, 3].map((day) => `${date(day)}${symbol},10,11,9,${day === 2 ? 10 : 10.5},7`.replaceAll(',', separator));
const day = (d: number) => `2020-01-0${d}`;

describe('how prices are read is found out from their first rows', () => {
  it.each([
    ['plain.csv', ['date,symbol,open,high,low,close,volume', ...rows(day)], {}],
    [
      'gzip.csv.gz',
      ['Date,Ticker,Open,High,Low,Close,Vol', ...rows(day)],
      { columns: { symbol: 'Ticker', volume: 'Vol' } },
    ],
    ['excel.csv', ['\ufeffdate;symbol;open;high;low;close;volume', ...rows(day, ',A', ';')], { delimiter: ';' }],
    ['tabs.csv', ['date\tsymbol\topen\thigh\tlow\tclose\tvolume', ...rows(day, ',A', '\t')], { delimiter: '\t' }],
    [
      'bars.csv',
      ['time,symbol,open,high,low,close,volume', ...rows((d) => `2020-01-01 1${d}:30`)],
      { columns: { date: 'time' }, intraday: true },
    ],
    [
      'index.csv',
      ['date,symbol,open,high,low,close', ...rows(day).map((row) => row.slice(0, -2))],
      { columns: { volume: null } },
    ],
    [
      'split.csv',
      ['date,symbol,open,high,low,close,volume,Adj Close', ...rows(day).map((row) => `${row},5`)],
      { columns: { adjusted: 'Adj Close' } },
    ],
  ])('%s', async (name, lines, found) => {
    const text = [...lines, ''].join('\n');
    const folder = writeFiles(temporaryFolder(), { [name]: name.endsWith('.gz') ? gzipSync(text) : text });
    const path = `${folder}/${name}`;
    const source = await describePrices(path);
    expect(source).toEqual({ format: 'csv', path, ...found });
    const { panel } = await readPanel({ ...source });
    expect([panel.symbols, panel.calendar.length]).toEqual([['A'], 3]);
  });

  it('a folder with a file for each stock, the first of which is empty', async () => {
    const text = ['Date,Open,High,Low,Close,Volume', ...rows(day, ''), ''].join('\n');
    const path = writeFiles(temporaryFolder(), { 'A.csv': '', 'B.csv': text, 'C.csv': text });
    const source = await describePrices(path);
    expect(source).toEqual({ format: 'csv', path });
    const { panel } = await readPanel({ ...source });
    expect(panel.symbols).toEqual(['B', 'C']);
  });

  it('a table without a close is no table of prices', async () => {
    const path = writeFiles(temporaryFolder(), { 'load.csv': 'date,load\n2020-01-01,5\n' });
    expect(await describePrices(`${path}/load.csv`)).toBeUndefined();
  });
});

describe('an adjusted close next to prices as quoted', () => {
  const text = ['date,symbol,open,high,low,close,volume,Adj Close', ...rows(day).map((row) => `${row},5`), ''].join(
    '\n',
  );
  const path = `${writeFiles(temporaryFolder(), { 'p.csv': text })}/p.csv`;

  it('is noted when nothing uses it', async () => {
    const { notes } = await readPanel({ path });
    expect(notes.summary()).toContain(
      `1 × file whose column "Adj Close" is not used (columns: {adjusted: Adj Close} adjusts prices by it) (first: ${path})`,
    );
  });

  it('is not noted when it adjusts the prices, or is a feature', async () => {
    const adjusted = await readPanel({ path, columns: { adjusted: 'Adj Close' } });
    const feature = await readPanel({ path }, { factors: ['Adj Close'] });
    expect([...adjusted.notes.list(), ...feature.notes.list()]).toEqual([]);
  });
});
