import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { beforeAll, expect, it } from 'vitest';
import { predictTrees, treeCount } from '../../src/forecast/trees/model.js';
import { type LabelledTable, type TreeOptions, tableOfRows } from '../../src/forecast/trees/options.js';
import { type TrainedTrees, trainTrees } from '../../src/forecast/trees/train.js';
import { describeWithShared, readSharedJson, shared } from '../shared.js';

/** What LightGBM 4.1 gave for one setting. */
interface Expected {
  params: Record<string, number>;
  trees: number;
  test_mse: number;
  train_mse: number;
  test_predictions: number[];
}

describeWithShared('boosted trees against LightGBM 4.1', () => {
  const { cases } = readSharedJson<{ cases: Record<string, Expected> }>('vectors/lightgbm/expected.json');
  let train: Csv;
  let valid: Csv;
  let test: Csv;
  beforeAll(() => {
    [train, valid, test] = ['train', 'valid', 'test'].map((name) => readCsv(shared(`vectors/lightgbm/${name}.csv.gz`)));
  });

  const learn = async (expected: Expected): Promise<TrainedTrees> => {
    const options = optionsOf(expected.params);
    return trainTrees({ training: train, validation: options.earlyStoppingRounds ? valid : undefined, options });
  };
  const predict = (trained: TrainedTrees, csv: Csv): Float64Array => {
    const out = new Float64Array(csv.labels.length);
    predictTrees(trained.model, csv.values, out);
    return out;
  };

  it.each(Object.keys(cases).filter((name) => name !== 'sampled'))(
    'agrees with the setting %s in error within 1 % and in predictions by a correlation above 0.995',
    async (name) => {
      const expected = cases[name];
      const trained = await learn(expected);
      const predictions = predict(trained, test);
      expect(relative(meanSquaredError(predictions, test.labels), expected.test_mse)).toBeLessThan(0.01);
      expect(correlation(predictions, expected.test_predictions)).toBeGreaterThan(0.995);
      expect(treeCount(trained.model)).toBe(expected.trees);
      expect(relative(meanSquaredError(predict(trained, train), train.labels), expected.train_mse)).toBeLessThan(0.01);
    },
  );

  it('agrees with the setting sampled, whose random rows and features are others, in error within 2 %', async () => {
    const { sampled } = cases;
    const trained = await learn(sampled);
    expect(treeCount(trained.model)).toBe(sampled.trees);
    expect(relative(meanSquaredError(predict(trained, test), test.labels), sampled.test_mse)).toBeLessThan(0.02);
  });
});

interface Csv extends LabelledTable {
  readonly labels: Float64Array;
  /** [rows, features] */
  readonly values: Float32Array;
}

/**
 * Label first, then the features; an empty cell is a missing value, except at the end of a line, where the reader of
 * LightGBM's command line stops before it and leaves the feature at 0. The expected values come from data read so.
 */
function readCsv(path: string): Csv {
  const lines = gunzipSync(readFileSync(path)).toString().trimEnd().split('\n');
  const cells = lines.map((line) =>
    line
      .replace(/,$/, ',0')
      .split(',')
      .map((cell) => (cell === '' ? Number.NaN : Number(cell))),
  );
  const values = Float32Array.from(cells.flatMap((row) => row.slice(1)));
  return {
    labels: Float64Array.from(cells, ([label]) => label),
    values,
    table: tableOfRows(values, cells[0].length - 1),
  };
}

function optionsOf(params: Record<string, number>): Partial<TreeOptions> {
  const names: Record<string, keyof TreeOptions> = {
    num_leaves: 'numLeaves',
    learning_rate: 'learningRate',
    num_iterations: 'rounds',
    min_data_in_leaf: 'minDataInLeaf',
    max_bin: 'maxBin',
    max_depth: 'maxDepth',
    lambda_l1: 'lambdaL1',
    lambda_l2: 'lambdaL2',
    feature_fraction: 'featureFraction',
    bagging_fraction: 'baggingFraction',
    bagging_freq: 'baggingFrequency',
    seed: 'seed',
    early_stopping_round: 'earlyStoppingRounds',
  };
  return Object.fromEntries(
    Object.entries(params).map(([name, value]) => {
      if (!(name in names)) throw new Error(`no option for LightGBM's ${name}`);
      return [names[name], value];
    }),
  );
}

function relative(found: number, expected: number): number {
  return Math.abs(found - expected) / expected;
}

function meanSquaredError(predictions: ArrayLike<number>, labels: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < labels.length; i++) sum += (predictions[i] - labels[i]) ** 2;
  return sum / labels.length;
}

function correlation(a: ArrayLike<number>, b: ArrayLike<number>): number {
  const mean = (x: ArrayLike<number>) => Array.from(x).reduce((sum, value) => sum + value, 0) / x.length;
  const [ma, mb] = [mean(a), mean(b)];
  let [ab, aa, bb] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    ab += (a[i] - ma) * (b[i] - mb);
    aa += (a[i] - ma) ** 2;
    bb += (b[i] - mb) ** 2;
  }
  return ab / Math.sqrt(aa * bb);
}
