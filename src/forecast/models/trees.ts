import { z } from 'zod';
import { InputError } from '../../errors.js';
import type { Problem } from '../../schedule/index.js';
import { treeKeys } from '../trees/options.js';
import { forecastModel } from './model.js';

/** Boosted trees are not a network: `trees/` grows them. */
export const treesModel = forecastModel({
  schema: z.strictObject({
    name: z.literal('trees').describe('Gradient-boosted trees, all grown in one update; training does not apply.'),
    ...treeKeys(),
  }),
  title: 'trees',
  create: async (config, data, { random, threads, workers, device = 'cpu', note }) => {
    if (device !== 'cpu' && device !== 'auto') {
      throw new InputError(`trees grow on the CPU, not on ${device}: expected cpu`, { key: 'device' });
    }
    const { TreesProblem } = await import('../trees/problem.js');
    return new TreesProblem(config, data, random, Math.max(threads, workers), note) as Problem;
  },
  open: async (config, checkpoint, file) => (await import('../trees/problem.js')).openTrees(config, checkpoint, file),
});
