import { z } from 'zod';
import type { Problem } from '../../schedule/index.js';
import { treeKeys } from '../trees/options.js';
import { forecastModel } from './model.js';

/** Boosted trees are no network: `trees/` grows them. */
export const trees = forecastModel({
  schema: z.strictObject({
    name: z.literal('trees').describe('Gradient-boosted trees, all grown in one update, whatever training says.'),
    ...treeKeys(),
  }),
  title: 'trees',
  create: async (config, data, { random, threads, workers }) => {
    const { TreesProblem } = await import('../trees/problem.js');
    return new TreesProblem(config, data, random, Math.max(threads, workers)) as Problem;
  },
  open: async (config, checkpoint, file) => (await import('../trees/problem.js')).openTrees(config, checkpoint, file),
});
