/** Features of a block: the bins of a row of a block are 32 bytes. */
export const LANES: i32 = 32;
/** log2 of LANES. */
export const ROW_SHIFT: usize = 5;
/** Slots of a feature's histogram. */
export const SLOTS: usize = 256;
/** Address of the plan. */
export const PLAN: usize = 1024;

/** What every thread must know; lives at a fixed address of the shared memory. */
@unmanaged
export class Plan {
  /** Bumped for each job; idle workers sleep on it. */
  epoch: i32;
  /** Blocks of the current job that are finished; the caller sleeps on it. */
  done: i32;
  /** (epoch << 32) | next unclaimed block, so that a late worker can never claim a block of another job. */
  ticket: i64;
  stop: i32;

  // the data set
  blocks: i32;
  rows: u32;
  bins: usize;
  binCounts: usize;
  hasMissing: usize;
  histograms: usize;
  splittable: usize;
  results: usize;
  weighted: i32;
  countBits: i64;

  // the objective
  l1: f64;
  l2: f64;
  minGain: f64;
  minHessian: f64;
  minData: i32;
  gradientUnit: f64;
  hessianUnit: f64;

  // the job: rows of the smaller leaf, its slot, and the slot of its parent, which becomes the larger leaf's
  leafRows: usize;
  leafGradients: usize;
  leafCount: i32;
  smallSlot: i32;
  largeSlot: i32;
  smallSum: i64;
  smallHessian: i64;
  largeSum: i64;
  largeHessian: i64;
}

/** The best split of one leaf within one block of features. */
@unmanaged
export class Split {
  /** Loss reduction beyond `minGain`; 0 where the block holds no admissible split. */
  gain: f64;
  leftSum: i64;
  leftHessian: i64;
  feature: i32;
  bin: i32;
  missingLeft: i32;
  /** Keeps the reads of `warm` from being optimised away. */
  sink: u32;
}

// @ts-ignore: decorator
@inline
export function plan(): Plan {
  return changetype<Plan>(PLAN);
}

export function describeData(
  blocks: i32,
  rows: u32,
  weighted: i32,
  countBits: i32,
  bins: usize,
  binCounts: usize,
  hasMissing: usize,
  histograms: usize,
  splittable: usize,
  results: usize,
): void {
  const p = plan();
  p.blocks = blocks;
  p.rows = rows;
  p.weighted = weighted;
  p.countBits = countBits;
  p.bins = bins;
  p.binCounts = binCounts;
  p.hasMissing = hasMissing;
  p.histograms = histograms;
  p.splittable = splittable;
  p.results = results;
}

export function describeObjective(
  l1: f64,
  l2: f64,
  minGain: f64,
  minHessian: f64,
  minData: i32,
  hessianUnit: f64,
): void {
  const p = plan();
  p.l1 = l1;
  p.l2 = l2;
  p.minGain = minGain;
  p.minHessian = minHessian;
  p.minData = minData;
  p.hessianUnit = hessianUnit;
}
