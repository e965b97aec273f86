import { z } from 'zod';
import type { Architecture, OptionsOf } from './architecture.js';

export const linearSchema = z.strictObject({
  name: z.literal('linear').describe('A weight for each column of the features.'),
});

/** The features themselves: all that is learned is the output layer. */
export const linear: Architecture<OptionsOf<typeof linearSchema>> = {
  layout: 'flat',
  trunk: (_, { x }) => x, // [B, F·L]
};
