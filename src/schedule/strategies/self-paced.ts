import { type Problem, requireAbilities } from '../problem.js';
import { stateOnly } from '../snapshots.js';
import type { Strategy } from '../strategy.js';
import { oneHot, repeated } from './distribution.js';

export interface SelfPacedOptions {
  /** τ at the first update: percentage of a batch that is left out. Default 40. */
  readonly from?: number;
  /** τ towards the end. Default 0. */
  readonly to?: number;
}

/**
 * Self-paced learning of the main task (appendix E.2 (2)): of every batch the τ % of samples with the largest losses
 * are left out, where τ falls linearly over the training.
 */
export function selfPaced<Batch>(
  problem: Problem<Batch>,
  { from = 40, to = 0 }: SelfPacedOptions = {},
): Strategy<Batch> {
  const able = requireAbilities(problem, 'self-paced', 'mainLosses');
  const { tasks, main } = problem;
  return {
    name: 'self-paced',
    policy: async (batch) => repeated(oneHot(main, tasks.length), problem.sizeOf(batch)),
    async choose(batch, { update, updates }) {
      const tau = from + ((to - from) * (update - 1)) / updates;
      const weights = withoutHardest(await able.mainLosses(batch), tau);
      return { kind: 'sampled', tasks: new Int32Array(weights.length).fill(main), weights, entropy: 0 };
    },
    endEpisode: async () => ({}),
    capture: () => stateOnly(null),
    restore: () => {},
  };
}

/** 0 for the ⌊τ/100 · B⌋ samples with the largest losses (the later of equal ones first), 1 for the others. */
export function withoutHardest(losses: ArrayLike<number>, tau: number): Float32Array {
  const order = Array.from(losses, (_, i) => i).sort((i, j) => losses[j] - losses[i] || j - i);
  const weights = new Float32Array(losses.length).fill(1);
  for (const i of order.slice(0, Math.floor((tau * losses.length) / 100))) weights[i] = 0;
  return weights;
}
