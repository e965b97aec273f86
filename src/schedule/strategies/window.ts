import { z } from 'zod';
import { taskIndex } from '../problem.js';
import { describeStrategy, taskKey } from '../strategy.js';
import { drawnFrom } from './distribution.js';

/** Uniform over the tasks in a window around k*, truncated at the ends (appendix E.2 (1)). */
export const window = describeStrategy({
  name: 'window',
  summary: 'Every task near a given one equally likely.',
  knobs: ['radius', 'around'],
  options: z.strictObject({
    around: taskKey.nullable().default(null).describe('Name or number of the middle, k*; null: the main task.'),
    radius: z.int().min(0).default(2).describe('Tasks on each side.'),
  }),
  create({ around, radius }, problem, { random }) {
    const { tasks, main } = problem;
    const middle = around === null ? main : taskIndex(tasks, around, 'strategy.around');
    const inside = tasks.map((_, i) => Math.abs(i - middle) <= radius);
    const count = inside.filter(Boolean).length;
    const distribution = inside.map((is) => (is ? 1 / count : 0));
    return drawnFrom('window', problem, random, () => distribution);
  },
});
