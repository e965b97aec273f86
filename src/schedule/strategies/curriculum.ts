import type { Random } from '../../random.js';
import type { Problem } from '../problem.js';
import type { Strategy } from '../strategy.js';
import { drawnFrom, oneHot } from './distribution.js';

export interface CurriculumOptions {
  /** Which end of the list of tasks is the easiest: `last` for waits, `first` for days ahead. Default `last`. */
  readonly easiest?: 'first' | 'last';
  /** Where the curriculum ends: at the main task, or at the hardest one. Default `main`. */
  readonly until?: 'main' | 'hardest';
}

/** Curriculum transfer learning: from the easiest task to the main task in stages of equal length (appendix A.2). */
export function curriculum<Batch>(
  problem: Problem<Batch>,
  random: Random,
  { easiest = 'last', until = 'main' }: CurriculumOptions = {},
): Strategy<Batch> {
  const K = problem.tasks.length;
  const [start, hardest] = easiest === 'last' ? [K - 1, 0] : [0, K - 1];
  const end = until === 'main' ? problem.main : hardest;
  return drawnFrom('curriculum', problem, random, ({ update, updates }) =>
    oneHot(curriculumTask(start, end, update, updates), K),
  );
}

/**
 * m = M − ⌊(t − 1)/t_max · (M − k + 1)⌋ for a start M and an end k ≤ M, and its mirror image for an end above the
 * start. The division comes last, so that no rounding moves the border of a stage.
 */
export function curriculumTask(start: number, end: number, t: number, tMax: number): number {
  const stage = Math.floor(((t - 1) * (Math.abs(end - start) + 1)) / tMax);
  return start + Math.sign(end - start) * stage;
}
