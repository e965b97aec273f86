import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseForecast } from '../../src/cli/score-forecast.js';
import { splitLines } from '../../src/cli/score-input.js';

const input = (content: string | Uint8Array) => ({
  name: 'x',
  bytes: typeof content === 'string' ? Buffer.from(content) : content,
});
const columns = { date: 'date', instrument: 'instrument', prediction: 'prediction', label: 'label' };

describe('the lines of a text', () => {
  const line = fc.string({ unit: fc.constantFrom('a', 'ü', '中', '😀', '\r', '\u0085', '\u2028', '\ufeff', ' ') });

  it('are those that were written, whatever separators but "\\n" they hold', () => {
    fc.assert(
      fc.property(fc.array(line, { minLength: 1 }), (lines) => {
        expect(splitLines(input(lines.map((one) => `${one}\n`).join('')))).toEqual(lines);
      }),
    );
  });

  it('do not need a newline after the last', () => {
    expect(splitLines(input('a\n\nb'))).toEqual(['a', '', 'b']);
    expect(splitLines(input('a\n\nb\n'))).toEqual(['a', '', 'b']);
    expect(splitLines(input('\n'))).toEqual(['']);
  });
});

describe('a table of forecasts', () => {
  // + 0: JavaScript writes −0 as 0.
  const value = fc.oneof(fc.double({ min: -1e150, max: 1e150 }), fc.constant(Number.NaN)).map((x) => x + 0);
  const name = fc.string({ unit: fc.constantFrom('A', 'b', '1', ',', '"', '\n', 'é', '-'), minLength: 1 });
  const row = fc.record({
    date: fc.constantFrom('2020-01-02', '2020-01-03', '"d"'),
    instrument: name,
    p: value,
    y: value,
  });
  const rows = fc.uniqueArray(row, { minLength: 1, maxLength: 20, selector: (one) => `${one.date} ${one.instrument}` });
  const cell = (content: string | number) =>
    Number.isNaN(content) ? '' : `"${String(content).replaceAll('"', '""')}"`;

  it('comes back as it was written', () => {
    fc.assert(
      fc.property(rows, (table) => {
        const text = table
          .map(({ date, instrument, p, y }) => `${[date, instrument, p, y].map(cell).join(',')}\n`)
          .join('');
        const days = parseForecast(input(`date,instrument,prediction,label\n${text}`), columns);
        const dates = [...new Set(table.map((one) => one.date))];
        expect(days).toEqual(
          dates.map((date) => ({
            date,
            predictions: table.filter((one) => one.date === date).map((one) => one.p),
            labels: table.filter((one) => one.date === date).map((one) => one.y),
          })),
        );
      }),
    );
  });

  it('is read or refused with one sentence that names the file, whatever it holds', () => {
    const garbage = fc.string({ unit: fc.constantFrom(...'d,1.e-"\n\r \t;xé') });
    const bytes = fc
      .uint8Array({ maxLength: 40 })
      .map((array) => Buffer.concat([Buffer.from('date,instrument,prediction,label\n'), array]));
    const text = garbage.map((tail) => Buffer.from(`date,instrument,prediction,label\n${tail}`));
    fc.assert(
      fc.property(
        fc.oneof(
          garbage.map((one) => Buffer.from(one)),
          text,
          bytes,
        ),
        (content) => {
          try {
            parseForecast(input(content), columns);
          } catch (error) {
            expect(error).toMatchObject({ name: 'InputError', message: expect.stringMatching(/^x(:\d+)?: /) });
          }
        },
      ),
      { numRuns: 500 },
    );
  });
});
