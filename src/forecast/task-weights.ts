import type { Value } from '../tensor/index.js';
import type { Network } from './network.js';

/**
 * What each task counts in an update, [B, K], from the shares of the tasks [B, K] that a strategy chose (rows sum to one)
 * and the weight wᵢ of each sample:
 *
 *     replace   wᵢ · share_{ik} / Σw
 *     add       wᵢ / Σw for the main task, wᵢ · auxiliaryWeight · share_{ik} / Σw for the others
 *     all       wᵢ · (1 + share_{ik}) / Σw for the main task, times auxiliaryWeight for the others
 */
export function weightMatrix(
  shares: Float32Array,
  weights: Float32Array,
  main: number,
  { chosen, auxiliaryWeight }: { chosen: 'replace' | 'add' | 'all'; auxiliaryWeight: number },
): Float32Array {
  const K = shares.length / weights.length;
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return shares.map((share, at) => {
    const weight = weights[Math.floor(at / K)] / total;
    if (chosen === 'replace') return weight * share;
    const scale = at % K === main ? weight : weight * auxiliaryWeight;
    if (chosen === 'all') return scale * (1 + share);
    return at % K === main ? scale : scale * share;
  });
}

/** The rows on which a network computes an update. */
export interface NetworkRows {
  /** Place in the batch of each row's sample; undefined: a row for each sample, in order. */
  readonly rows?: Int32Array;
  /** Task of each row, where a row has one. */
  readonly tasks: Int32Array;
  readonly labels: Value;
  readonly weights: Value;
}

/**
 * With the sharing `embedding` a row for each sample and task that counts, else a row a sample and a column a task.
 *
 * @param labels [B, K]
 * @param matrix [B, K]
 */
export function networkRows(
  { sharing }: Pick<Network, 'sharing'>,
  labels: Float32Array,
  matrix: Float32Array,
  K: number,
): NetworkRows {
  if (sharing !== 'embedding') {
    // A label that is unknown must not spoil the sum, not even with the weight 0.
    const known = matrix.map((weight, at) => (Number.isNaN(labels[at]) ? 0 : weight));
    const shape = [matrix.length / K, K];
    const values = labels.map((label) => label || 0);
    return { tasks: new Int32Array(), labels: { data: values, shape }, weights: { data: known, shape } };
  }
  const places = Int32Array.from(matrix.keys()).filter((at) => matrix[at] > 0 && !Number.isNaN(labels[at]));
  const shape = [places.length, 1];
  return {
    rows: places.map((at) => Math.floor(at / K)),
    tasks: places.map((at) => at % K),
    labels: { data: Float32Array.from(places, (at) => labels[at]), shape },
    weights: { data: Float32Array.from(places, (at) => matrix[at]), shape },
  };
}
