import { setImmediate } from 'node:timers/promises';
import { InputError } from '../../errors.js';
import { Random } from '../../random.js';
import { binTables, type UsedFeature } from './bins.js';
import { bagging, featureChoice, flattenTrees, type GrownTree, growTree } from './grow.js';
import {
  FIRST_ADDRESS,
  LANES,
  loadTreeKernels,
  newSharedMemory,
  SLOTS,
  startThreads,
  type TreeKernels,
} from './kernel.js';
import type { BoostedTrees } from './model.js';
import { checkLabelled, type LabelledTable, type TreeOptions, treeOptions } from './options.js';

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

    const validationLoss = validation && trainingError(kernels, validation);
    rounds.push({ round, trainingLoss: trainingError(kernels, training), validationLoss });
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

function trainingError(kernels: TreeKernels, { count, scores, labels, weights }: BinnedSamples): number {
  const error = kernels.squaredError(count, scores.byteOffset, labels.byteOffset, weights?.byteOffset ?? 0);
  return error / (weights ? total(weights) : count);
}

function meanLabel({ labels, weights, count }: BinnedSamples): number {
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

/** Everything one training keeps in shared memory: binned samples, gradients, histograms. Numbers are addresses. */
export interface Workspace {
  readonly memory: ReturnType<typeof newSharedMemory>;
  readonly kernels: TreeKernels;
  readonly used: readonly UsedFeature[];
  /** Blocks of 32 features. */
  readonly blocks: number;
  readonly training: BinnedSamples;
  readonly validation: BinnedSamples | undefined;
  /** Row indices, ordered by leaf while a tree grows. */
  readonly rows: Uint32Array;
  readonly packed: number;
  /** Packed gradients in the order of a leaf's rows. */
  readonly ordered: number;
  readonly scratch: number;
  /** Per histogram slot and feature, whether a split is admissible. [numLeaves, blocks · 32] */
  readonly splittable: Uint8Array;
  /** The best splits of the last two leaves looked at, per block: 40 bytes each. */
  readonly results: number;
  /** A tree in the form the kernel `addTree` reads. */
  readonly nodes: Int32Array;
  readonly values: Float64Array;
  /** Bits of the sample count in a packed gradient. */
  readonly countBits: number;
}

export interface BinnedSamples {
  readonly count: number;
  /** Bins by block, row and lane. [blocks, count, 32] */
  readonly bins: number;
  readonly scores: Float64Array;
  readonly labels: Float64Array;
  readonly weights: Float64Array | undefined;
}

/** Bins the samples and lays out the memory of a training. */
function openWorkspace(
  training: LabelledTable,
  validation: LabelledTable | undefined,
  options: TreeOptions,
): Workspace {
  const at = layOut(training, validation, options);
  const memory = newSharedMemory(at.end);
  const kernels = loadTreeKernels(memory);
  const { buffer } = memory;

  const used = binTables(training.table, validation?.table, options, {
    kernels,
    buffer,
    training: at.training.bins,
    validation: at.validation?.bins ?? 0,
    bounds: at.bounds,
    // Free until the first tree grows.
    column: at.scratch,
    sample: at.ordered,
    sortScratch: at.packed,
    counters: at.histograms,
  });
  const blocks = Math.ceil(used.length / LANES);
  const rows = training.table.rows;
  const countBits = Math.floor(Math.log2(rows)) + 1;
  new Int32Array(buffer, at.binCounts, used.length).set(used.map(({ bins }) => bins.counts.length));
  new Uint8Array(buffer, at.hasMissing, used.length).set(used.map(({ bins }) => Number(bins.missing)));
  kernels.describeData(
    blocks,
    rows,
    training.weights === undefined ? 0 : 1,
    countBits,
    at.training.bins,
    at.binCounts,
    at.hasMissing,
    at.histograms,
    at.splittable,
    at.results,
  );
  return {
    memory,
    kernels,
    used,
    blocks,
    training: binnedSamples(training, at.training, buffer),
    validation: validation && at.validation && binnedSamples(validation, at.validation, buffer),
    rows: new Uint32Array(buffer, at.rows, rows),
    packed: at.packed,
    ordered: at.ordered,
    scratch: at.scratch,
    splittable: new Uint8Array(buffer, at.splittable, options.numLeaves * blocks * LANES),
    results: at.results,
    nodes: new Int32Array(buffer, at.nodes, options.numLeaves * 5),
    values: new Float64Array(buffer, at.values, options.numLeaves),
    countBits,
  };
}

/** Addresses for every feature of the table: pages that are never written cost nothing. */
function layOut(training: LabelledTable, validation: LabelledTable | undefined, { numLeaves }: TreeOptions) {
  const rows = training.table.rows;
  const features = Math.ceil(training.table.features / LANES) * LANES;
  const words = training.weights === undefined ? 1 : 2; // i64 per gradient and per histogram slot
  let end = FIRST_ADDRESS;
  const place = (bytes: number) => {
    const address = end;
    end += Math.ceil(bytes / 64) * 64; // each on a cache line
    return address;
  };
  const placeSamples = ({ table, weights }: LabelledTable): SampleAddresses => ({
    labels: place(table.rows * 8),
    scores: place(table.rows * 8),
    weights: weights === undefined ? 0 : place(table.rows * 8),
    bins: place(table.rows * features),
  });
  const at = {
    training: placeSamples(training),
    validation: validation && placeSamples(validation),
    rows: place(rows * 4),
    scratch: place(Math.max(rows, validation?.table.rows ?? 0) * 4),
    packed: place(rows * words * 8),
    ordered: place(rows * words * 8),
    bounds: place(SLOTS * 8),
    binCounts: place(features * 4),
    hasMissing: place(features),
    splittable: place(numLeaves * features),
    results: place((2 * features * 40) / LANES),
    nodes: place(numLeaves * 20),
    values: place(numLeaves * 8),
    histograms: place(numLeaves * features * SLOTS * words * 8),
  };
  return { ...at, end };
}

interface SampleAddresses {
  readonly labels: number;
  readonly scores: number;
  readonly weights: number;
  readonly bins: number;
}

function binnedSamples(samples: LabelledTable, at: SampleAddresses, buffer: SharedArrayBuffer): BinnedSamples {
  const count = samples.table.rows;
  const labels = new Float64Array(buffer, at.labels, count);
  labels.set(samples.labels);
  const weights = samples.weights && new Float64Array(buffer, at.weights, count);
  weights?.set(samples.weights ?? []);
  return { count, bins: at.bins, scores: new Float64Array(buffer, at.scores, count), labels, weights };
}
