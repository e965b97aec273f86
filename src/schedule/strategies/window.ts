import type { Random } from '../../random.js';
import { type Problem, taskIndex } from '../problem.js';
import type { Strategy } from '../strategy.js';
import { drawnFrom } from './distribution.js';

export interface WindowOptions {
  /** k*, the middle of the window, by name or number. Default the main task. */
  readonly around?: string | number | null;
  /** Tasks on each side of the middle, as far as there are any. Default 2. */
  readonly radius?: number;
}

/** Uniform over the tasks in a window around k* (appendix E.2 (1)). */
export function window<Batch>(
  problem: Problem<Batch>,
  random: Random,
  { around = null, radius = 2 }: WindowOptions = {},
): Strategy<Batch> {
  const { tasks, main } = problem;
  const middle = around === null ? main : taskIndex(tasks, around, 'strategy.around');
  const inside = tasks.map((_, i) => Math.abs(i - middle) <= radius);
  const count = inside.filter(Boolean).length;
  const distribution = inside.map((is) => (is ? 1 / count : 0));
  return drawnFrom('window', problem, random, () => distribution);
}
