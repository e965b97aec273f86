import { z } from 'zod';
import { networkModel } from './model.js';

/** The features themselves: all that is learned is the output layer. */
export const linearModel = networkModel({
  schema: z.strictObject({
    name: z.literal('linear').describe('A weight for each column of the features.'),
  }),
  title: 'linear',
  layout: 'flat',
  trunk: (_, { x }) => x, // [B, F·L]
});
