import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { clean, clipMoves } from '../../src/forecast/data/clean.js';
import { FIELDS, type PricePanel, valueAt } from '../../src/forecast/data/panel.js';
import { Notes } from '../../src/forecast/formats/format.js';
import { dates, panelOfCloses } from './panels.js';

const closesOf = (panel: PricePanel, stock: number): number[] =>
  panel.calendar.map((_, day) => valueAt(panel, day, stock, 'close'));

describe('cleaning', () => {
  it('clips a move beyond the bound and keeps every other move', () => {
    // Halved overnight by a forgotten split, then +10 %, −10 %: the fall becomes −30 %, the factor 0.7 / 0.5 stays.
    const notes = new Notes();
    const panel = clipMoves(panelOfCloses({ A: [100, 50, 55, 49.5] }), 0.3, notes);
    [100, 70, 77, 69.3].forEach((close, day) => {
      expect(valueAt(panel, day, 0, 'close')).toBeCloseTo(close, 4);
      expect(valueAt(panel, day, 0, 'open')).toBeCloseTo(close, 4);
      expect(valueAt(panel, day, 0, 'volume')).toBe(100);
    });
    expect(notes.summary()).toEqual([
      '1 × move of a close beyond ±0.3 clipped for training (first: A on 2020-01-02, -50.0 %)',
    ]);
  });

  it('clips both legs of a misprint', () => {
    // 10 → 40 → 10: +300 % becomes +30 %, −75 % becomes −30 %.
    const panel = clipMoves(panelOfCloses({ A: [10, 40, 10] }), 0.3, new Notes());
    expect(closesOf(panel, 0).map((x) => Number(x.toFixed(4)))).toEqual([10, 13, 9.1]);
  });

  it('believes any move across a suspension', () => {
    const closes = [10, Number.NaN, 40];
    expect(closesOf(clipMoves(panelOfCloses({ A: closes, B: [1, 1, 1] }), 0.3, new Notes()), 0)).toEqual(closes);
  });

  it('clips the other prices of a day to the bound around its close', () => {
    const draft = panelOfCloses({ A: [10] });
    draft.values.set([12, 20, 1, 10, 5]);
    const notes = new Notes();
    const panel = clipMoves(draft, 0.3, notes);
    expect([...panel.values].map((x) => Number(x.toFixed(4)))).toEqual([12, 13, 7, 10, 5]);
    expect(notes.count('price of a day further than ±0.3 from its close clipped for training')).toBe(2);
  });

  it('notes a day whose high lies below its close, and leaves it', () => {
    const draft = panelOfCloses({ A: [10, 10] });
    draft.values.set([10, 9.9, 9.5, 10, 5]);
    const notes = new Notes();
    expect(valueAt(clean(draft, null, notes).panel, 0, 0, 'high')).toBe(Math.fround(9.9));
    expect(notes.summary()).toEqual([
      '1 × day whose high or low lies inside its open and close (first: A on 2020-01-01)',
    ]);
  });

  it('keeps what happened beside what a model is to see', () => {
    const { panel, cleaned } = clean(panelOfCloses({ A: [100, 50, 55] }), 0.3, new Notes());
    expect(closesOf(panel, 0)).toEqual([100, 50, 55]);
    expect(closesOf(cleaned, 0).map((x) => Number(x.toFixed(4)))).toEqual([100, 70, 77]);
    const unasked = clean(panelOfCloses({ A: [100, 50, 55] }), null, new Notes());
    expect(unasked.cleaned).toBe(unasked.panel);
    expect(closesOf(unasked.panel, 0)).toEqual([100, 50, 55]);
  });

  it('refuses prices of which some are adjusted and some are not', () => {
    // A close of half the open, as a later split leaves it when it alone is adjusted; six rows are more than a few.
    const partly = (rows: number): PricePanel => {
      const draft = panelOfCloses({ A: Array<number>(10).fill(20) });
      for (let day = 0; day < rows; day++) draft.values[day * FIELDS.length + 3] = 10;
      return draft;
    };
    expect(() => clean(partly(6), null, new Notes(), 'prices.csv')).toThrow(
      /^prices\.csv: in 6 of 10 rows .* \(first: A on 2020-01-01\): some prices seem to be adjusted .*\{adjusted: …\}/,
    );
    const notes = new Notes();
    clean(partly(5), null, notes);
    expect(notes.count('day whose high or low lies inside its open and close')).toBe(5);
  });

  it('drops empty days and stocks, and days that are empty without a dropped stock', () => {
    const draft = panelOfCloses({
      A: [1, Number.NaN, 2, Number.NaN],
      B: [Number.NaN, 5, Number.NaN, Number.NaN],
      C: [Number.NaN, Number.NaN, Number.NaN, Number.NaN],
    });
    draft.members.set([0, 0, 0], 1);
    // B is never a member, so 2020-01-02, on which only B has a price, goes too.
    for (let day = 0; day < 4; day++) draft.members[day * 3 + 1] = 0;
    const { panel } = clean(draft, null, new Notes());
    expect(panel.symbols).toEqual(['A']);
    expect(panel.calendar).toEqual(['2020-01-01', '2020-01-03']);
    expect(closesOf(panel, 0)).toEqual([1, 2]);
  });

  it('refuses a bound that is no fraction', () => {
    for (const bound of [0, 1, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => clean(panelOfCloses({ A: [1] }), bound, new Notes())).toThrow(/maxMove: .* is not a fraction/);
    }
  });

  const price = fc.float({ min: Math.fround(0.01), max: Math.fround(1000), noNaN: true });
  const bar = fc.oneof(
    { weight: 6, arbitrary: fc.array(price, { minLength: 5, maxLength: 5 }) },
    { weight: 1, arbitrary: fc.constant(Array<number>(5).fill(Number.NaN)) },
  );
  const draftOf = (bars: number[][]): PricePanel => ({
    calendar: dates(bars.length / 2),
    symbols: ['A', 'B'],
    fields: FIELDS,
    values: Float32Array.from(bars.flat()),
    members: new Uint8Array(bars.length).fill(1),
  });
  const copyOf = (panel: PricePanel): PricePanel => ({
    ...panel,
    values: panel.values.slice(),
    members: panel.members.slice(),
  });
  const twoStocks = fc
    .array(fc.tuple(bar, bar), { minLength: 2, maxLength: 12 })
    .map((days) => [[1, 1, 1, 1, 1], [1, 1, 1, 1, 1], ...days.flat()]);

  it('done twice is done once', () => {
    fc.assert(
      fc.property(twoStocks, (bars) => {
        const once = copyOf(clipMoves(draftOf(bars), 0.3, new Notes()));
        const notes = new Notes();
        const twice = copyOf(clipMoves(copyOf(once), 0.3, notes));
        expect(twice).toEqual(once);
        expect(notes.list().filter(({ kind }) => kind.includes('clipped'))).toEqual([]);
      }),
    );
  });

  it('leaves no move beyond the bound, and no price depends on a later one', () => {
    fc.assert(
      fc.property(twoStocks, fc.nat(), (bars, cut) => {
        const whole = copyOf(clipMoves(draftOf(bars), 0.3, new Notes()));
        for (let stock = 0; stock < whole.symbols.length; stock++) {
          const closes = closesOf(whole, stock);
          for (let day = 1; day < closes.length; day++) {
            const move = closes[day]! / closes[day - 1]! - 1;
            expect(Number.isNaN(move) || Math.abs(move) < 0.30001).toBe(true);
          }
        }
        const kept = 2 * (1 + (cut % (bars.length / 2)));
        const part = copyOf(clipMoves(draftOf(bars.slice(0, kept)), 0.3, new Notes()));
        expect(whole.values.subarray(0, part.values.length)).toEqual(part.values);
      }),
    );
  });
});
