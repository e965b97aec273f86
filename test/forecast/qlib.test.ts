import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InputError } from '../../src/errors.js';
import { valueAt } from '../../src/forecast/data/panel.js';
import { readQlib } from '../../src/forecast/formats/qlib.js';
import { dates, series, stockFiles, temporaryFolder, writeFiles } from './panels.js';

const home = temporaryFolder();
let folders = 0;

/** A good folder of five days and two stocks, with some files replaced or added, and removed where undefined. */
function folder(changes: Record<string, string | Uint8Array | undefined> = {}): string {
  const files: Record<string, string | Uint8Array | undefined> = {
    'calendars/day.txt': `${dates(5).join('\n')}\n`,
    'instruments/all.txt': 'AA\t2019-01-01\t2020-01-03\nAA\t2020-01-05\t2030-01-01\nBB\t2020-01-01\t2020-01-05\n',
    ...stockFiles('aa', 0, [10, 11, 12, 13, 14]),
    ...stockFiles('bb', 2, [5, Number.NaN, 6]),
    ...changes,
  };
  const present = Object.entries(files).filter(
    (entry): entry is [string, string | Uint8Array] => entry[1] !== undefined,
  );
  return writeFiles(join(home, String(folders++)), Object.fromEntries(present));
}

describe('a qlib folder', () => {
  it('gives each value at the day its series starts from, NaN elsewhere', () => {
    const { panel } = readQlib({ path: folder() });
    expect(panel.calendar).toEqual(dates(5));
    expect(panel.symbols).toEqual(['AA', 'BB']);
    expect([0, 1, 2, 3, 4].map((day) => valueAt(panel, day, 0, 'close'))).toEqual([10, 11, 12, 13, 14]);
    expect([0, 1, 2, 3, 4].map((day) => valueAt(panel, day, 1, 'close'))).toEqual([NaN, NaN, 5, NaN, 6]);
    expect(valueAt(panel, 4, 1, 'volume')).toBe(600);
  });

  it('has the spells of membership, both ends included', () => {
    const { panel } = readQlib({ path: folder() });
    expect([...panel.members]).toEqual([1, 1, 1, 1, 1, 1, 0, 1, 1, 1]);
  });

  it('keeps only the wanted days', () => {
    const { panel } = readQlib({ path: folder(), start: '2020-01-03', end: '2020-01-04' });
    expect(panel.calendar).toEqual(['2020-01-03', '2020-01-04']);
    expect(valueAt(panel, 0, 0, 'close')).toBe(12);
    expect(valueAt(panel, 0, 1, 'close')).toBe(5);
  });

  it('reads stocks named like a device of Windows from the prefixed folder', () => {
    const path = folder({
      'instruments/all.txt': 'CON\t2020-01-01\t2020-01-05\n',
      ...stockFiles('_qlib_con', 0, [1, 1, 1, 1, 1]),
    });
    expect(readQlib({ path }).panel.symbols).toEqual(['CON']);
  });

  it('has vwap where the folder has it', () => {
    const path = folder({ 'features/aa/vwap.day.bin': series(0, [10, 11, 12, 13, 14.5]) });
    const { panel } = readQlib({ path });
    expect(valueAt(panel, 4, 0, 'vwap')).toBe(14.5);
    expect(valueAt(panel, 4, 1, 'vwap')).toBeNaN();
  });

  it('takes the index out of the stocks', () => {
    const { panel } = readQlib({ path: folder(), index: 'BB' });
    expect(panel.symbols).toEqual(['AA']);
    expect(panel.index).toEqual({ symbol: 'BB', close: Float32Array.of(NaN, NaN, 5, NaN, 6) });
  });

  it('notes members without data and missing series, once with the first place and their number', () => {
    const path = folder({
      'instruments/all.txt': 'AA\t2020-01-01\t2020-01-05\nXX\t2020-01-01\t2020-01-05\nYY\t2020-01-01\t2020-01-05\n',
      'features/aa/volume.day.bin': undefined,
    });
    const { panel, notes } = readQlib({ path });
    expect(panel.symbols).toEqual(['AA']);
    expect(notes.count('member without any prices')).toBe(2);
    expect(notes.summary()[0]).toContain('all.txt:2: there is no data for XX');
    expect(notes.count('missing series')).toBe(1);
  });

  it('drops a day on which no stock has a price', () => {
    const path = folder({ ...stockFiles('aa', 0, [10, 11, Number.NaN, 13, 14]), ...stockFiles('bb', 3, [5, 6]) });
    const { panel, notes } = readQlib({ path });
    expect(panel.calendar).toEqual(['2020-01-01', '2020-01-02', '2020-01-04', '2020-01-05']);
    expect(valueAt(panel, 2, 0, 'close')).toBe(13);
    expect([...panel.members]).toEqual([1, 1, 1, 1, 0, 1, 1, 1]);
    expect(notes.list()).toContainEqual({ kind: 'day without any price dropped', count: 1, first: '2020-01-03' });
  });

  it.each<[string, Record<string, string | Uint8Array | undefined>, RegExp]>([
    ['no calendar', { 'calendars/day.txt': undefined }, /day\.txt: cannot read it: no such file/],
    ['an empty calendar', { 'calendars/day.txt': '\n' }, /day\.txt:1: "" is not a date/],
    [
      'a date that is none',
      { 'calendars/day.txt': '2020-01-01\n2020-02-30\n' },
      /day\.txt:2: "2020-02-30" is not a date/,
    ],
    [
      'unsorted dates',
      { 'calendars/day.txt': '2020-01-02\n2020-01-01\n' },
      /day\.txt:2: 2020-01-01 follows 2020-01-02/,
    ],
    ['a date twice', { 'calendars/day.txt': '2020-01-02\n2020-01-02\n' }, /day\.txt:2: 2020-01-02 follows 2020-01-02/],
    [
      'a spell without an end',
      { 'instruments/all.txt': 'AA\t2020-01-01\n' },
      /all\.txt:1: expected CODE, start and end/,
    ],
    [
      'a spell backwards',
      { 'instruments/all.txt': 'AA\t2020-01-05\t2020-01-01\n' },
      /all\.txt:1: the spell of AA starts on/,
    ],
    [
      'only unknown members',
      { 'instruments/all.txt': 'XX\t2020-01-01\t2020-01-05\n' },
      /all\.txt: none of the stocks .* XX/,
    ],
    [
      'half a float',
      { 'features/aa/low.day.bin': series(0, [1, 2]).subarray(0, 10) },
      /low\.day\.bin: is 10 bytes long/,
    ],
    ['an empty series file', { 'features/aa/low.day.bin': new Uint8Array(0) }, /low\.day\.bin: is 0 bytes long/],
    [
      'a series cut short',
      { 'features/aa/low.day.bin': series(0, [10, 11, 12]) },
      /low\.day\.bin: holds 3 days .* truncated/,
    ],
    [
      'a start beyond the calendar',
      { 'features/aa/open.day.bin': series(4, [1, 2]) },
      /open\.day\.bin: starts at calendar index 4/,
    ],
    ['a start between two days', { 'features/aa/open.day.bin': series(0.5, [1]) }, /starts at calendar index 0\.5/],
    [
      'more days than the calendar',
      { 'features/aa/open.day.bin': series(0, [1, 2, 3, 4, 5, 6]) },
      /holds 6 days, the calendar only 5/,
    ],
    ['a price of zero', stockFiles('bb', 2, [5, 0, 6]), /open of BB on 2020-01-04 is 0, expected more than zero/],
    ['a negative price', stockFiles('bb', 2, [5, -1, 6]), /open of BB on 2020-01-04 is -1/],
    [
      'an infinite price',
      stockFiles('bb', 2, [5, Number.POSITIVE_INFINITY, 6]),
      /open of BB on 2020-01-04 is infinite/,
    ],
  ])('is refused with %s', (_, changes, message) => {
    const read = (): unknown => readQlib({ path: folder(changes) });
    expect(read).toThrow(InputError);
    expect(read).toThrow(message);
  });

  it('takes a price of zero as a suspension on request', () => {
    const { panel, notes } = readQlib({ path: folder(stockFiles('bb', 2, [5, 0, 6])), nonPositive: 'missing' });
    expect(valueAt(panel, 3, 1, 'close')).toBeNaN();
    expect(notes.count('row with a price of zero or less treated as a suspension')).toBe(1);
  });

  it('is refused for a market, an index or dates it does not have', () => {
    const path = folder({ 'instruments/csi300.txt': 'AA\t2020-01-01\t2020-01-05\n' });
    expect(() => readQlib({ path, market: 'csi500' })).toThrow(
      /there is no market "csi500", expected one of all, csi300/,
    );
    expect(() => readQlib({ path, index: 'ZZ' })).toThrow(/so no index ZZ/);
    expect(() => readQlib({ path, start: '2021-01-01', end: '2021-02-01' })).toThrow(/no trading day between/);
    expect(() => readQlib({ path, start: '2021-13-01' })).toThrow(/start: "2021-13-01" is not a date/);
  });

  it('never gives values other than those in the files, whatever bytes a series holds', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 32 }), fc.constantFrom('open', 'close', 'volume'), (bytes, field) => {
        const path = folder({ [`features/aa/${field}.day.bin`]: bytes });
        let read: ReturnType<typeof readQlib>;
        try {
          read = readQlib({ path, maxMove: null });
        } catch (error) {
          expect(error).toBeInstanceOf(InputError);
          return;
        }
        // Accepted: then it was a whole series over the same five days as its siblings, with no value out of range.
        const floats = new Float32Array(bytes.slice().buffer);
        expect(floats.length).toBe(6);
        expect(Math.abs(floats[0]!)).toBe(0);
        expect(floats.subarray(1).every((x) => Number.isNaN(x) || (Number.isFinite(x) && x >= 0))).toBe(true);
        expect(read.panel.symbols).toContain('BB');
      }),
      { numRuns: 150 },
    );
  });

  it('answers any text for calendar or members with a panel or an InputError', () => {
    const line = fc.oneof(
      fc.constantFrom('2020-01-01', 'AA\t2020-01-01\t2020-01-04', '', '\t\t', '2020-01-03\r'),
      fc.string(),
    );
    const text = fc.array(line, { maxLength: 6 }).map((lines) => lines.join('\n'));
    fc.assert(
      fc.property(text, fc.constantFrom('calendars/day.txt', 'instruments/all.txt'), (content, name) => {
        try {
          const { panel } = readQlib({ path: folder({ [name]: content }) });
          expect(panel.calendar).toEqual([...new Set(panel.calendar)].sort());
          expect(panel.members.length).toBe(panel.calendar.length * panel.symbols.length);
        } catch (error) {
          expect(error).toBeInstanceOf(InputError);
        }
      }),
      { numRuns: 200 },
    );
  });
});
