import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Cell,
  formatEstimate,
  formatP,
  markBest,
  markBestOfRows,
  type SeedEstimate,
  seedEstimate,
  signed,
  type Table,
  textColumn,
  toDigits,
} from '../../src/report/document.js';
import { tablePicture } from '../../src/report/figures/figure.js';
import { csvLines, csvTable, markdownTable } from '../../src/report/files.js';

/** From the paper's table of stock trend forecasting, task set 𝒯₃, with synthetic deviations. */
const table: Table = {
  id: 'table',
  title: 'Results',
  caption: '',
  columns: [textColumn('Method'), { title: 'Task-1', measures: ['RankIC', 'MSE'] }],
  rows: markBest(
    [
      { cells: ['GRU', [seedEstimate([0.048, 0.05], 3), seedEstimate([1.903], 3)]] },
      { cells: ['MTL | 𝒯₃', [seedEstimate([0.061], 3), undefined]], rule: true },
      { cells: ['TCTS', [seedEstimate([0.07, 0.072], 3), { ...seedEstimate([1.851], 3)!, note: '(−3 %)' }]] },
    ],
    ['higher', 'lower'],
  ),
};

const figuresOf = (cell: Cell) => cell as readonly (SeedEstimate | undefined)[];

describe('figures of tables', () => {
  it('are means with the standard deviation over seeds', () => {
    // Deviation of .048 and .05: √(2 · .001²) = .0014
    expect(formatEstimate(seedEstimate([0.048, 0.05], 3)!)).toBe('0.049 ± 0.001');
    expect(formatEstimate(seedEstimate([0.048, Number.NaN], 3)!)).toBe('0.048');
    expect(seedEstimate([Number.NaN], 3)).toBeUndefined();
  });

  it('have true signs', () => {
    expect(toDigits(-0.5, 1)).toBe('−0.5');
    expect(toDigits(-0.0001, 2)).toBe('0.00');
    expect(toDigits(Number.NaN, 2)).toBe('–');
    expect([signed(0.25, 1), signed(-0.25, 1), signed(0.001, 1)]).toEqual(['+0.3', '−0.3', '0.0']);
    expect([formatP(0.0004), formatP(0.0421), formatP(Number.NaN)]).toEqual(['< 0.001', '0.042', '–']);
  });

  it('are marked where they are the best of their column, higher or lower', () => {
    const best = table.rows.map(({ cells }) => figuresOf(cells[1]).map((one) => one?.best ?? false));
    expect(best).toEqual([
      [false, false],
      [false, false],
      [true, true],
    ]);
  });

  it('are marked where they are the best of their row, equal ones all, a lone one not', () => {
    const cells = (...values: number[]) => ['k', ...values.map((value) => [seedEstimate([value], 1)])];
    const rows = markBestOfRows([{ cells: cells(1, 3.01, 3.02) }, { cells: cells(5) }], 'higher');
    const best = rows.map((row) => row.cells.slice(1).map((cell) => figuresOf(cell)[0]?.best ?? false));
    expect(best).toEqual([[false, true, true], [false]]);
  });
});

describe('a table', () => {
  it('is Markdown', () => {
    expect(markdownTable(table)).toBe(
      [
        '| Method | Task-1 |',
        '| --- | ---: |',
        '| GRU | 0.049 ± 0.001 / 1.903 |',
        '| MTL \\| 𝒯₃ | 0.061 / – |',
        '| TCTS | **0.071 ± 0.001** / **1.851 (−3 %)** |',
      ].join('\n'),
    );
  });

  it('is CSV with all digits', () => {
    const [first, ...rows] = parse(csvTable(table)) as string[][];
    expect(first).toEqual([
      ...['Method', 'Task-1 RankIC', 'Task-1 RankIC std', 'Task-1 RankIC seeds'],
      ...['Task-1 MSE', 'Task-1 MSE std', 'Task-1 MSE seeds'],
    ]);
    expect(rows[1]).toEqual(['MTL | 𝒯₃', '0.061', '', '1', '', '', '']);
    expect(Number(rows[0][2])).toBeCloseTo(0.001 * Math.SQRT2, 12);
  });

  it('is a picture', async () => {
    await expect(tablePicture(table)).toMatchFileSnapshot('../../docs/figures/report/table.svg');
  });
});

describe('CSV', () => {
  it('gives back every text that does not look like a formula', () => {
    const text = fc.string({ unit: 'binary' }).filter((value) => !/^[=+@\t\r]/.test(value));
    fc.assert(
      fc.property(fc.array(fc.tuple(text, text), { minLength: 1 }), (rows) => {
        const read = parse(csvLines(['a', 'b'], rows), { record_delimiter: '\n', relax_quotes: false }) as string[][];
        expect(read).toEqual([['a', 'b'], ...rows]);
      }),
    );
  });

  it('does not let a name become a formula', () => {
    expect(csvLines(['a'], [['=1+1']])).toBe("a\n'=1+1\n");
  });
});
