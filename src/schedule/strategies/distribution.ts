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
): Strategy<Batch> {
  let random = seed.fork(name);
  return {
    name,
    policy: async (batch, status) => repeated(distribution(status), problem.sizeOf(batch)),
    choose: async (batch, status) => drawAll(distribution(status), problem.sizeOf(batch), random),
    endEpisode: async () => ({}),
    capture: () => stateOnly(random.state()),
    restore: ({ state }: Snapshot) => {
      random = Random.restore(state as RandomState);
    },
  };
}

/** `size` samples, each with a task of its own from one distribution. */
export function drawAll(distribution: readonly number[], size: number, random: Random): SampledChoice {
  const tasks = new Int32Array(size);
  for (let i = 0; i < size; i++) tasks[i] = random.categorical(distribution);
  return { kind: 'sampled', tasks, weights: new Float32Array(size).fill(1), entropy: entropyOf(distribution) };
}

/** The rows of a policy [size, K] that is the same for all samples. */
export function repeated(distribution: readonly number[], size: number): Float32Array {
  return Float32Array.from({ length: size * distribution.length }, (_, i) => distribution[i % distribution.length]);
}

/** −Σ p log p in nats. */
export function entropyOf(distribution: readonly number[]): number {
  return distribution.reduce((sum, p) => (p > 0 ? sum - p * Math.log(p) : sum), 0);
}

/** The distribution that is 1 at `index`. */
export function oneHot(index: number, length: number): readonly number[] {
  return Array.from({ length }, (_, i) => (i === index ? 1 : 0));
}

/** exp(xᵢ) / Σ exp(xⱼ). */
export function softmaxOf(logits: ArrayLike<number>): number[] {
  const largest = Math.max(...Array.from(logits));
  const powers = Array.from(logits, (logit) => Math.exp(logit - largest));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
}
