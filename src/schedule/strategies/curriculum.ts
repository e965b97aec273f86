import { z } from 'zod';
import { InputError } from '../../errors.js';
import type { CurriculumOrder, Problem, Status } from '../problem.js';
import { describeStrategy } from '../strategy.js';
import { drawnFrom, oneHotDistribution } from './distribution.js';

/**
 * Curriculum transfer learning: from the easiest task on in stages of equal length, in translation to the main task
 * (appendix A.2), for stocks from day 1 to the hardest (section 5).
 */
export const curriculum = describeStrategy({
  name: 'curriculum',
  summary: 'From the easiest task to the main or the hardest one.',
  title: 'CL',
  options: z.strictObject({
    easiest: z
      .enum(['first', 'last'])
      .nullable()
      .default(null)
      .describe('Which end of the task list is the easiest; null: the problem decides (waits: last, days: first).'),
    until: z
      .enum(['main', 'hardest'])
      .nullable()
      .default(null)
      .describe('Task of the last stage; null: as in the paper (waits: main, days: hardest).'),
  }),
  create(options, problem, { random }) {
    const K = problem.tasks.length;
    const { start, end } = curriculumEnds(problem, options);
    const stages = Math.abs(end - start) + 1;
    const distribution = ({ update, updates }: Status) =>
      oneHotDistribution(curriculumTask(start, end, update, updates), K);
    return drawnFrom('curriculum', problem, random, distribution, 1 - 1 / stages);
  },
});

/** Options left at null come from the problem. */
type Ends = { readonly [K in keyof CurriculumOrder]: CurriculumOrder[K] | null };

function curriculumEnds<Batch>(problem: Problem<Batch>, options: Ends): { start: number; end: number } {
  const { tasks, main } = problem;
  const K = tasks.length;
  if (K === 1) return { start: 0, end: 0 };
  const easiest = options.easiest ?? problem.curriculum?.easiest;
  const until = options.until ?? problem.curriculum?.until ?? 'main';
  if (easiest === undefined) {
    throw new InputError('this problem does not say which of its tasks is the easiest, expected first or last', {
      key: 'strategy.easiest',
    });
  }
  const [start, hardest] = easiest === 'last' ? [K - 1, 0] : [0, K - 1];
  const end = until === 'main' ? main : hardest;
  if (start === end) {
    throw new InputError(
      `the main task ${tasks[main].name} is the easiest one, so a curriculum that ends there trains nothing else: ` +
        'expected hardest, or the strategy fixed',
      { key: 'strategy.until' },
    );
  }
  return { start, end };
}

/**
 * m = M − ⌊(t − 1)/t_max · (M − k + 1)⌋ for a start M and an end k ≤ M, and its mirror image for an end above the
 * start. The division comes last, so rounding cannot move the border of a stage.
 */
export function curriculumTask(start: number, end: number, t: number, tMax: number): number {
  const stage = Math.floor(((t - 1) * (Math.abs(end - start) + 1)) / tMax);
  return start + Math.sign(end - start) * stage;
}
