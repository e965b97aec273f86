import { z } from 'zod';
import type { Status } from '../problem.js';
import { describeStrategy } from '../strategy.js';
import { drawnFrom } from './distribution.js';

/** Anneals linearly from the uniform distribution to one that prefers larger m (appendix E.2 (3)). */
export const annealing = describeStrategy({
  name: 'annealing',
  summary: 'From all tasks equally to a preference for large numbers.',
  knobs: ['prefer'],
  options: z.strictObject({
    prefer: z.enum(['larger', 'smaller']).default('larger').describe('Task numbers that are preferred at the end.'),
  }),
  create({ prefer }, problem, { random }) {
    const numbers = problem.tasks.map(({ number }) => number);
    const ends = Math.min(...numbers) + Math.max(...numbers);
    const preference = prefer === 'larger' ? numbers : numbers.map((m) => ends - m);
    const distribution = ({ update, updates }: Status) => annealedDistribution(preference, update / updates);
    return drawnFrom('annealing', problem, random, distribution, 1);
  },
});

/** p_t(m) = (1 − t/t_max)·1/K + t/t_max · m/Σᵢ i, for `progress` = t/t_max. */
export function annealedDistribution(numbers: readonly number[], progress: number): number[] {
  const total = numbers.reduce((sum, m) => sum + m, 0);
  return numbers.map((m) => (1 - progress) / numbers.length + (progress * m) / total);
}
