import { InputError } from '../errors.js';
import { readText } from '../files.js';

/** A table of figures by date, as `tcts evaluate` writes them. */
export interface Series {
  readonly dates: readonly string[];
  /** The other columns by name; NaN where a cell is empty. */
  readonly columns: Readonly<Record<string, Float64Array>>;
}

/** Reads a CSV file with a column `date` first and numbers in all others. */
export function readSeries(file: string, columns: readonly string[]): Series {
  const [head, ...lines] = readText(file).trimEnd().split('\n');
  const names = head.split(',');
  const missing = ['date', ...columns].filter((name) => !names.includes(name));
  if (missing.length > 0) {
    throw new InputError(`expected a column ${missing[0]}, found ${head}`, { file, line: 1 });
  }
  const values = names.map(() => new Float64Array(lines.length));
  const dates = lines.map((line, i) => {
    const cells = line.split(',');
    if (cells.length !== names.length) {
      throw new InputError(`expected ${names.length} cells, found ${cells.length}`, { file, line: i + 2 });
    }
    for (let c = 1; c < cells.length; c++) values[c][i] = cells[c] === '' ? Number.NaN : Number(cells[c]);
    return cells[0];
  });
  return { dates, columns: Object.fromEntries(names.slice(1).map((name, c) => [name, values[c + 1]])) };
}

/** The mean of several series, on the dates that they all have, in order; a NaN in one of them is left out. */
export function meanSeries(all: readonly Series[], column: string): { dates: string[]; values: number[] } {
  const sums = new Map<string, { sum: number; count: number; seen: number }>();
  for (const { dates, columns } of all) {
    for (const [i, date] of dates.entries()) {
      const entry = sums.get(date) ?? { sum: 0, count: 0, seen: 0 };
      const value = columns[column][i];
      entry.seen++;
      if (!Number.isNaN(value)) {
        entry.sum += value;
        entry.count++;
      }
      sums.set(date, entry);
    }
  }
  const common = [...sums].filter(([, { seen }]) => seen === all.length).sort(([a], [b]) => (a < b ? -1 : 1));
  return { dates: common.map(([date]) => date), values: common.map(([, { sum, count }]) => sum / count) };
}
