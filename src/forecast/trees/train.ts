import { setImmediate } from 'node:timers/promises';
import { InputError } from '../../errors.js';
import { Random } from '../../random.js';
import { bagging, featureChoice, flattenTrees, type GrownTree, growTree } from './grow.js';
import { startThreads, type TreeKernels } from './kernel.js';
import type { BoostedTrees } from './model.js';
import { checkLabelled, type LabelledTable, type TreeOptions, treeOptions } from './options.js';
import { type BinnedSamples, openWorkspace, type Workspace } from './workspace.js';

export interface TreeTraining {
  readonly training: LabelledTable;
  /** Watched after each round; with `earlyStoppingRounds` it decides how many trees are kept. */
  readonly validation?: LabelledTable;
  readonly options?: Partial<TreeOptions>;
}

export interface TreeRound {
  /** From 1. */
  readonly round: number;
  /** Mean squared error after this round. */
  readonly trainingLoss: number;
  readonly validationLoss?: number;
}

export interface TrainedTrees {
  /** With early stopping the trees up to the best round, else all. */
  readonly model: BoostedTrees;
  readonly rounds: readonly TreeRound[];
}

/**
 * Gradient-boosted regression trees with L2 loss, in LightGBM's manner. The result depends on the data, the options
 * and the seed, not on the number of threads. Between rounds the event loop gets its turn.
 */
export async function trainTrees({ training, validation, options: given }: TreeTraining): Promise<TrainedTrees> {
  const options = treeOptions(given);
  checkLabelled(training, 'training data');
  if (validation) {
    checkLabelled(validation, 'validation data');
    if (validation.table.features !== training.table.features) {
      const sizes = `${validation.table.features} features, the training data ${training.table.features}`;
      throw new InputError(`has ${sizes}`, { key: 'validation data' });
    }
  }
  if (options.earlyStoppingRounds > 0 && !validation) {
    throw new InputError('needs validation data', { key: 'earlyStoppingRounds' });
  }

  const workspace = openWorkspace(training, validation, options);
  try {
    await startThreads(Math.min(options.threads, workspace.blocks) - 1, workspace.memory);
    return await boost(workspace, training.table.features, options);
  } finally {
    workspace.kernels.stop();
  }
}

async function boost(workspace: Workspace, features: number, options: TreeOptions): Promise<TrainedTrees> {
  const { kernels, training, validation, rows, used } = workspace;
  const random = new Random(options.seed);
  const bags = bagging(training.count, options, random.fork('bagging'));
  const choose = featureChoice(used.length, options.featureFraction, random.fork('features'));

  const base = options.boostFromAverage ? meanLabel(training) : 0;
  training.scores.fill(base);
  validation?.scores.fill(base);

  const trees: GrownTree[] = [];
  const rounds: TreeRound[] = [];
  let best = { round: 0, trees: 0, loss: Infinity }; // by validation loss
  for (let round = 1; round <= options.rounds; round++) {
    const units = packGradients(workspace, options);
    const bag = bags(round);
    rows.set(bag.rows);
    const tree = growTree(workspace, bag.size, choose(), units, options);
    if (tree.nodes.length === 0) break; // nothing left to gain, in this round as in those to come
    trees.push(tree);
    addToScores(workspace, tree, bag.size);

    const validationLoss = validation && meanSquaredError(kernels, validation);
    rounds.push({ round, trainingLoss: meanSquaredError(kernels, training), validationLoss });
    if (validationLoss !== undefined && validationLoss < best.loss) {
      best = { round, trees: trees.length, loss: validationLoss };
    }
    if (options.earlyStoppingRounds > 0 && round - best.round >= options.earlyStoppingRounds) break;
    await setImmediate();
  }
  const kept = options.earlyStoppingRounds > 0 ? trees.slice(0, best.trees) : trees;
  return { model: flattenTrees(kept, used, features, base), rounds };
}

function addToScores(
  { kernels, training, validation, rows, nodes, values, used }: Workspace,
  tree: GrownTree,
  bagged: number,
) {
  for (const { begin, count, value } of tree.leaves) {
    kernels.addToLeaf(rows.byteOffset + begin * 4, count, value, training.scores.byteOffset);
  }
  const outside = training.count - bagged;
  if (outside === 0 && !validation) return;

  for (const [node, { feature, bin, missingLeft, left, right }] of tree.nodes.entries()) {
    const { bins } = used[feature];
    nodes.set([feature, bin, bins.missing && missingLeft ? bins.bounds.length : -1, left, right], node * 5);
  }
  values.set(tree.leaves.map(({ value }) => value));
  const walk = (list: number, n: number, { bins, count, scores }: BinnedSamples) =>
    kernels.addTree(list, n, bins, count, nodes.byteOffset, values.byteOffset, scores.byteOffset);
  if (outside > 0) walk(rows.byteOffset + bagged * 4, outside, training);
  if (validation) walk(0, validation.count, validation);
}

/** What one unit of the packed gradients and hessians stands for. */
export interface GradientUnits {
  readonly gradient: number;
  readonly hessian: number;
}

/**
 * Packs the gradients of the L2 loss, weight · (score − label), in fixed point: as fine as the sums over all rows can
 * be without overflow. With n rows a gradient of mean size keeps 62 − 2 log₂ n bits, 24 for half a million rows.
 */
export function packGradients(
  { kernels, training, packed, countBits }: Workspace,
  options: TreeOptions,
): GradientUnits {
  const { count, scores, labels, weights } = training;
  const addresses = [scores.byteOffset, labels.byteOffset, weights?.byteOffset ?? 0] as const;
  const magnitude = kernels.absoluteGradient(count, ...addresses);
  if (!Number.isFinite(magnitude)) {
    throw new InputError('the labels or weights are not finite, or too large to sum', { key: 'training data' });
  }
  const scale = finestScale(magnitude, count, 62 - countBits);
  const hessianScale = weights ? finestScale(total(weights), count, 62) : 1;
  const hessian = 1 / hessianScale;
  const { lambdaL1, lambdaL2, minGainToSplit, minSumHessianInLeaf, minDataInLeaf } = options;
  kernels.describeObjective(lambdaL1, lambdaL2, minGainToSplit, minSumHessianInLeaf, minDataInLeaf, hessian);
  kernels.packGradients(count, ...addresses, scale, hessianScale, packed);
  return { gradient: 1 / scale, hessian };
}

export function meanSquaredError(kernels: TreeKernels, { count, scores, labels, weights }: BinnedSamples): number {
  const error = kernels.squaredError(count, scores.byteOffset, labels.byteOffset, weights?.byteOffset ?? 0);
  return error / (weights ? total(weights) : count);
}

export function meanLabel({ labels, weights, count }: BinnedSamples): number {
  let sum = 0;
  for (let row = 0; row < count; row++) sum += labels[row] * (weights ? weights[row] : 1);
  return sum / (weights ? total(weights) : count);
}

/** The largest power of two s with s · magnitude + count (for the rounding) ≤ 2^bits. */
function finestScale(magnitude: number, count: number, bits: number): number {
  if (magnitude === 0) return 1;
  const exponent = Math.floor(Math.log2((2 ** bits - count) / magnitude));
  return 2 ** Math.max(-1000, Math.min(1000, exponent));
}

function total(values: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i];
  return sum;
}
