import { z } from 'zod';

/** Boosted trees are no network: `forecast/trees-problem.ts` trains them. Names and meanings are LightGBM's. */
export const treesSchema = z.strictObject({
  name: z
    .literal('trees')
    .describe('Gradient-boosted trees. An update grows the whole ensemble: one episode of one step.'),
  rounds: z.int().min(1).default(1000).describe('Trees, at most.'),
  earlyStoppingRounds: z.int().min(0).default(50).describe('Rounds without a lower validation loss; 0: never stop.'),
  learningRate: z.number().positive().default(0.0421).describe('Shrinkage of each tree.'),
  numLeaves: z.int().min(2).max(65536).default(210).describe('Leaves of a tree, at most.'),
  maxDepth: z.int().default(8).describe('Depth of a tree, at most; 0 or less: any.'),
  minDataInLeaf: z.int().min(1).default(20).describe('Samples in a leaf, at least.'),
  featureFraction: z.number().positive().max(1).default(0.8879).describe('Share of the columns that a tree sees.'),
  baggingFraction: z.number().positive().max(1).default(0.8789).describe('Share of the samples that a tree sees.'),
  baggingFrequency: z.int().min(0).default(1).describe('Rounds between two draws of those samples; 0: all samples.'),
  lambdaL1: z.number().min(0).default(205.7).describe('ℓ₁ penalty of the leaves.'),
  lambdaL2: z.number().min(0).default(581).describe('ℓ₂ penalty of the leaves.'),
  maxBin: z.int().min(2).max(255).default(255).describe('Bins of a column.'),
});
