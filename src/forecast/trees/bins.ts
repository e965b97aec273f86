import { InputError } from '../../errors.js';
import { Random } from '../../random.js';
import { LANES, SLOTS, type TreeKernels } from './kernel.js';
import type { FeatureTable, TreeOptions } from './options.js';

/** How the values of a feature fall into bins. */
export interface Bins {
  /** Upper bounds, ascending, the last one +∞: a value is in the first bin whose bound is not below it. */
  readonly bounds: Float64Array;
  /** Whether one more bin, the last, holds the missing values. */
  readonly missing: boolean;
  /** Sampled values in each bin. */
  readonly counts: Int32Array;
}

/**
 * Bin boundaries as LightGBM finds them (`BinMapper::FindBin`): zero has its own bin, the rest is shared
 * between the negative and the positive values in proportion to their number, and each side is cut greedily.
 *
 * @param sorted values of a sample of rows, ascending, without the missing ones
 * @param missingCount missing values in that sample; if there are any, one of the `maxBin` bins is theirs
 */
export function findBins(sorted: Float32Array, missingCount: number, maxBin: number, minDataInBin: number): Bins {
  const missing = missingCount > 0;
  const values = distinct(sorted);
  const bounds = boundsAroundZero(values, missing ? maxBin - 1 : maxBin, minDataInBin);
  const counts = new Int32Array(bounds.length + (missing ? 1 : 0));
  let bin = 0;
  for (let i = 0; i < values.count.length; i++) {
    while (values.value[i] > bounds[bin]) bin++;
    counts[bin] += values.count[i];
  }
  if (missing) counts[bounds.length] = missingCount;
  return { bounds: Float64Array.from(bounds), missing, counts };
}

/** Whether some threshold leaves at least `minimum` sampled values on either side. */
export function canSplit({ counts }: Bins, minimum: number): boolean {
  const total = counts.reduce((sum, count) => sum + count, 0);
  let left = 0;
  for (const count of counts.subarray(0, -1)) {
    left += count;
    if (left >= minimum && total - left >= minimum) return true;
  }
  return false;
}

interface Distinct {
  readonly value: Float64Array;
  readonly count: Int32Array;
}

/** Values within this distance of 0 count as 0; LightGBM's kZeroThreshold. */
const ZERO = Math.fround(1e-35);

function distinct(sorted: Float32Array): Distinct {
  const value = new Float64Array(sorted.length);
  const count = new Int32Array(sorted.length);
  let n = 0;
  for (let i = 0; i < sorted.length; i++) {
    if (n === 0 || sorted[i] !== value[n - 1]) value[n++] = sorted[i];
    count[n - 1]++;
  }
  return { value: value.subarray(0, n), count: count.subarray(0, n) };
}

function boundsAroundZero({ value, count }: Distinct, maxBin: number, minDataInBin: number): number[] {
  const n = value.length;
  let negatives = 0; // distinct values below zero
  while (negatives < n && value[negatives] <= -ZERO) negatives++;
  let positives = negatives; // index of the first above zero
  while (positives < n && value[positives] <= ZERO) positives++;
  const below = sum(count, 0, negatives);
  const above = sum(count, positives, n);

  const bounds: number[] = [];
  if (negatives > 0 && maxBin > 1) {
    const share = Math.max(1, Math.trunc((below / (below + above)) * (maxBin - 1)));
    bounds.push(...greedyBounds(value.subarray(0, negatives), count, share, below, minDataInBin));
    bounds[bounds.length - 1] = -ZERO;
  }
  const rest = maxBin - 1 - bounds.length;
  if (positives < n && rest > 0) {
    bounds.push(ZERO);
    bounds.push(...greedyBounds(value.subarray(positives), count.subarray(positives), rest, above, minDataInBin));
  } else {
    bounds.push(Infinity);
  }
  return bounds;
}

/** Cuts distinct values into at most `maxBin` bins of about equal counts; a frequent value gets its own bin. */
function greedyBounds(
  value: Float64Array,
  count: Int32Array,
  maxBin: number,
  total: number,
  minDataInBin: number,
): number[] {
  const n = value.length;
  const bounds: number[] = [];
  const cutAfter = (i: number) => bounds.push((value[i] + value[i + 1]) / 2);
  if (n <= maxBin) {
    let inBin = 0;
    for (let i = 0; i < n - 1; i++) {
      inBin += count[i];
      if (inBin >= minDataInBin) {
        cutAfter(i);
        inBin = 0;
      }
    }
    return [...bounds, Infinity];
  }

  const limit = Math.max(1, Math.min(maxBin, Math.trunc(total / minDataInBin)));
  const frequentFrom = total / limit;
  let restBins = limit;
  let rest = total;
  for (let i = 0; i < n; i++) {
    if (count[i] < frequentFrom) continue;
    restBins--;
    rest -= count[i];
  }
  let mean = rest / restBins;
  let inBin = 0;
  for (let i = 0; i < n - 1 && bounds.length < limit - 1; i++) {
    const frequent = count[i] >= frequentFrom;
    if (!frequent) rest -= count[i];
    inBin += count[i];
    const nextFrequent = count[i + 1] >= frequentFrom;
    if (frequent || inBin >= mean || (nextFrequent && inBin >= Math.max(1, mean * 0.5))) {
      cutAfter(i);
      inBin = 0;
      if (!frequent) mean = rest / --restBins;
    }
  }
  return [...bounds, Infinity];
}

function sum(values: Int32Array, from: number, to: number): number {
  let total = 0;
  for (let i = from; i < to; i++) total += values[i];
  return total;
}

/** A feature that trees may split on. */
export interface UsedFeature {
  /** Its index in the user's table. */
  readonly index: number;
  readonly bins: Bins;
}

/** Where binning works: addresses in the kernels' memory. */
export interface BinningSpace {
  readonly kernels: TreeKernels;
  readonly buffer: SharedArrayBuffer;
  /** Bins of the training and of the validation table. */
  readonly training: number;
  readonly validation: number;
  /** Room for 256 bounds (f64), for one column of either table, twice for the sampled values (f32), 256 u32. */
  readonly bounds: number;
  readonly column: number;
  readonly sample: number;
  readonly sortScratch: number;
  readonly counters: number;
}

/**
 * Reads the training table column by column and writes its bins, then those of the validation table with the same
 * boundaries. Features that no split could use are left out.
 */
export function binTables(
  training: FeatureTable,
  validation: FeatureTable | undefined,
  options: TreeOptions,
  space: BinningSpace,
): UsedFeature[] {
  const column = new Float32Array(space.buffer, space.column, training.rows);
  const sample = sampleRows(training.rows, options);
  const minimum = (options.minDataInLeaf * sample.length) / training.rows;
  const used: UsedFeature[] = [];
  for (let index = 0; index < training.features; index++) {
    training.readColumn(index, column);
    checkFinite(column, index);
    const bins = binsOfColumn(column, sample, options, space);
    if (!canSplit(bins, minimum)) continue;
    writeBins(training.rows, bins, used.length, space.training, space);
    used.push({ index, bins });
  }
  if (validation) {
    const values = new Float32Array(space.buffer, space.column, validation.rows);
    for (const [lane, { index, bins }] of used.entries()) {
      validation.readColumn(index, values);
      writeBins(validation.rows, bins, lane, space.validation, space);
    }
  }
  return used;
}

/** Rows from which bin boundaries are found: all of them, or a random sample in ascending order. */
function sampleRows(rows: number, { binSampleRows, seed }: TreeOptions): Uint32Array {
  const sample = new Uint32Array(Math.min(rows, binSampleRows));
  if (rows <= binSampleRows) return sample.map((_, row) => row);
  const random = new Random(seed).fork('bins');
  // Knuth's selection sampling (TAOCP 3.4.2, algorithm S).
  for (let row = 0, taken = 0; taken < sample.length; row++) {
    if ((rows - row) * random.uniform() < sample.length - taken) sample[taken++] = row;
  }
  return sample;
}

function checkFinite(column: Float32Array, feature: number): void {
  const row = Math.max(column.indexOf(Infinity), column.indexOf(-Infinity));
  if (row < 0) return;
  throw new InputError(`row ${row} is infinite, expected a finite number or NaN for a missing one`, {
    key: `feature ${feature}`,
  });
}

function binsOfColumn(
  column: Float32Array,
  sample: Uint32Array,
  { maxBin, minDataInBin }: TreeOptions,
  { kernels, buffer, sample: address, sortScratch, counters }: BinningSpace,
): Bins {
  const values = new Float32Array(buffer, address, sample.length);
  let n = 0;
  for (let i = 0; i < sample.length; i++) {
    const value = column[sample[i]];
    if (!Number.isNaN(value)) values[n++] = value;
  }
  kernels.sortValues(address, n, sortScratch, counters);
  return findBins(values.subarray(0, n), sample.length - n, maxBin, minDataInBin);
}

function writeBins(rows: number, { bounds, missing }: Bins, lane: number, table: number, space: BinningSpace): void {
  new Float64Array(space.buffer, space.bounds, SLOTS).fill(Infinity).set(bounds);
  const out = table + Math.floor(lane / LANES) * rows * LANES + (lane % LANES);
  space.kernels.binColumn(space.column, rows, space.bounds, missing ? bounds.length : -1, out);
}
