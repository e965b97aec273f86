import { setImmediate } from 'node:timers/promises';
import { InputError } from '../../errors.js';
import { Random } from '../../random.js';
import { flattenTrees } from './flatten.js';
import { type GrownTree, growTree } from './grow.js';
import { startThreads } from './kernel.js';
import { meanLabel, meanSquaredError, packGradients } from './loss.js';
import type { BoostedTrees } from './model.js';
import { type TreeOptions, treeOptions } from './options.js';
import { bagging, featureChoice } from './sampling.js';
import { checkSamples, type Samples } from './table.js';
import { type BinnedSamples, openWorkspace, type Workspace } from './workspace.js';

export interface TreeTraining {
  readonly training: Samples;
  /** Watched after each round; with `earlyStoppingRounds` it decides how many trees are kept. */
  readonly validation?: Samples;
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
  checkSamples(training, 'training data');
  if (validation) {
    checkSamples(validation, 'validation data');
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
