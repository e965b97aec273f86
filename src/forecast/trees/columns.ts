import { InputError } from '../../errors.js';
import { Random } from '../../random.js';
import { type Bins, canSplit, findBins } from './bins.js';
import { LANES, SLOTS, type TreeKernels } from './kernel.js';
import type { TreeOptions } from './options.js';
import type { FeatureTable } from './table.js';

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
