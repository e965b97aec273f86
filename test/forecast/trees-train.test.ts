import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InputError } from '../../src/errors.js';
import {
  featureImportance,
  predictTrees,
  treeCount,
  treesFromJson,
  treesToJson,
} from '../../src/forecast/trees/model.js';
import { type LabelledTable, type TreeOptions, tableOfColumns, tableOfRows } from '../../src/forecast/trees/options.js';
import { trainTrees } from '../../src/forecast/trees/train.js';
import { Random } from '../../src/random.js';

/** One full step without any limit, so that results can be derived by hand. */
const exact: Partial<TreeOptions> = {
  rounds: 1,
  learningRate: 1,
  minDataInLeaf: 1,
  minDataInBin: 1,
  minSumHessianInLeaf: 0,
};

function samples(columns: number[][], labels: number[], weights?: number[]): LabelledTable {
  return { table: tableOfColumns(columns), labels, weights };
}

async function learn(training: LabelledTable, options: Partial<TreeOptions> = {}) {
  const { model } = await trainTrees({ training, options: { ...exact, ...options } });
  return { model, predictions: predictions(model, training) };
}

function predictions(model: Parameters<typeof predictTrees>[0], { table }: LabelledTable): number[] {
  const rows = new Float32Array(table.rows * table.features);
  const column = new Float32Array(table.rows);
  for (let feature = 0; feature < table.features; feature++) {
    table.readColumn(feature, column);
    for (const [row, value] of column.entries()) rows[row * table.features + feature] = value;
  }
  const out = new Float64Array(table.rows);
  predictTrees(model, rows, out);
  return Array.from(out);
}

function predictOne(model: Parameters<typeof predictTrees>[0], ...row: number[]): number {
  const out = new Float64Array(1);
  predictTrees(model, Float32Array.from(row), out);
  return out[0];
}

/** Random samples whose label depends on the first features. */
function noisy(rows: number, features: number, seed: number, missing = 0): LabelledTable & { labels: number[] } {
  const random = new Random(seed);
  const columns = Array.from({ length: features }, () =>
    Array.from({ length: rows }, () => (random.uniform() < missing ? Number.NaN : random.normal())),
  );
  const at = (feature: number, row: number) => columns[feature % features][row] || 0;
  const labels = columns[0].map((_, row) => at(0, row) * at(1, row) + Math.abs(at(2, row)) + 0.3 * random.normal());
  return { ...samples(columns, labels), labels };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function squaredError(found: readonly number[], labels: ArrayLike<number>): number {
  return mean(found.map((value, i) => (value - labels[i]) ** 2));
}

describe('one tree', () => {
  const steps = samples([[1, 2, 3, 4]], [0, 0, 1, 1]);

  it('splits where the gain is largest and fits the mean of each side', async () => {
    // From the mean 1/2 the gradients are ½ ½ −½ −½; between 2 and 3 the gain is 1²/2 + 1²/2 − 0²/4 = 1.
    const { model, predictions } = await learn(steps, { numLeaves: 2 });
    expect(predictions).toEqual([0, 0, 1, 1]);
    expect(Array.from(model.threshold)).toEqual([2.5]);
    expect(Array.from(model.gain)).toEqual([1]);
  });

  it('shrinks leaves by l1 and l2', async () => {
    // (|G| − l1)/(n + l2) = (1 − ¼)/(2 + 1) = ¼; the gain is 2 · ¾²/3 = 3/8.
    const { model, predictions } = await learn(steps, { numLeaves: 2, lambdaL1: 0.25, lambdaL2: 1 });
    expect(predictions).toEqual([0.25, 0.25, 0.75, 0.75]);
    expect(model.gain[0]).toBeCloseTo(3 / 8, 12);
  });

  it('moves by the learning rate, from the mean or from 0', async () => {
    expect((await learn(steps, { learningRate: 0.5 })).predictions).toEqual([0.25, 0.25, 0.75, 0.75]);
    // From 0 the left side has nothing to fit.
    expect((await learn(steps, { learningRate: 0.5, boostFromAverage: false })).predictions).toEqual([0, 0, 0.5, 0.5]);
  });

  it('needs more gain than minGainToSplit', async () => {
    expect((await learn(steps, { minGainToSplit: 0.99 })).predictions).toEqual([0, 0, 1, 1]);
    expect((await learn(steps, { minGainToSplit: 1 })).predictions).toEqual([0.5, 0.5, 0.5, 0.5]);
  });

  it('grows the leaf with the larger gain first', async () => {
    // After 2|3, left 0 2 gains 2, right 10 14 gains 8: the third leaf goes to the right.
    const { predictions } = await learn(samples([[1, 2, 3, 4]], [0, 2, 10, 14]), { numLeaves: 3 });
    expect(predictions).toEqual([1, 1, 10, 14]);
  });

  it('keeps to depth, leaf size and hessian limits', async () => {
    const eight = samples([[1, 2, 3, 4, 5, 6, 7, 8]], [0, 1, 2, 3, 10, 11, 12, 13]);
    expect((await learn(eight, { maxDepth: 1 })).model.value).toHaveLength(2);
    expect((await learn(eight, { maxDepth: 2 })).model.value).toHaveLength(4);
    expect((await learn(eight, { minDataInLeaf: 3 })).model.value).toHaveLength(2);
    expect((await learn(eight, { minDataInLeaf: 2 })).model.value).toHaveLength(4);
    expect((await learn(eight, { minSumHessianInLeaf: 2.5 })).model.value).toHaveLength(2);
    expect((await learn(eight, { minDataInLeaf: 5 })).model.value).toHaveLength(0);
  });

  describe('counts a sample of weight w like w samples', () => {
    /** Two features, a weight, a label. */
    type Row = readonly [number, number, number, number];
    const of = (rows: readonly Row[]) => [rows.map((row) => row[0]), rows.map((row) => row[1])];
    const labels = (rows: readonly Row[]) => rows.map((row) => row[3]);

    async function expectSameError(rows: readonly Row[], size: { rounds: number; numLeaves: number }): Promise<void> {
      const repeated = rows.flatMap((row) => new Array<Row>(row[2]).fill(row));
      const options = { ...exact, ...size, learningRate: 0.5, minSumHessianInLeaf: 0.5 };
      const weights = rows.map((row) => row[2]);
      const weighted = await learn(samples(of(rows), labels(rows), weights), options);
      const plain = await learn(samples(of(repeated), labels(repeated)), options);
      const error = (model: typeof plain.model) =>
        squaredError(predictions(model, samples(of(repeated), [])), labels(repeated));
      expect(error(weighted.model)).toBeCloseTo(error(plain.model), 6);
    }

    it('in one split of any data', async () => {
      // Two splits may gain the same, and rounding then decides between them: the error after either is the same, but not
      // what follows. So one split.
      const row = fc.tuple(
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 1, max: 9 }),
        fc.nat(3),
        fc.double({ noNaN: true, min: -1, max: 1 }),
      );
      await fc.assert(
        fc.asyncProperty(fc.array(row, { minLength: 4, maxLength: 40 }), async (rows) => {
          fc.pre(rows.some(([, , weight]) => weight > 0));
          await expectSameError(rows, { rounds: 1, numLeaves: 2 });
        }),
        { numRuns: 40 },
      );
    });

    it('in trees of several rounds', async () => {
      const random = new Random('weights');
      for (let trial = 0; trial < 5; trial++) {
        const row = (): Row => [random.int(9), random.int(9), random.int(4), random.normal()];
        await expectSameError(Array.from({ length: 40 }, row), { rounds: 3, numLeaves: 4 });
      }
    });
  });
});

describe('missing values', () => {
  it('go to the side they resemble, and so do those met later', async () => {
    const x = [1, 2, 3, 4, Number.NaN, Number.NaN];
    const low = await learn(samples([x], [0, 0, 1, 1, 0, 0]), { numLeaves: 2 });
    expect(low.predictions).toEqual([0, 0, 1, 1, 0, 0]);
    expect(predictOne(low.model, Number.NaN)).toBe(0);
    const high = await learn(samples([x], [0, 0, 1, 1, 1, 1]), { numLeaves: 2 });
    expect(high.predictions).toEqual([0, 0, 1, 1, 1, 1]);
    expect(predictOne(high.model, Number.NaN)).toBe(1);
  });

  it('can be split from all values', async () => {
    const { model, predictions } = await learn(samples([[1, 2, 3, Number.NaN, Number.NaN]], [1, 1, 1, 6, 6]));
    expect(predictions).toEqual([1, 1, 1, 6, 6]);
    expect(predictOne(model, 1e30)).toBe(1);
    expect(treesFromJson(JSON.parse(JSON.stringify(treesToJson(model))))).toEqual(model);
  });

  it('count as 0 where training saw none', async () => {
    const { model } = await learn(samples([[-2, -1, 1, 2]], [5, 5, 7, 7]));
    expect(predictOne(model, Number.NaN)).toBe(predictOne(model, 0));
    const positive = await learn(samples([[1, 2, 3, 4]], [5, 5, 7, 7]));
    expect(predictOne(positive.model, Number.NaN)).toBe(5);
  });
});

describe('boosting', () => {
  const options: Partial<TreeOptions> = { rounds: 20, numLeaves: 8, minDataInLeaf: 5 };

  it('predicts for a training row the sum of the leaves it was assigned to', async () => {
    const sampling = { baggingFraction: 0.6, baggingFrequency: 2, featureFraction: 0.5 };
    for (const more of [{}, sampling]) {
      const training = noisy(400, 6, 1, 0.1);
      const { model, rounds } = await trainTrees({ training, options: { ...options, ...more } });
      const loss = squaredError(predictions(model, training), training.labels);
      expect(rounds).toHaveLength(20);
      expect(loss).toBeCloseTo(rounds[19].trainingLoss, 12);
    }
  });

  it('lowers the training error in every round', async () => {
    const training = noisy(400, 6, 2);
    const { rounds } = await trainTrees({ training, options });
    for (let i = 1; i < rounds.length; i++) expect(rounds[i].trainingLoss).toBeLessThan(rounds[i - 1].trainingLoss);
  });

  it('depends on the order of the values of a feature, not on their size', async () => {
    const column = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 60, maxLength: 60 });
    const labels = fc.array(fc.double({ noNaN: true, min: -1, max: 1 }), { minLength: 60, maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(column, column, labels, async (a, b, y) => {
        const settings = { ...options, minDataInBin: 1, rounds: 3, learningRate: 0.3 };
        const plain = await learn(samples([a, b], y), settings);
        const bent = await learn(samples([a.map((x) => x ** 3), b.map((x) => Math.log(x) + 1)], y), settings);
        expect(bent.predictions).toEqual(plain.predictions);
        expect(bent.model.feature).toEqual(plain.model.feature);
      }),
      { numRuns: 25 },
    );
  });

  it('does not depend on the number of threads', async () => {
    const training = noisy(600, 150, 3, 0.05);
    const weights = training.labels.map((_, row) => 0.5 + (row % 3));
    for (const set of [training, { ...training, weights }]) {
      const settings = { ...options, baggingFraction: 0.7, baggingFrequency: 1, featureFraction: 0.8, seed: 5 };
      const alone = await trainTrees({ training: set, options: { ...settings, threads: 1 } });
      const together = await trainTrees({ training: set, options: { ...settings, threads: 4 } });
      expect(together.model).toEqual(alone.model);
    }
  });

  it('depends on the seed where rows or features are sampled', async () => {
    const training = noisy(300, 8, 4);
    const model = async (seed: number) =>
      (await trainTrees({ training, options: { ...options, featureFraction: 0.5, seed } })).model;
    expect(await model(1)).toEqual(await model(1));
    expect(await model(1)).not.toEqual(await model(2));
  });

  it('uses in each tree only the features it drew', async () => {
    const training = noisy(300, 10, 5);
    const { model } = await trainTrees({ training, options: { ...options, featureFraction: 0.2 } });
    for (let tree = 0; tree < treeCount(model); tree++) {
      expect(new Set(model.feature.subarray(model.start[tree], model.start[tree + 1])).size).toBeLessThanOrEqual(2);
    }
  });

  it('keeps the trees up to the lowest validation error when it stops early', async () => {
    const training = noisy(200, 6, 6);
    const validation = noisy(200, 6, 7);
    const settings = { rounds: 500, learningRate: 0.3, minDataInLeaf: 2, earlyStoppingRounds: 5 };
    const { model, rounds } = await trainTrees({ training, validation, options: settings });
    const losses = rounds.map(({ validationLoss }) => validationLoss ?? Number.NaN);
    const best = losses.indexOf(Math.min(...losses)) + 1;
    expect(treeCount(model)).toBe(best);
    expect(rounds).toHaveLength(best + 5);
    expect(squaredError(predictions(model, validation), validation.labels)).toBeCloseTo(losses[best - 1], 12);
  });

  it('finds boundaries from a sample of the rows where there are many', async () => {
    const training = noisy(2000, 3, 8);
    const all = await trainTrees({ training, options });
    const some = await trainTrees({ training, options: { ...options, binSampleRows: 500 } });
    expect(some.model.threshold).not.toEqual(all.model.threshold);
    expect(some.rounds[19].trainingLoss).toBeLessThan(all.rounds[19].trainingLoss * 1.1);
  });

  it('predicts the mean where nothing can be split', async () => {
    const { model, predictions } = await learn(samples([[7, 7, 7]], [1, 2, 6]));
    expect(treeCount(model)).toBe(0);
    expect(predictions).toEqual([3, 3, 3]);
  });
});

describe('a model', () => {
  it('tells how often and with what gain each feature was used', async () => {
    // Feature 1 says nothing; feature 2 is split first, then feature 0 on either side.
    const columns = [
      [1, 2, 1, 2, 1, 2, 1, 2],
      [1, 1, 1, 1, 1, 1, 1, 1],
      [1, 1, 1, 1, 2, 2, 2, 2],
    ];
    const labels = [-1, 1, -1, 1, 9, 11, 9, 11];
    const { model } = await learn(samples(columns, labels));
    expect(Array.from(featureImportance(model, 'split'))).toEqual([2, 0, 1]);
    const gain = featureImportance(model, 'gain');
    // Around the mean 5, G is ±20 over 4 rows: 20²/4 · 2 − 0 = 200. Then G is 12 and 8 (2 rows each) of 20 (4 rows):
    // 12²/2 + 8²/2 − 20²/4 = 4, on each side.
    expect(gain[2]).toBeCloseTo(200, 9);
    expect(gain[0]).toBeCloseTo(8, 9);
    expect(gain[1]).toBe(0);
  });

  it('survives JSON', async () => {
    const training = noisy(200, 4, 9, 0.2);
    const { model } = await trainTrees({ training, options: { rounds: 5 } });
    const again = treesFromJson(JSON.parse(JSON.stringify(treesToJson(model))));
    expect(again).toEqual(model);
  });

  it('is refused where its JSON is damaged', async () => {
    const { model } = await learn(samples([[1, 2, 3, 4]], [0, 2, 10, 14]));
    const json = treesToJson(model);
    expect(() => treesFromJson(null, 'm.json')).toThrow('m.json: trees: expected an object');
    expect(() => treesFromJson({ ...json, base: null })).toThrow('base: expected a finite number');
    expect(() => treesFromJson({ ...json, gain: 'x' })).toThrow('gain: expected a list of finite numbers');
    expect(() => treesFromJson({ ...json, left: json.left.slice(1) })).toThrow(
      'left: expected 3 numbers, one for each node',
    );
    expect(() => treesFromJson({ ...json, left: json.left.map(() => 0) })).toThrow('left: expected a child of node 0');
    expect(() => treesFromJson({ ...json, feature: [0, 1, 0] })).toThrow('feature: expected features below 1');
    expect(() => treesFromJson({ ...json, value: [1] })).toThrow('value: expected 4 leaves');
    expect(() => treesFromJson({ ...json, start: [0, 2] })).toThrow('start: expected ascending nodes from 0 to 3');
  });

  it('either is refused or predicts a number, whichever entry of its JSON is changed', async () => {
    const { model } = await learn(
      samples(
        [
          [1, 2, 3, 4, 5],
          [5, 3, 1, 2, Number.NaN],
        ],
        [0, 2, 10, 14, 3],
      ),
      { rounds: 3 },
    );
    const json = treesToJson(model);
    const arrays = Object.keys(json).filter((key) => Array.isArray(json[key as keyof typeof json]));
    const entry = fc.oneof(fc.integer({ min: -20, max: 20 }), fc.double(), fc.constant(null));
    fc.assert(
      fc.property(fc.constantFrom(...arrays), fc.nat(), entry, (key, at, value) => {
        const changed = structuredClone(json) as unknown as Record<string, unknown[]>;
        changed[key][at % changed[key].length] = value;
        try {
          expect(predictOne(treesFromJson(changed), 2, 2)).not.toBeNaN();
        } catch (error) {
          expect(error).toBeInstanceOf(InputError);
        }
      }),
    );
  });

  it('predicts rows of its width only', async () => {
    const { model } = await learn(samples([[1, 2]], [0, 1]));
    expect(() => predictTrees(model, new Float32Array(3), new Float32Array(2))).toThrow(
      '3 values do not make 2 rows of 1',
    );
  });
});

describe('bad input', () => {
  const good = samples([[1, 2, 3]], [1, 2, 3]);
  const train = (training: LabelledTable, options?: Partial<TreeOptions>, validation?: LabelledTable) =>
    trainTrees({ training, options, validation });

  it('is refused with a sentence that says what and where', async () => {
    await expect(train(samples([], []))).rejects.toThrow('training data: holds no rows');
    await expect(train(samples([[]], []))).rejects.toThrow('training data: holds no rows, expected at least one');
    await expect(train(samples([[1, 2]], [1]))).rejects.toThrow('training data: has 1 labels for 2 rows');
    await expect(train(samples([[1, 2]], [1, Number.NaN]))).rejects.toThrow('the label of row 1 is NaN');
    await expect(train(samples([[1, 2]], [1, 2], [1]))).rejects.toThrow('has 1 weights for 2 rows');
    await expect(train(samples([[1, 2]], [1, 2], [1, -1]))).rejects.toThrow('the weight of row 1 is -1');
    await expect(train(samples([[1, 2]], [1, 2], [0, 0]))).rejects.toThrow('all weights are 0');
    await expect(train(samples([[1, Infinity]], [1, 2]))).rejects.toThrow('feature 0: row 1 is infinite');
    await expect(train(good, {}, samples([[1], [2]], [1]))).rejects.toThrow(
      'validation data: has 2 features, the training data 1',
    );
    await expect(train(good, {}, samples([[1]], [Number.NaN]))).rejects.toThrow(
      'validation data: the label of row 0 is NaN',
    );
    await expect(train(good, { earlyStoppingRounds: 5 })).rejects.toThrow('earlyStoppingRounds: needs validation data');
    expect(() => tableOfColumns([[1, 2], [1]])).toThrow('feature 1: has 1 rows, expected 2 as in feature 0');
    expect(() => tableOfRows([1, 2, 3], 2)).toThrow('3 values do not make rows of 2 features');
    const wide = { rows: 2, features: 300, readColumn: () => {} };
    await expect(train({ table: wide, labels: [1, 2] }, { numLeaves: 65536 })).rejects.toThrow('at most 4 GiB fit');
  });

  it.each([
    [{ rounds: 0 }, 'rounds: found 0, expected a whole number of at least 1'],
    [{ learningRate: 0 }, 'learningRate: found 0, expected a number above 0'],
    [{ numLeaves: 1 }, 'numLeaves: found 1, expected a whole number from 2 to 65536'],
    [{ maxDepth: 1.5 }, 'maxDepth: found 1.5, expected a whole number'],
    [{ minDataInLeaf: 0 }, 'minDataInLeaf: found 0'],
    [{ lambdaL2: -1 }, 'lambdaL2: found -1, expected a number of at least 0'],
    [{ maxBin: 256 }, 'maxBin: found 256, expected a whole number from 2 to 255'],
    [{ baggingFraction: 0 }, 'baggingFraction: found 0, expected a share above 0 and at most 1'],
    [{ featureFraction: 1.1 }, 'featureFraction: found 1.1'],
    [{ threads: 0 }, 'threads: found 0'],
    [{ leaves: 3 } as Partial<TreeOptions>, 'leaves: is not an option of boosted trees'],
  ])('refuses the option %o', async (options, sentence) => {
    await expect(train(good, options)).rejects.toThrow(sentence);
  });
});
