import { existsSync, readFileSync } from 'node:fs';
import { InputError } from 'tcts';
import { mean } from 'tcts/metrics';

/** What the model reads: the last 24 hours, one row of each. The file has a row every ten minutes. */
export const WINDOW = 24;
export const HOUR = 6;
const DAY = 24 * HOUR;

/** First and last day of each part, of every 50 days: as there is only one year, all parts need all its seasons. */
const PARTS = { train: [0, 35], validation: [35, 40], test: [40, 50] } as const;
const PERIOD = 50;

export interface Weather {
  /** Columns of the file, each brought to mean 0 and deviation 1 in training: [row][column]. */
  readonly rows: readonly Float32Array[];
  /** How much warmer it is so many hours later, over the root mean square of that in training: [row][horizon]. */
  readonly labels: readonly Float32Array[];
  /** Those root mean squares, in °C. */
  readonly scales: readonly number[];
  /** Rows at which a window ends, for windows that lie in one part with all their labels. */
  readonly splits: Readonly<Record<keyof typeof PARTS, Int32Array>>;
}

/** Windows and their labels. */
export interface Samples {
  readonly size: number;
  /** [T, B, D] */
  readonly x: { readonly data: Float32Array; readonly shape: readonly number[] };
  /** [B, K] */
  readonly labels: { readonly data: Float32Array; readonly shape: readonly number[] };
}

/** Reads `weather.csv` of the long-horizon benchmarks: 21 columns of a weather station in Jena, 2020. */
export function readWeather(file: string, horizons: readonly number[]): Weather {
  const { names, values } = readColumns(file);
  const temperature = values[names.indexOf('T (degC)')];
  if (temperature === undefined) throw new InputError('expected a column T (degC)', { file, line: 1 });

  const count = temperature.length;
  const reach = HOUR * Math.max(...horizons);
  const endsOf = ([begin, end]: readonly [number, number]): Int32Array => {
    const ends: number[] = [];
    for (let start = 0; start < count; start += PERIOD * DAY) {
      const last = Math.min(start + end * DAY, count) - reach;
      for (let row = start + begin * DAY + (WINDOW - 1) * HOUR; row < last; row++) ends.push(row);
    }
    if (ends.length === 0) throw new InputError(`${count} rows are too few, expected ${PERIOD} days`, { file });
    return Int32Array.from(ends);
  };
  const splits = { train: endsOf(PARTS.train), validation: endsOf(PARTS.validation), test: endsOf(PARTS.test) };

  const columns = values.map((column) => standardised(column, splits.train));
  const change = (row: number, hours: number) => temperature[row + hours * HOUR] - temperature[row];
  const changes = horizons.map((hours) => Float64Array.from(splits.train, (row) => change(row, hours)));
  const scales = changes.map(scaleOf);
  return {
    rows: Array.from({ length: count }, (_, row) => Float32Array.from(columns, (column) => column[row])),
    labels: Array.from({ length: count }, (_, row) =>
      Float32Array.from(horizons, (hours, k) => change(row, hours) / scales[k]),
    ),
    scales,
    splits,
  };
}

/** The samples whose windows end at these rows. */
export function samplesAt({ rows, labels }: Weather, ends: Int32Array): Samples {
  const [B, D, K] = [ends.length, rows[0].length, labels[0].length];
  const [x, y] = [new Float32Array(WINDOW * B * D), new Float32Array(B * K)];
  for (const [i, end] of ends.entries()) {
    for (let t = 0; t < WINDOW; t++) x.set(rows[end - (WINDOW - 1 - t) * HOUR], (t * B + i) * D);
    y.set(labels[end], i * K);
  }
  return { size: B, x: { data: x, shape: [WINDOW, B, D] }, labels: { data: y, shape: [B, K] } };
}

/** The numbers of the file by columns; a missing one (−9999) is taken from the previous row. */
function readColumns(file: string): { names: readonly string[]; values: readonly Float64Array[] } {
  if (!existsSync(file)) throw new InputError('there is no such file', { file });
  const [header, ...lines] = readFileSync(file, 'latin1').trimEnd().split(/\r?\n/);
  const names = header.split(',').slice(1);
  const values = names.map(() => new Float64Array(lines.length));
  for (const [row, text] of lines.entries()) {
    const cells = text.split(',').slice(1);
    for (const [c, name] of names.entries()) {
      const value = cells[c]?.trim() ? Number(cells[c]) : Number.NaN;
      const filled = value === -9999 && row > 0 ? values[c][row - 1] : value;
      if (!Number.isFinite(filled) || filled === -9999) {
        throw new InputError(`expected a number, found ${cells[c] ?? 'the end of the line'}`, {
          file,
          line: row + 2,
          key: name,
        });
      }
      values[c][row] = filled;
    }
  }
  return { names, values };
}

function standardised(column: Float64Array, rows: Int32Array): Float64Array {
  const train = Float64Array.from(rows, (row) => column[row]);
  const centre = mean(train);
  const deviation = scaleOf(train.map((value) => value - centre));
  return column.map((value) => (value - centre) / deviation);
}

/** The root mean square; 1 where all is 0, as nothing is there to be scaled. */
function scaleOf(values: Float64Array): number {
  return Math.sqrt(mean(values.map((value) => value ** 2))) || 1;
}
