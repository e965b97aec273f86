import type { Random } from '../../random.js';
import type { Problem } from '../problem.js';
import type { Strategy } from '../strategy.js';
import { drawnFrom, oneHot } from './distribution.js';

export interface StaticOptions {
  /** Probability of the main task. Default ½. */
  readonly main?: number;
  /** How the rest goes to the siblings: to all alike, or in inverse proportion to their distance. Default `uniform`. */
  readonly rest?: 'uniform' | 'near';
  /** Share of the updates after which the main task is trained alone. Default 1: never. */
  readonly until?: number;
}

/** A fixed mix of the tasks, and in the end perhaps the main task alone. */
export function staticMix<Batch>(
  problem: Problem<Batch>,
  random: Random,
  { main: share = 0.5, rest = 'uniform', until = 1 }: StaticOptions = {},
): Strategy<Batch> {
  const { tasks, main } = problem;
  const alone = oneHot(main, tasks.length);
  const mix = tasks.length === 1 ? alone : mixOf(tasks.length, main, share, rest);
  return drawnFrom('static', problem, random, ({ update, updates }) => (update <= until * updates ? mix : alone));
}

function mixOf(K: number, main: number, share: number, rest: 'uniform' | 'near'): readonly number[] {
  const closeness = Array.from({ length: K }, (_, i) => {
    if (i === main) return 0;
    return rest === 'near' ? 1 / Math.abs(i - main) : 1;
  });
  const total = closeness.reduce((sum, weight) => sum + weight, 0);
  return closeness.map((weight, i) => (i === main ? share : ((1 - share) * weight) / total));
}
