import type { Random } from '../../random.js';

/** Draws T ~ P(φ(I; ω)) for every row of probabilities [N, K], by inversion with one uniform number a row. */
export function sampleRows(probabilities: Float32Array, random: Random, out: Int32Array): void {
  const K = probabilities.length / out.length;
  for (let i = 0, row = 0; i < out.length; i++, row += K) {
    // Rows sum to one up to rounding: the last task takes what is left.
    let left = random.uniform();
    let task = 0;
    while (task < K - 1) {
      left -= probabilities[row + task];
      if (left < 0) break;
      task++;
    }
    // A task of probability 0 is never drawn, not even by what rounding has left over.
    while (probabilities[row + task] === 0) task--;
    out[i] = task;
  }
}

/** Index of the largest probability of every row, the first of equal ones. */
export function argmaxRows(probabilities: Float32Array, out: Int32Array): void {
  const K = probabilities.length / out.length;
  for (let i = 0, row = 0; i < out.length; i++, row += K) {
    let best = 0;
    for (let task = 1; task < K; task++) if (probabilities[row + task] > probabilities[row + best]) best = task;
    out[i] = best;
  }
}
