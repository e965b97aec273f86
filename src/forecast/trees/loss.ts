import { InputError } from '../../errors.js';
import type { TreeKernels } from './kernel.js';
import type { TreeOptions } from './options.js';
import type { BinnedSamples, Workspace } from './workspace.js';

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
