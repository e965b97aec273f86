import { InputError } from '../../errors.js';

/**
 * Boosted trees as flat arrays over the nodes and the leaves of all trees. A row starts at the first node of each
 * tree and goes left where its feature is ≤ threshold; child n ≥ 0 is a node, child ~n < 0 is leaf n.
 */
export interface BoostedTrees {
  /** Features of a row. */
  readonly features: number;
  /** Where the sum of the trees starts: the mean training label. */
  readonly base: number;
  /** First node of each tree, and at the end the number of nodes. */
  readonly start: Int32Array;
  readonly feature: Int32Array;
  readonly threshold: Float64Array;
  /** 1 where a missing value goes left. */
  readonly missingLeft: Uint8Array;
  readonly left: Int32Array;
  readonly right: Int32Array;
  /** Loss reduction of each node's split. */
  readonly gain: Float64Array;
  /** Value of each leaf, the learning rate included. */
  readonly value: Float64Array;
}

/** `BoostedTrees` as plain JSON. */
export type BoostedTreesJson = {
  readonly [K in keyof BoostedTrees]: BoostedTrees[K] extends number ? number : number[];
};

/** Writes the prediction of each row of `rows`, [n, features], into `out`, [n]. Allocates nothing. */
export function predictTrees(model: BoostedTrees, rows: Float32Array, out: Float32Array | Float64Array): void {
  const { features, base, start, feature, threshold, missingLeft, left, right, value } = model;
  if (rows.length !== out.length * features) {
    throw new InputError(
      `${rows.length} values do not make ${out.length} rows of ${features} features, as many as there are places for predictions`,
    );
  }
  const trees = start.length - 1;
  for (let row = 0; row < out.length; row++) {
    const offset = row * features;
    let sum = base;
    for (let tree = 0; tree < trees; tree++) {
      let node = start[tree];
      while (node >= 0) {
        const x = rows[offset + feature[node]];
        node = x <= threshold[node] || (missingLeft[node] === 1 && Number.isNaN(x)) ? left[node] : right[node];
      }
      sum += value[~node];
    }
    out[row] = sum;
  }
}

/** How much each feature was used: the number of its splits, or their summed gain. */
export function featureImportance(model: BoostedTrees, kind: 'split' | 'gain'): Float64Array {
  const importance = new Float64Array(model.features);
  for (const [node, feature] of model.feature.entries()) importance[feature] += kind === 'gain' ? model.gain[node] : 1;
  return importance;
}

/** How many trees a model has. */
export function treeCount(model: BoostedTrees): number {
  return model.start.length - 1;
}

/** The model as plain JSON. */
export function treesToJson(model: BoostedTrees): BoostedTreesJson {
  const { features, base } = model;
  const arrays = Object.fromEntries(ARRAYS.map((key) => [key, Array.from(model[key])]));
  return { features, base, ...arrays } as BoostedTreesJson;
}

/** Reads what `treesToJson` wrote; `file` is named where it is not boosted trees. */
export function treesFromJson(json: unknown, file?: string): BoostedTrees {
  const fail = (key: string, expected: string): never => {
    throw new InputError(`expected ${expected}`, { file, key });
  };
  if (typeof json !== 'object' || json === null) return fail('trees', 'an object');
  const plain = json as Record<string, unknown>;
  for (const key of ARRAYS) {
    const array = plain[key];
    const numbers = Array.isArray(array) && array.every((value) => typeof value === 'number' && Number.isFinite(value));
    if (!numbers) fail(key, 'a list of finite numbers');
  }
  const { features, base, start, feature, threshold, missingLeft, left, right, gain, value } =
    plain as unknown as BoostedTreesJson;
  if (!Number.isInteger(features) || features < 1) fail('features', 'a whole number of at least 1');
  if (!Number.isFinite(base)) fail('base', 'a finite number');
  const nodes = feature.length;
  for (const [key, array] of Object.entries({ threshold, missingLeft, left, right, gain })) {
    if (array.length !== nodes) fail(key, `${nodes} numbers, one for each node, not ${array.length}`);
  }
  const trees = start.length - 1;
  const ascending = start.every(
    (node, tree) => Number.isInteger(node) && (tree === 0 ? node === 0 : node > start[tree - 1]),
  );
  if (trees < 0 || !ascending || start[trees] !== nodes) fail('start', `ascending nodes from 0 to ${nodes}`);
  if (value.length !== nodes + trees) fail('value', `${nodes + trees} leaves, one more than nodes for each tree`);
  if (!feature.every((f) => Number.isInteger(f) && f >= 0 && f < features))
    fail('feature', `features below ${features}`);
  if (!missingLeft.every((flag) => flag === 0 || flag === 1)) fail('missingLeft', 'flags 0 or 1');
  for (let tree = 0; tree < trees; tree++) {
    const [first, end] = [start[tree], start[tree + 1]];
    for (let node = first; node < end; node++) {
      // Nodes come after their parent, so that no walk can run in circles; a tree has one leaf more than nodes.
      const isChild = (child: number) =>
        Number.isInteger(child) &&
        (child >= 0 ? child > node && child < end : ~child >= first + tree && ~child <= end + tree);
      if (!isChild(left[node])) fail('left', `a child of node ${node}, not ${left[node]}`);
      if (!isChild(right[node])) fail('right', `a child of node ${node}, not ${right[node]}`);
    }
  }
  return {
    features,
    base,
    start: Int32Array.from(start),
    feature: Int32Array.from(feature),
    threshold: Float64Array.from(threshold),
    missingLeft: Uint8Array.from(missingLeft),
    left: Int32Array.from(left),
    right: Int32Array.from(right),
    gain: Float64Array.from(gain),
    value: Float64Array.from(value),
  };
}

const ARRAYS = ['start', 'feature', 'threshold', 'missingLeft', 'left', 'right', 'gain', 'value'] as const;
