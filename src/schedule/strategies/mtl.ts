import type { Random } from '../../random.js';
import type { Problem } from '../problem.js';
import type { Strategy } from '../strategy.js';
import { drawnFrom } from './distribution.js';

/** Multi-task learning: every task of 𝒯 is equally likely (section 3.3). */
export function mtl<Batch>(problem: Problem<Batch>, random: Random): Strategy<Batch> {
  const K = problem.tasks.length;
  const uniform = new Array<number>(K).fill(1 / K);
  return drawnFrom('mtl', problem, random, () => uniform);
}
