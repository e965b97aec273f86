import { z } from 'zod';
import { section } from '../run/index.js';
import { learningSchema, problemKind } from '../schedule/problem-kind.js';
import { madeUpSeries, seriesDataSchema } from './table.js';

const share = z.number().gt(0).lt(1);
const horizon = z.int().min(1).max(100_000);

/** The `problem` of a configuration whose kind is `series`. */
export const seriesSchema = z.strictObject({
  kind: z.literal('series').describe('Forecast a numeric time series several steps ahead.'),
  get data() {
    return seriesDataSchema();
  },
  split: section({
    train: share.default(0.6).describe('First part, in time.'),
    validation: share.default(0.2).describe('Second part.'),
    test: share.default(0.2).describe('Third part.'),
    blocks: z
      .int()
      .min(1)
      .default(1)
      .describe(
        'Number of blocks to cut the series into, each with its three parts, so that all parts see all seasons.',
      ),
  }).describe('Shares of the rows; samples whose labels reach beyond their part are left out.'),
  tasks: z
    .array(horizon)
    .min(1)
    .refine((all) => new Set(all).size === all.length, 'expected each horizon once')
    .default([1, 6, 12, 24, 48])
    .describe('Horizons in steps. Each is a task: the change of the target that many steps ahead.'),
  main: horizon.default(24).describe('Horizon of the main task.'),
  window: z.int().min(1).default(48).describe('Number of steps the model sees.'),
  step: z.int().min(1).default(1).describe('Rows between two steps of windows and horizons.'),
  model: section({
    hidden: z.int().min(1).default(32).describe('Width of the GRU.'),
    layers: z.int().min(1).default(1).describe('Layers of the GRU.'),
  }).describe('A GRU with an output for each task.'),
  learningRate: z.number().positive().default(0.001).describe('η₁; if it changes, its maximum.'),
  learning: learningSchema,
  batch: z.int().min(1).default(128).describe('B: samples of an update, drawn at random with replacement.'),
  validation: section({
    reward: z
      .number()
      .min(0)
      .lt(1)
      .default(0)
      .describe('Share of the validation part, the earliest, used only to reward a scheduler.'),
    every: z.int().min(1).default(1).describe('Use every n-th sample of the validation part.'),
  }).describe('How the validation part is used.'),
  corruption: section({
    noise: z
      .number()
      .min(0)
      .max(1e6)
      .default(0)
      .describe('Standard deviation of the noise in the main labels, in units of the label; 0: none.'),
    share: share
      .default(0.5)
      .describe('Share of the training samples that get it: those with the largest feature spread.'),
    seed: z.int().min(0).default(1).describe("Seed of the noise, independent of the run's."),
  }).describe(
    'Corrupts training labels so that a scheduler has something to find; validation and test data stay clean.',
  ),
});

/** The checked `problem` of a configuration whose kind is `series`. */
export type SeriesConfig = z.output<typeof seriesSchema>;

/** The horizons of a configuration, ascending. */
export function seriesHorizons({ tasks }: Pick<SeriesConfig, 'tasks'>): number[] {
  return [...tasks].sort((a, b) => a - b);
}

/** The problem kind `series`. */
export const seriesKind = problemKind({
  schema: seriesSchema,
  create: async (config, context) => (await import('./problem.js')).SeriesProblem.create(config, context),
  madeUpData: madeUpSeries,
});
