import type { Random } from '../../random.js';
import { type Problem, taskIndex } from '../problem.js';
import type { Strategy } from '../strategy.js';
import { drawnFrom, oneHot } from './distribution.js';

export interface FixedOptions {
  /** The only task that is trained, by name or number. Default the main task. */
  readonly task?: string | number | null;
}

/** One task for every sample: plain wait-k, plain day-k. */
export function fixed<Batch>(problem: Problem<Batch>, random: Random, options: FixedOptions = {}): Strategy<Batch> {
  const { tasks, main } = problem;
  const index = options.task == null ? main : taskIndex(tasks, options.task, 'strategy.task');
  const distribution = oneHot(index, tasks.length);
  return drawnFrom('fixed', problem, random, () => distribution);
}
