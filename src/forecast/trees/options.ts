import { availableParallelism } from 'node:os';
import { z } from 'zod';
import { InputError } from '../../errors.js';

/** An option of boosted trees: what it accepts, in words too, and where it stands when it is left out. */
interface Option<T> {
  readonly type: z.ZodType<T>;
  readonly expected: string;
  readonly text: string;
  /** LightGBM's default, which `trainTrees` has. */
  readonly lightgbm: T;
  /** The default in a configuration: that of qlib's benchmark on the CSI300. Undefined: no key of a configuration. */
  readonly benchmark?: T;
}

/** Every option, with LightGBM's name and meaning; those with a second default are keys of a configuration, in this order. */
const OPTIONS = {
  rounds: whole('Maximum number of trees.', 1, 100, 1000),
  earlyStoppingRounds: whole('Rounds without a lower validation loss; 0: never stop.', 0, 0, 50),
  learningRate: {
    type: z.number().positive(),
    expected: 'a number above 0',
    text: 'Shrinkage of each tree.',
    lightgbm: 0.1,
    benchmark: 0.0421,
  },
  numLeaves: whole('Maximum leaves of a tree.', 2, 31, 210, 65536),
  maxDepth: {
    type: z.int(),
    expected: 'a whole number',
    text: 'Maximum depth of a tree; 0 or less: any.',
    lightgbm: -1,
    benchmark: 8,
  },
  minDataInLeaf: whole('Minimum samples in a leaf.', 1, 20, 20),
  featureFraction: share('Share of the columns that a tree sees.', 1, 0.8879),
  baggingFraction: share('Share of the samples that a tree sees.', 1, 0.8789),
  baggingFrequency: whole('Rounds between resampling; 0: all samples.', 0, 0, 1),
  lambdaL1: atLeastZero('ℓ₁ penalty of the leaves.', 0, 205.7),
  lambdaL2: atLeastZero('ℓ₂ penalty of the leaves.', 0, 581),
  maxBin: whole('Bins of a column.', 2, 255, 255, 255),
  minSumHessianInLeaf: atLeastZero('Sum of the weights in a leaf, at least.', 1e-3),
  minGainToSplit: atLeastZero('Gain of a split, at least.', 0),
  minDataInBin: whole('Samples in a bin, at least.', 1, 3),
  binSampleRows: whole('Rows from which the bounds of the bins are found (bin_construct_sample_cnt).', 1, 200_000),
  boostFromAverage: {
    type: z.boolean(),
    expected: 'true or false',
    text: 'Start from the mean label rather than from 0.',
    lightgbm: true,
  },
  seed: {
    type: z.union([z.number(), z.string()]),
    expected: 'a number or a text',
    text: 'Seed of row, column and bin sampling.',
    lightgbm: 0,
  },
  /** The result does not depend on it. */
  threads: whole('Threads.', 1, availableParallelism(), undefined, 256),
} satisfies Record<string, Option<number> | Option<boolean> | Option<number | string>>;

type OptionName = keyof typeof OPTIONS;

/** How boosted trees are grown. */
export type TreeOptions = { readonly [name in OptionName]: z.output<(typeof OPTIONS)[name]['type']> };

type ConfigKey = Exclude<OptionName, (typeof PROGRAMS)[number]>;
const PROGRAMS = [
  'minSumHessianInLeaf',
  'minGainToSplit',
  'minDataInBin',
  'binSampleRows',
  'boostFromAverage',
  'seed',
  'threads',
] as const;

/** The options that are keys of a configuration, with the defaults of the benchmark. */
export function treeKeys(): { [key in ConfigKey]: z.ZodDefault<z.ZodType<number>> } {
  const keys = Object.entries(OPTIONS as Record<string, Option<unknown>>)
    .filter(([, { benchmark }]) => benchmark !== undefined)
    .map(([key, { type, benchmark, text }]) => [key, type.default(benchmark as never).describe(text)]);
  return Object.fromEntries(keys);
}

/** The options with LightGBM's defaults for those that are left out; rejects what is none. */
export function treeOptions(given: Partial<TreeOptions> = {}): TreeOptions {
  const known: Readonly<Record<string, Option<unknown>>> = OPTIONS;
  const unknown = Object.keys(given).find((key) => !(key in known));
  if (unknown !== undefined) throw new InputError('is not an option of boosted trees', { key: unknown });
  const options = Object.entries(known).map(([key, { type, expected, lightgbm }]) => {
    const value = given[key as OptionName] ?? lightgbm;
    if (type.safeParse(value).success) return [key, value];
    throw new InputError(`found ${String(value)}, expected ${expected}`, { key });
  });
  return Object.fromEntries(options) as TreeOptions;
}

function whole(text: string, low: number, lightgbm: number, benchmark?: number, high?: number): Option<number> {
  const type = z.int().min(low);
  const expected = high === undefined ? `of at least ${low}` : `from ${low} to ${high}`;
  return {
    type: high === undefined ? type : type.max(high),
    expected: `a whole number ${expected}`,
    text,
    lightgbm,
    benchmark,
  };
}

function share(text: string, lightgbm: number, benchmark: number): Option<number> {
  return {
    type: z.number().positive().max(1),
    expected: 'a share above 0 and at most 1',
    text,
    lightgbm,
    benchmark,
  };
}

function atLeastZero(text: string, lightgbm: number, benchmark?: number): Option<number> {
  return { type: z.number().min(0), expected: 'a number of at least 0', text, lightgbm, benchmark };
}

/** Features by column, handed over one at a time, so that a table larger than the memory can be binned. */
export interface FeatureTable {
  readonly rows: number;
  readonly features: number;
  /** Fills `out`, of length `rows`, with one feature; NaN is a missing value. */
  readColumn(feature: number, out: Float32Array): void;
}

/** Samples to learn from or to validate on. */
export interface LabelledTable {
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
export function checkLabelled({ table, labels, weights }: LabelledTable, name: string): void {
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
  if (!(sum > 0)) throw new InputError('all weights are 0, expected some above 0', { key });
}
