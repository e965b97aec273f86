import { z } from 'zod';
import type { Status } from '../problem.js';
import { describeStrategy } from '../strategy.js';
import { drawnFrom, oneHotDistribution } from './distribution.js';

/** A fixed mix of the tasks; optionally the main task alone towards the end. */
export const staticMix = describeStrategy({
  name: 'static',
  summary: 'A fixed mix of the main task and its siblings.',
  knobs: ['main', 'rest', 'until'],
  options: z.strictObject({
    main: z.number().min(0).max(1).default(0.5).describe('Probability of the main task.'),
    rest: z
      .enum(['uniform', 'near'])
      .default('uniform')
      .describe('How the rest is spread over the siblings: equally, or in inverse proportion to their distance.'),
    until: z
      .number()
      .min(0)
      .max(1)
      .default(1)
      .describe('Share of the updates after which only the main task is trained; 1: never.'),
  }),
  create({ main: share, rest, until }, problem, { random }) {
    const { tasks, main } = problem;
    const alone = oneHotDistribution(main, tasks.length);
    const mix = tasks.length === 1 ? alone : mixOf(tasks.length, main, share, rest);
    const distribution = ({ update, updates }: Status) => (update <= until * updates ? mix : alone);
    return drawnFrom('static', problem, random, distribution, until < 1 ? until : 0);
  },
});

function mixOf(K: number, main: number, share: number, rest: 'uniform' | 'near'): readonly number[] {
  const closeness = Array.from({ length: K }, (_, i) => {
    if (i === main) return 0;
    return rest === 'near' ? 1 / Math.abs(i - main) : 1;
  });
  const total = closeness.reduce((sum, weight) => sum + weight, 0);
  return closeness.map((weight, i) => (i === main ? share : ((1 - share) * weight) / total));
}
