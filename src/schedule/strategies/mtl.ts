import { z } from 'zod';
import { describeStrategy } from '../strategy.js';
import { drawnFrom } from './distribution.js';

/** Multi-task learning: every task of 𝒯 is equally likely (section 3.3). */
export const mtl = describeStrategy({
  name: 'mtl',
  summary: 'Every task equally likely.',
  title: 'MTL',
  role: 'baseline',
  ignoresMain: true,
  options: z.strictObject({}),
  create(_, problem, { random }) {
    const K = problem.tasks.length;
    const uniform = new Array<number>(K).fill(1 / K);
    return drawnFrom('mtl', problem, random, () => uniform);
  },
});
