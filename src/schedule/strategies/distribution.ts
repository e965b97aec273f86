import { Random, type RandomState } from '../../random.js';
import type { Snapshot } from '../../run/index.js';
import type { Problem, Status } from '../problem.js';
import { stateOnly } from '../snapshots.js';
import type { SampledChoice, Strategy } from '../strategy.js';

/**
 * A strategy that learns nothing: each sample's task is drawn from a distribution that depends on the update number
 * alone.
 */
export function drawnFrom<Batch>(
  name: string,
  problem: Problem<Batch>,
  seed: Random,
  distribution: (status: Status) => readonly number[],
  settlesAt = 0,
): Strategy<Batch> {
  let random = seed.fork(name);
  return {
    name,
    settlesAt,
    probabilities: async (batch, status) => repeated(distribution(status), problem.sizeOf(batch)),
    choose: async (batch, status) => drawAll(distribution(status), problem.sizeOf(batch), random),
    endEpisode: async () => ({}),
    capture: () => stateOnly(random.state()),
    restore: ({ state }: Snapshot) => {
      random = Random.restore(state as RandomState);
    },
  };
}

/** A task for each of `size` samples, drawn from one distribution. */
export function drawAll(distribution: readonly number[], size: number, random: Random): SampledChoice {
  const tasks = new Int32Array(size);
  for (let i = 0; i < size; i++) tasks[i] = random.categorical(distribution);
  return { kind: 'sampled', tasks, weights: new Float32Array(size).fill(1), entropy: entropyOf(distribution) };
}

/** Probabilities [size, K] that are the same for all samples. */
export function repeated(distribution: readonly number[], size: number): Float32Array {
  return Float32Array.from({ length: size * distribution.length }, (_, i) => distribution[i % distribution.length]);
}

/** −Σ p log p in nats. */
export function entropyOf(distribution: readonly number[]): number {
  return distribution.reduce((sum, p) => (p > 0 ? sum - p * Math.log(p) : sum), 0);
}

/** The distribution that is 1 at `index`. */
export function oneHotDistribution(index: number, length: number): readonly number[] {
  return Array.from({ length }, (_, i) => (i === index ? 1 : 0));
}

/** exp(xᵢ) / Σ exp(xⱼ). */
export function softmaxOf(logits: ArrayLike<number>): number[] {
  const largest = Math.max(...Array.from(logits));
  const powers = Array.from(logits, (logit) => Math.exp(logit - largest));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
}

/** Draws T ~ P(φ(I; ω)) for every row of probabilities [N, K], by inversion with one uniform number per row. */
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
    // A task of probability 0 is never drawn, not even because of rounding.
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
