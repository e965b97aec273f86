import type { Random } from '../../random.js';
import type { UsedFeature } from './bins.js';
import { LANES } from './kernel.js';
import type { BoostedTrees } from './model.js';
import type { TreeOptions } from './options.js';
import type { GradientUnits, Workspace } from './train.js';

/** A tree over binned features. Child n ≥ 0 is a node, child ~n < 0 is leaf n; node 0 is the root. */
export interface GrownTree {
  readonly nodes: readonly GrownNode[];
  readonly leaves: readonly GrownLeaf[];
}

export interface GrownNode {
  /** Index into the used features. */
  readonly feature: number;
  /** The highest bin that goes left. */
  readonly bin: number;
  readonly missingLeft: boolean;
  readonly gain: number;
  left: number;
  right: number;
}

export interface GrownLeaf {
  /** Its rows are `workspace.rows` from `begin`, `count` of them. */
  readonly begin: number;
  readonly count: number;
  /** What it adds to the score of a row. */
  readonly value: number;
}

/**
 * Grows one tree leaf by leaf: of all leaves, split the one with the largest gain, until there are enough leaves or
 * no admissible split (Shi, "Best-first decision tree learning", 2007; Ke et al., "LightGBM", 2017).
 *
 * @param bagged number of rows, the first ones of `workspace.rows`, the tree learns from
 * @param allowed which used features it may split on
 */
export function growTree(
  workspace: Workspace,
  bagged: number,
  allowed: Uint8Array,
  units: GradientUnits,
  options: TreeOptions,
): GrownTree {
  const { kernels, rows, packed, ordered, scratch, blocks, training, used, splittable } = workspace;
  const weighted = training.weights !== undefined;
  const rowsAt = (leaf: Leaf) => rows.byteOffset + leaf.begin * 4;
  const mayHoldSplit = (leaf: Leaf) =>
    leaf.count >= 2 * options.minDataInLeaf && (options.maxDepth <= 0 || leaf.depth < options.maxDepth);

  const root: Leaf = { begin: 0, count: bagged, depth: 0, slot: 0, sum: 0n, hessian: 0n, split: undefined, parent: -1 };
  kernels.gatherGradients(rows.byteOffset, bagged, packed, ordered);
  root.sum = kernels.sumGradients(bagged, ordered, 0);
  if (weighted) root.hessian = kernels.sumGradients(bagged, ordered, 1);
  if (blocks > 0 && mayHoldSplit(root)) {
    splittable.fill(0, 0, blocks * LANES);
    splittable.set(allowed);
    kernels.findSplits(rows.byteOffset, bagged, ordered, root.slot, -1, root.sum, root.hessian, 0n, 0n);
    root.split = bestSplit(workspace, 0);
  }

  const leaves: Leaf[] = [root];
  const nodes: GrownNode[] = [];
  while (leaves.length < options.numLeaves) {
    const parent = leaves.reduce((best, leaf) => (gainOf(leaf) > gainOf(best) ? leaf : best));
    const split = parent.split;
    if (split === undefined) break;

    const { bins } = used[split.feature];
    const block = Math.floor(split.feature / LANES);
    const lane = training.bins + block * training.count * LANES + (split.feature % LANES);
    const leftBin = bins.missing && split.missingLeft ? bins.bounds.length : -1;
    const leftCount = kernels.partition(rowsAt(parent), parent.count, lane, split.bin, leftBin, scratch);

    const node = nodes.length;
    const { feature, bin, missingLeft, gain } = split;
    const index = leaves.indexOf(parent);
    nodes.push({ feature, bin, missingLeft, gain, left: ~index, right: ~leaves.length });
    if (parent.parent >= 0) {
      const above = nodes[parent.parent];
      if (above.left === ~index) above.left = node;
      else above.right = node;
    }

    const below = { depth: parent.depth + 1, slot: 0, split: undefined, parent: node };
    const left: Leaf = { ...below, begin: parent.begin, count: leftCount, sum: split.sum, hessian: split.hessian };
    const right: Leaf = {
      ...below,
      begin: parent.begin + leftCount,
      count: parent.count - leftCount,
      sum: parent.sum - split.sum,
      hessian: parent.hessian - split.hessian,
    };
    const [small, large] = left.count < right.count ? [left, right] : [right, left];
    small.slot = leaves.length;
    large.slot = parent.slot;
    leaves[index] = left;
    leaves.push(right);

    if (leaves.length === options.numLeaves || !(mayHoldSplit(small) || mayHoldSplit(large))) continue;
    kernels.gatherGradients(rowsAt(small), small.count, packed, ordered);
    kernels.findSplits(
      rowsAt(small),
      small.count,
      ordered,
      small.slot,
      large.slot,
      small.sum,
      small.hessian,
      large.sum,
      large.hessian,
    );
    small.split = bestSplit(workspace, 0);
    large.split = bestSplit(workspace, 1);
  }

  const leafValue = (leaf: Leaf) => {
    const gradient = Number(leaf.sum >> BigInt(workspace.countBits)) * units.gradient;
    const hessian = weighted ? Number(leaf.hessian) * units.hessian : leaf.count;
    const shrunk = Math.sign(gradient) * Math.max(Math.abs(gradient) - options.lambdaL1, 0);
    const denominator = hessian + options.lambdaL2;
    return denominator > 0 ? (-shrunk / denominator) * options.learningRate : 0;
  };
  return { nodes, leaves: leaves.map((leaf) => ({ begin: leaf.begin, count: leaf.count, value: leafValue(leaf) })) };
}

interface Leaf {
  readonly begin: number;
  readonly count: number;
  readonly depth: number;
  /** Where its histogram is. */
  slot: number;
  /** Packed sum of the gradients and the count of its rows. */
  sum: bigint;
  /** Sum of the hessians, in fixed point; 0 where samples have no weights. */
  hessian: bigint;
  split: Split | undefined;
  /** The node it hangs from, -1 for the root. */
  readonly parent: number;
}

interface Split {
  readonly gain: number;
  readonly feature: number;
  readonly bin: number;
  readonly missingLeft: boolean;
  /** Sums of the left side. */
  readonly sum: bigint;
  readonly hessian: bigint;
}

function gainOf(leaf: Leaf): number {
  return leaf.split?.gain ?? 0;
}

/** The best split over all blocks of the smaller (0) or larger (1) leaf of the last `findSplits`; ties go to the first. */
function bestSplit({ memory, results, blocks }: Workspace, which: 0 | 1): Split | undefined {
  const first = results + which * blocks * RESULT_BYTES;
  const gains = new Float64Array(memory.buffer, first, blocks * (RESULT_BYTES / 8));
  let best = -1;
  let gain = 0;
  for (let block = 0; block < blocks; block++) {
    if (!(gains[block * 5] > gain)) continue;
    gain = gains[block * 5];
    best = block;
  }
  if (best < 0) return undefined;
  const sums = new BigInt64Array(memory.buffer, first + best * RESULT_BYTES + 8, 2);
  const [feature, bin, missingLeft] = new Int32Array(memory.buffer, first + best * RESULT_BYTES + 24, 3);
  return { gain, feature, bin, missingLeft: missingLeft !== 0, sum: sums[0], hessian: sums[1] };
}

/** Size of `Split` in assembly/trees. */
const RESULT_BYTES = 40;

/** The rows of each round: first those in the bag, `size` of them, then the others, both ascending. */
export function bagging(count: number, { baggingFraction, baggingFrequency }: TreeOptions, random: Random) {
  const bag = { rows: Uint32Array.from({ length: count }, (_, row) => row), size: count };
  if (baggingFrequency === 0 || baggingFraction === 1) return () => bag;
  const outside = new Uint32Array(count);
  return (round: number) => {
    if ((round - 1) % baggingFrequency !== 0) return bag;
    let inside = 0;
    let others = 0;
    for (let row = 0; row < count; row++) {
      if (random.uniform() < baggingFraction) bag.rows[inside++] = row;
      else outside[others++] = row;
    }
    bag.rows.set(outside.subarray(0, others), inside);
    bag.size = inside;
    return bag;
  };
}

/** Draws the features a tree may use, as a mask over the used features. */
export function featureChoice(used: number, fraction: number, random: Random): () => Uint8Array {
  const all = new Uint8Array(used).fill(1);
  if (fraction === 1) return () => all;
  const size = Math.max(Math.round(used * fraction), Math.min(2, used));
  const order = Uint32Array.from({ length: used }, (_, feature) => feature);
  return () => {
    const mask = new Uint8Array(used);
    for (const feature of random.shuffle(order).subarray(0, size)) mask[feature] = 1;
    return mask;
  };
}

/** Makes a model of grown trees: bins become thresholds, used features the user's, trees one run of nodes. */
export function flattenTrees(
  trees: readonly GrownTree[],
  used: readonly UsedFeature[],
  features: number,
  base: number,
): BoostedTrees {
  const start = new Int32Array(trees.length + 1);
  for (const [tree, { nodes }] of trees.entries()) start[tree + 1] = start[tree] + nodes.length;
  const nodes = trees.flatMap((tree) => tree.nodes);
  // A split of all values from the missing ones has no finite bound.
  const thresholds = nodes.map(({ feature, bin }) => Math.min(used[feature].bins.bounds[bin], Number.MAX_VALUE));
  // A tree has one leaf more than nodes.
  const child = (side: 'left' | 'right') =>
    trees.flatMap((tree, t) =>
      tree.nodes.map((node) => (node[side] >= 0 ? node[side] + start[t] : node[side] - start[t] - t)),
    );
  return {
    features,
    base,
    start,
    feature: Int32Array.from(nodes, ({ feature }) => used[feature].index),
    threshold: Float64Array.from(thresholds),
    // Where training saw no missing value of a feature, a missing value counts as 0.
    missingLeft: Uint8Array.from(nodes, ({ feature, missingLeft }, node) =>
      Number(used[feature].bins.missing ? missingLeft : thresholds[node] >= 0),
    ),
    left: Int32Array.from(child('left')),
    right: Int32Array.from(child('right')),
    gain: Float64Array.from(nodes, ({ gain }) => gain),
    value: Float64Array.from(trees.flatMap((tree) => tree.leaves.map(({ value }) => value))),
  };
}
