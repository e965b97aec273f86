import { InputError } from '../../errors.js';

/** Features by column, handed over one at a time, so that a table larger than the memory can be binned. */
export interface FeatureTable {
  readonly rows: number;
  readonly features: number;
  /** Fills `out`, of length `rows`, with one feature; NaN is a missing value. */
  readColumn(feature: number, out: Float32Array): void;
}

/** Samples to learn from or to validate on. */
export interface Samples {
  readonly table: FeatureTable;
  readonly labels: ArrayLike<number>;
  /** Importance of each sample, at least 0. Default: 1 for all. */
  readonly weights?: ArrayLike<number>;
}

/** A table of columns that are in memory already. */
export function tableOfColumns(columns: readonly ArrayLike<number>[]): FeatureTable {
  const rows = columns[0]?.length ?? 0;
  columns.forEach((column, feature) => {
    if (column.length !== rows) {
      throw new InputError(`has ${column.length} rows, expected ${rows} as in feature 0`, {
        key: `feature ${feature}`,
      });
    }
  });
  return { rows, features: columns.length, readColumn: (feature, out) => out.set(columns[feature]) };
}

/** A table of one array of rows, [rows, features]. */
export function tableOfRows(values: ArrayLike<number>, features: number): FeatureTable {
  const rows = values.length / features;
  if (!Number.isInteger(rows)) {
    throw new InputError(`${values.length} values do not make rows of ${features} features`);
  }
  return {
    rows,
    features,
    readColumn(feature, out) {
      for (let row = 0, at = feature; row < rows; row++, at += features) out[row] = values[at];
    },
  };
}

/** Throws unless there is something to learn from and every label and weight is usable; `name` says which samples. */
export function checkSamples({ table, labels, weights }: Samples, name: string): void {
  const key = name;
  if (table.rows < 1) throw new InputError('holds no rows, expected at least one', { key });
  if (table.features < 1) throw new InputError('holds no features, expected at least one', { key });
  if (labels.length !== table.rows) {
    throw new InputError(`has ${labels.length} labels for ${table.rows} rows`, { key });
  }
  for (let row = 0; row < labels.length; row++) {
    if (!Number.isFinite(labels[row])) {
      throw new InputError(`the label of row ${row} is ${labels[row]}, expected a finite number`, { key });
    }
  }
  if (weights === undefined) return;
  if (weights.length !== table.rows) {
    throw new InputError(`has ${weights.length} weights for ${table.rows} rows`, { key });
  }
  let sum = 0;
  for (let row = 0; row < weights.length; row++) {
    if (!(weights[row] >= 0 && weights[row] < Infinity)) {
      throw new InputError(`the weight of row ${row} is ${weights[row]}, expected a number of at least 0`, { key });
    }
    sum += weights[row];
  }
  if (!(sum > 0)) throw new InputError('all weights are 0, expected some above', { key });
}
