import { binTables, type UsedFeature } from './bins.js';
import { FIRST_ADDRESS, LANES, loadTreeKernels, newSharedMemory, SLOTS, type TreeKernels } from './kernel.js';
import type { LabelledTable, TreeOptions } from './options.js';

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
export function openWorkspace(
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
