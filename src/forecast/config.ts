import { z } from 'zod';
import { InputError } from '../errors.js';
import { section } from '../run/index.js';
import { learningSchema, problemKind, rewardShare } from '../schedule/problem-kind.js';
import type { SplitDates } from './data/calendar.js';
import { backtestSchema } from './evaluation/portfolio.js';
import { dateKey } from './formats/format.js';
import { dataSchema, madeUpData } from './formats/index.js';
import { forecastModelSchema } from './models/index.js';

/** A length of time: whole months, and days. */
export interface Length {
  readonly months: number;
  readonly days: number;
}

const UNITS: Readonly<Record<string, Length>> = {
  y: { months: 12, days: 0 },
  m: { months: 1, days: 0 },
  w: { months: 0, days: 7 },
  d: { months: 0, days: 1 },
};

const UNIT_NAMES = 'y (years), m (months), w (weeks) or d (days)';

const length = (example: string) =>
  z
    .string()
    .refine((text) => parseLength(text) !== undefined, {
      error: ({ input }) =>
        `expected a whole number above 0 and a unit, ${UNIT_NAMES}, such as ${example}, found ${JSON.stringify(input)}`,
    })
    .meta({ examples: [example] });

/** `problem.split.walkForward` of a configuration. */
const walkForwardSchema = z
  .strictObject({
    train: length('4y').describe(`Length of a training part: a number and ${UNIT_NAMES}.`),
    validation: length('1y').describe('Length of the validation part after it.'),
    step: length('6m').describe('Length of the test part after that, and the offset to the next window.'),
    from: dateKey
      .optional()
      .describe(
        'First day of the first training part. Default: that of split.train, or the first day with a full window of features before it.',
      ),
    to: dateKey
      .optional()
      .describe('Last day of the last test part. Default: that of split.test, or the end of the data.'),
    expanding: z.boolean().default(false).describe('Start every training part on the first day, so that it grows.'),
    warmStart: z
      .boolean()
      .default(false)
      .describe('Start each window from the best parameters of the previous one; windows are then trained in order.'),
  })
  .describe('Train a run for each of many windows and join the forecasts of their test parts.');

export type WalkForward = z.output<typeof walkForwardSchema>;

/** `4y`, `6m`, `2w` or `30d`; undefined for anything else, including an empty text. */
export function parseLength(text: string): Length | undefined {
  const [, count, unit] = /^(\d{1,5})([a-z])$/.exec(text) ?? [];
  const one = unit === undefined ? undefined : UNITS[unit];
  return one === undefined || Number(count) === 0 ? undefined : times(one, Number(count));
}

/** A multiple of a length. */
export function times({ months, days }: Length, count: number): Length {
  return { months: months * count, days: days * count };
}

const range = (from: string, to: string) => z.tuple([dateKey, dateKey]).meta({ examples: [[from, to]] });
const horizon = z.int().min(1).max(1000);

/** The `neutralise` of a configuration. */
export const neutraliseSchema = z
  .strictObject({
    group: z
      .string()
      .min(1)
      .optional()
      .describe('Column of the data with the group of a stock, such as its sector: text or a number.'),
    beta: z
      .int()
      .min(5)
      .optional()
      .describe('Days over which the sensitivity of a stock to the market is measured; its forecast loses that part.'),
  })
  .refine(({ group, beta }) => group !== undefined || beta !== undefined, 'expected group, beta or both')
  .nullable()
  .default(null)
  .describe(
    'What evaluate and forecast remove from the forecasts of a day: group means, the part explained by beta. null: nothing. Training does not depend on it.',
  );

/** The `problem` of a configuration. */
export const forecastSchema = z.strictObject({
  kind: z.literal('forecast').describe('Forecast the returns of stocks some days ahead.'),
  get data() {
    return dataSchema();
  },
  // No default: the dates of one market are meaningless in another.
  split: z
    .strictObject({
      train: range('2008-01-01', '2013-12-31').optional().describe('First and last day of the training part.'),
      validation: range('2014-01-01', '2015-12-31').optional().describe('First and last day of the validation part.'),
      test: range('2016-01-01', '2020-08-01').optional().describe('First and last day of the test part.'),
      walkForward: walkForwardSchema.optional(),
    })
    .superRefine(({ walkForward, ...dates }, context) => {
      const parts = walkForward === undefined ? (['train', 'validation', 'test'] as const) : [];
      for (const part of parts.filter((name) => dates[name] === undefined)) {
        const message = 'missing, expected the first and last day of the part, or walkForward in place of dates';
        context.addIssue({ code: 'custom', message, path: [part] });
      }
    })
    .describe(
      'The parts of the data: dates (those of the paper are shown), or a walk-forward. Samples whose labels reach beyond ' +
        'their part are left out.',
    ),
  seeds: z
    .int()
    .min(1)
    .max(1000)
    .optional()
    .describe(
      'Train this many runs that differ only in the seed, and forecast the mean of their daily ranks. Seed s uses the ' +
        'seeds n·s to n·s + n − 1. Default: one run.',
    ),
  tasks: z
    .union([horizon, z.array(horizon).min(1).refine(areDistinct, 'expected each horizon once')])
    .default(3)
    .describe('Horizons in days: a list, or a number n for 1, 2, …, n.'),
  main: horizon.default(1).describe('Horizon of the main task.'),
  features: section({
    kind: z
      .enum(['ohlcv', 'alpha360', 'alpha158', 'none'])
      .default('ohlcv')
      .describe(
        "The paper's five fields or qlib's six, each relative to the last close or volume; qlib's 158 factors (window: 1 uses those of the day); or no prices.",
      ),
    window: z.int().min(1).default(60).describe('L: number of days the model sees.'),
    columns: z
      .array(z.string().min(1))
      .refine(areDistinct, 'expected each column once')
      .default([])
      .describe('Your own factors: additional numeric columns of the data, over the same days.'),
    rankColumns: z
      .boolean()
      .default(false)
      .describe("Use the factors' ranks among the stocks of the day instead of their values."),
  }).describe('What the model sees about a stock.'),
  labels: section({
    kind: z
      .enum(['daily', 'cumulative'])
      .default('daily')
      .describe('The return of day k only, as in the paper, or of days 1 to k together, as in qlib.'),
    shift: z
      .int()
      .min(0)
      .default(0)
      .describe('Days between the forecast and the day that horizons count from; qlib: 1.'),
    transform: z
      .enum(['rank', 'raw'])
      .default('rank')
      .describe('Training label: rank among the stocks of the day, distributed like N(0, 1), or the return itself.'),
  }).describe('What is forecast.'),
  get model() {
    return forecastModelSchema();
  },
  sharing: z
    .enum(['heads', 'shared', 'embedding'])
    .default('heads')
    .describe(
      'How the tasks share the model: one output per task, one output for all, or a task embedding added to the input.',
    ),
  chosen: z
    .enum(['replace', 'add', 'all'])
    .default('replace')
    .describe(
      'A sample trains only the chosen task, as in the paper; or always the main task and additionally the chosen one; or always all tasks, with the chosen one counted twice.',
    ),
  auxiliaryWeight: z
    .number()
    .min(0)
    .max(1e6)
    .default(1)
    .describe('With chosen: add or all, the weight of tasks other than the main one.'),
  batch: section({
    size: z.int().min(1).default(800).describe('B: samples in a batch.'),
    days: z
      .int()
      .min(1)
      .default(3)
      .describe('Days in a batch, for models and losses in which the stocks of a day interact.'),
  }).describe('Size of an update.'),
  loss: z
    .enum(['mse', 'rank', 'ic'])
    .default('mse')
    .describe(
      'Loss of a sample: squared error; pairwise logistic loss against the other stocks of its day; or half the squared distance between forecast and label as z-scores of the day, whose mean is 1 − IC. rank and ic use batches of whole days (batch.days).',
    ),
  learningRate: z.number().positive().default(0.001).describe('η₁; if it changes, its maximum.'),
  learning: learningSchema,
  clipValue: z.number().positive().nullable().default(3).describe('Maximum absolute value of a gradient; null: any.'),
  validation: section({
    measure: z
      .enum(['loss', 'IC', 'RankIC'])
      .default('RankIC')
      .describe(
        'ℳ, which picks the best checkpoint and rewards schedulers: minus the loss of the main task, or its mean daily correlation.',
      ),
    everyDays: z.int().min(1).default(1).describe('Use every n-th day of the validation part.'),
    reward: rewardShare('validation days, the first ones,'),
  }).describe('How the validation performance ℳ is computed.'),
  corruption: section({
    stale: z
      .number()
      .min(0)
      .lt(1)
      .default(0)
      .describe('Share of the stocks, the most volatile ones, whose labels are stale; 0: none.'),
    days: z.int().min(1).max(1000).default(20).describe('Age of their main labels in trading days.'),
  }).describe(
    'Corrupts training labels so that a scheduler has something to find; validation and test data stay clean.',
  ),
  backtest: backtestSchema,
  neutralise: neutraliseSchema,
  warmStart: z
    .string()
    .optional()
    .describe('Run folder of a model of the same kind whose best parameters initialise this one.'),
  test: z
    .boolean()
    .default(true)
    .describe('Score the best model on the test part at the end; use false while choosing settings.'),
});

/** The checked `problem` of a configuration whose kind is `forecast`. */
export type ForecastConfig = z.output<typeof forecastSchema>;

/** The dates of a configuration that is trained as one run. */
export function datesOf({
  split: { train, validation, test, walkForward },
}: Pick<ForecastConfig, 'split'>): SplitDates {
  if (walkForward === undefined && train && validation && test) return { train, validation, test };
  throw new InputError('expected the dates of one training: only tcts train runs the windows of a walk-forward', {
    key: 'problem.split.walkForward',
  });
}

/** Dates in the form of a configuration. */
export function splitOf({ train, validation, test }: SplitDates): ForecastConfig['split'] {
  return { train: [...train], validation: [...validation], test: [...test] };
}

/** The horizons of a configuration, ascending. */
export function horizonsOf({ tasks }: Pick<ForecastConfig, 'tasks'>): number[] {
  if (typeof tasks === 'number') return Array.from({ length: tasks }, (_, k) => k + 1);
  return [...tasks].sort((a, b) => a - b);
}

/** Whether a configuration stands for a run for each window or seed. */
export function isSeveralRuns({ seeds = 1, split }: Pick<ForecastConfig, 'seeds' | 'split'>): boolean {
  return seeds > 1 || split.walkForward !== undefined;
}

function areDistinct(values: readonly (number | string)[]): boolean {
  return new Set(values).size === values.length;
}

export const forecastKind = problemKind({
  schema: forecastSchema,
  create: async (config, context) => (await import('./problem.js')).createForecast(config, context),
  evaluate: async (run, flags) => (await import('./evaluation/evaluate-run.js')).evaluateForecastRun(run, flags),
  members: async (config, seed) => (await import('./members.js')).planMembers(config, seed),
  isSeveralRuns,
  verbs: ['forecast'],
  evaluations: 'forecasts',
  madeUpData,
  validation: ({ validation }) =>
    validation.measure === 'loss' ? { name: 'loss', sign: -1 } : { name: validation.measure, sign: 1 },
});
