import { z } from 'zod';
import { taskIndex } from '../problem.js';
import { describeStrategy, taskKey } from '../strategy.js';
import { drawnFrom, oneHotDistribution } from './distribution.js';

/** One task for every sample: plain wait-k, plain day-k. */
export const fixed = describeStrategy({
  name: 'fixed',
  summary: 'One task only.',
  title: 'single task',
  titles: { translation: 'wait-k' },
  role: 'baseline',
  singleTask: true,
  knobs: ['task'],
  options: z.strictObject({
    task: taskKey.nullable().default(null).describe('Name or number of the task; null: the main task.'),
  }),
  create({ task }, problem, { random }) {
    const { tasks, main } = problem;
    const index = task === null ? main : taskIndex(tasks, task, 'strategy.task');
    const distribution = oneHotDistribution(index, tasks.length);
    return drawnFrom('fixed', problem, random, () => distribution);
  },
});
