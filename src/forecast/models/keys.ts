import { z } from 'zod';

/** Keys that several models have. */
export const hiddenKey = z.int().min(1).default(32).describe('Width of a hidden state.');
export const layersKey = z.int().min(1).default(2).describe('Recurrent layers.');
export const dropoutKey = z.number().min(0).lt(1).default(0).describe('Probability of dropout between layers.');
