import type { Random } from '../../random.js';
import type { Problem } from '../problem.js';
import type { Strategy } from '../strategy.js';
import { drawnFrom } from './distribution.js';

export interface AnnealingOptions {
  /** Which numbers m the final distribution prefers. Default `larger`. */
  readonly prefer?: 'larger' | 'smaller';
}

/** Anneals linearly from the uniform distribution to one that prefers larger m (appendix E.2 (3)). */
export function annealing<Batch>(
  problem: Problem<Batch>,
  random: Random,
  { prefer = 'larger' }: AnnealingOptions = {},
): Strategy<Batch> {
  const numbers = problem.tasks.map(({ number }) => number);
  const ends = Math.min(...numbers) + Math.max(...numbers);
  const preference = prefer === 'larger' ? numbers : numbers.map((m) => ends - m);
  return drawnFrom('annealing', problem, random, ({ update, updates }) =>
    annealedDistribution(preference, update / updates),
  );
}

/** p_t(m) = (1 − t/t_max)·1/K + t/t_max · m/Σᵢ i, for `progress` = t/t_max. */
export function annealedDistribution(numbers: readonly number[], progress: number): number[] {
  const total = numbers.reduce((sum, m) => sum + m, 0);
  return numbers.map((m) => (1 - progress) / numbers.length + (progress * m) / total);
}
