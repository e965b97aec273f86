import type { UsedFeature } from './columns.js';
import type { GrownTree } from './grow.js';
import type { BoostedTrees } from './model.js';

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
