import { z } from 'zod';
import { type Problem, requireAbilities } from '../problem.js';
import { stateOnly } from '../snapshots.js';
import { describeStrategy, type Strategy } from '../strategy.js';
import { oneHotDistribution, repeated } from './distribution.js';

const percentage = z.number().min(0).lt(100);

/**
 * Self-paced learning of the main task (appendix E.2 (2)): in every batch the τ % of samples with the largest losses
 * are left out, where τ changes linearly over the training.
 */
export const selfPaced = describeStrategy({
  name: 'self-paced',
  summary: 'The main task without the hardest samples of each batch.',
  title: 'SPL',
  sees: 'losses',
  extraCost: 'a forward pass',
  singleTask: true,
  knobs: ['from', 'to'],
  options: z.strictObject({
    from: percentage.default(40).describe('τ at the first update: percentage of a batch to leave out.'),
    to: percentage.default(0).describe('τ towards the end.'),
  }),
  create: (options, problem) => selfPacedMain(problem, options),
});

function selfPacedMain<Batch>(problem: Problem<Batch>, { from, to }: { from: number; to: number }): Strategy<Batch> {
  const able = requireAbilities(problem, 'self-paced', 'mainLosses');
  const { tasks, main } = problem;
  return {
    name: 'self-paced',
    settlesAt: from === to ? 0 : 1,
    probabilities: async (batch) => repeated(oneHotDistribution(main, tasks.length), problem.sizeOf(batch)),
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

/** 0 for the ⌊τ/100 · B⌋ samples with the largest losses (of equal ones the later first), 1 for the others. */
export function withoutHardest(losses: ArrayLike<number>, tau: number): Float32Array {
  const order = Array.from(losses, (_, i) => i).sort((i, j) => losses[j] - losses[i] || j - i);
  const weights = new Float32Array(losses.length).fill(1);
  for (const i of order.slice(0, Math.floor((tau * losses.length) / 100))) weights[i] = 0;
  return weights;
}
