import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { InputError } from '../../errors.js';
import { builtFile } from '../../files.js';
import { MAX_PAGES, PAGE_BYTES } from '../../kernels.js';

/** A WebAssembly memory that several threads see. */
export interface SharedMemory {
  readonly buffer: SharedArrayBuffer;
}

/** The kernels of `assembly/trees.ts`; arrays are given by their address in the memory. */
export interface TreeKernels {
  describeData(
    blocks: number,
    rows: number,
    weighted: number,
    countBits: number,
    bins: number,
    binCounts: number,
    hasMissing: number,
    histograms: number,
    splittable: number,
    results: number,
  ): void;
  describeObjective(
    l1: number,
    l2: number,
    minGain: number,
    minHessian: number,
    minData: number,
    hessianUnit: number,
  ): void;
  binColumn(values: number, n: number, bounds: number, missingBin: number, out: number): void;
  sortValues(values: number, n: number, scratch: number, counters: number): void;
  absoluteGradient(n: number, scores: number, labels: number, weights: number): number;
  squaredError(n: number, scores: number, labels: number, weights: number): number;
  packGradients(
    n: number,
    scores: number,
    labels: number,
    weights: number,
    scale: number,
    hessianScale: number,
    out: number,
  ): void;
  gatherGradients(rows: number, n: number, packed: number, out: number): void;
  sumGradients(n: number, gradients: number, lane: 0 | 1): bigint;
  findSplits(
    leafRows: number,
    leafCount: number,
    leafGradients: number,
    smallSlot: number,
    largeSlot: number,
    smallSum: bigint,
    smallHessian: bigint,
    largeSum: bigint,
    largeHessian: bigint,
  ): void;
  accumulate(rows: number, n: number, bins: number, gradients: number, histogram: number): void;
  accumulateWeighted(rows: number, n: number, bins: number, gradients: number, histogram: number): void;
  subtract(from: number, other: number, bytes: number): void;
  partition(rows: number, n: number, column: number, bin: number, leftBin: number, scratch: number): number;
  addToLeaf(rows: number, n: number, value: number, scores: number): void;
  addTree(
    rows: number,
    n: number,
    bins: number,
    blockRows: number,
    nodes: number,
    values: number,
    scores: number,
  ): void;
  stop(): void;
}

/** Features of a block: the bins of a row of a block are 32 bytes. */
export const LANES = 32;
/** Slots of a feature's histogram. */
export const SLOTS = 256;
/** Addresses below this one belong to the kernels. */
export const FIRST_ADDRESS = 4096;

export function newSharedMemory(bytes: number): SharedMemory {
  const pages = Math.ceil(bytes / PAGE_BYTES);
  if (pages > MAX_PAGES) {
    const gigabytes = (bytes / 2 ** 30).toFixed(1);
    throw new InputError(
      `boosted trees would need ${gigabytes} GiB, at most 4 GiB fit; use fewer rows, features or leaves`,
    );
  }
  return new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
}

export function loadTreeKernels(memory: SharedMemory): TreeKernels {
  return new WebAssembly.Instance(treeModule(), { env: { memory } }).exports;
}

/**
 * Starts threads that take part in every `findSplits` on this memory until `stop` is called. Blocks of features are
 * claimed one by one, so that a thread that is held up delays the others by one block at most.
 */
export async function startThreads(count: number, memory: SharedMemory): Promise<void> {
  const start = async () => {
    const workerData = { module: treeModule(), memory };
    const worker = new Worker(THREAD, { eval: true, execArgv: [], workerData });
    await once(worker, 'online');
    worker.unref(); // does not keep the process alive
  };
  await Promise.all(Array.from({ length: count }, start));
}

// The whole life of a thread is in the kernel `serve`, so that it needs no module file of its own.
const THREAD = `
  const { module, memory } = require('node:worker_threads').workerData;
  new WebAssembly.Instance(module, { env: { memory } }).exports.serve();
`;

// The part of the WebAssembly API in use, which TypeScript knows only together with the whole DOM.
declare const WebAssembly: {
  readonly Memory: new (size: { initial: number; maximum: number; shared: true }) => SharedMemory;
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: TreeKernels };
};

let compiled: object | undefined;

function treeModule(): object {
  compiled ??= new WebAssembly.Module(readFileSync(builtFile('trees.wasm')));
  return compiled;
}
