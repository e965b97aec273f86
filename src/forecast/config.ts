import { z } from 'zod';
import { section } from '../run/index.js';
import { rewardShare } from '../schedule/config.js';
import { learningSchema } from '../schedule/learning.js';
import { modelSchema } from './models/index.js';

const date = z.string().regex(/^\d{4}-\d{2}-\d{2}$/);
const range = (from: string, to: string) => z.tuple([date, date]).meta({ examples: [[from, to]] });

/** Keys of every source that is read from files. */
const reading = {
  path: z
    .string()
    .min(1)
    .meta({ examples: ['data/cn_data'] })
    .describe('The file or folder.'),
  index: z
    .string()
    .optional()
    .describe('Code of the index that a backtest is measured against. When left out: the mean of all members.'),
  start: date.optional().describe('First day to read; leave a window of days before the training part.'),
  end: date.optional().describe('Last day to read.'),
  nonPositive: z
    .enum(['refuse', 'missing'])
    .default('refuse')
    .describe('A price of zero or less: an error, or a day without trade.'),
  maxMove: z
    .number()
    .positive()
    .lt(1)
    .nullable()
    .default(null)
    .describe(
      'Largest move of a price within a day that the model sees, as a fraction; larger ones are clipped in its inputs and the labels of training and validation, never in scores and backtest. null: any.',
    ),
};

const horizon = z.int().min(1).max(1000);

const columnName = z.string().min(1).optional();
const table = {
  ...reading,
  members: z
    .string()
    .optional()
    .describe('File of memberships, a line "CODE<tab>start<tab>end" each. When left out: all stocks, always.'),
  columns: z
    .strictObject({
      date: columnName,
      symbol: columnName,
      open: columnName,
      high: columnName,
      low: columnName,
      close: columnName,
      adjusted: columnName.describe(
        'A close adjusted for splits and dividends, where the other prices are not: all of them are rescaled to it, and the volume inversely.',
      ),
      volume: columnName,
      vwap: columnName,
    })
    .optional()
    .describe('Names of the columns in the data where they differ from ours.'),
};

/** The `data` of a configuration. */
export const dataSchema = z
  .discriminatedUnion('format', [
    z.strictObject({
      format: z.literal('qlib').describe("qlib's folder with calendars/, instruments/ and features/."),
      ...reading,
      market: z
        .string()
        .optional()
        .describe('Name of the list in instruments/. When left out: the only one, else "all".'),
    }),
    z.strictObject({
      format: z.literal('csv').describe('A CSV file, or a folder with a file for each stock.'),
      ...table,
      delimiter: z.string().length(1).default(',').describe('Character between two cells.'),
    }),
    z.strictObject({ format: z.literal('parquet').describe('A Parquet file.'), ...table }),
    z.strictObject({
      format: z.literal('synthetic').describe('A made-up market in which neighbouring horizons help each other.'),
      stocks: z.int().min(1).max(100_000).default(80).describe('Number of stocks.'),
      days: z.int().min(2).max(100_000).default(750).describe('Trading days, from 2015-01-05 on.'),
      seed: z.int().min(0).default(1).describe('Seed of the market; that of the run does not change it.'),
      strength: z.number().min(0).max(1).default(0.25).describe('Best correlation that any forecast can reach.'),
      persistence: z.number().min(0).lt(1).default(0.8).describe('What is left of it one day further ahead.'),
    }),
  ])
  .describe('Daily prices.');

export type DataConfig = z.output<typeof dataSchema>;

/** The `problem` of a configuration. */
export const forecastSchema = z.strictObject({
  kind: z.literal('forecast').describe('Forecast the returns of stocks some days ahead.'),
  data: dataSchema,
  // No default: the dates of one market mean nothing in another.
  split: z
    .strictObject({
      train: range('2008-01-01', '2013-12-31').describe('First and last day of the training part.'),
      validation: range('2014-01-01', '2015-12-31').describe('First and last day of the validation part.'),
      test: range('2016-01-01', '2020-08-01').describe('First and last day of the test part.'),
    })
    .describe(
      "The parts of the data; samples whose labels reach beyond their part are left out. The paper's are given here.",
    ),
  tasks: z
    .union([horizon, z.array(horizon).min(1).refine(areDistinct, 'expected each horizon once')])
    .default(3)
    .describe('Horizons in days: a list, or a number n for 1, 2, …, n.'),
  main: horizon.default(1).describe('Horizon of the main task.'),
  features: section({
    kind: z
      .enum(['ohlcv', 'alpha360'])
      .default('ohlcv')
      .describe("The paper's five fields, or qlib's six; each relative to the last close or volume."),
    window: z.int().min(1).default(60).describe('L: days that the model sees.'),
  }).describe('What the model sees of a stock.'),
  labels: section({
    kind: z
      .enum(['daily', 'cumulative'])
      .default('daily')
      .describe('The return of day k alone, as in the paper, or of days 1 to k together, as in qlib.'),
    shift: z
      .int()
      .min(0)
      .default(0)
      .describe('Days between the forecast and the day that horizons count from; qlib: 1.'),
    transform: z
      .enum(['rank', 'raw'])
      .default('rank')
      .describe('Training label: rank among the stocks of the day, spread like N(0, 1), or the return itself.'),
  }).describe('What is forecast.'),
  model: modelSchema,
  sharing: z
    .enum(['heads', 'shared', 'embedding'])
    .default('heads')
    .describe(
      'How the tasks share the model: an output for each, one output for all, or an embedding of the task added to the input.',
    ),
  chosen: z
    .enum(['replace', 'add', 'all'])
    .default('replace')
    .describe(
      'A sample trains the chosen task alone, as in the paper; or the main task always and the chosen one on top; or all tasks always, and the chosen one counts twice.',
    ),
  auxiliaryWeight: z
    .number()
    .min(0)
    .max(1e6)
    .default(1)
    .describe('With chosen: add or all, the weight of a task that is not the main one.'),
  batch: section({
    size: z.int().min(1).default(800).describe('B: samples in a batch.'),
    days: z
      .int()
      .min(1)
      .default(3)
      .describe('Days in a batch, for models in which the stocks of a day see each other.'),
  }).describe('Samples of an update.'),
  learningRate: z.number().positive().default(0.001).describe('η₁; where it changes, its largest value.'),
  learning: learningSchema,
  clipValue: z.number().positive().nullable().default(3).describe('Largest absolute value of a gradient; null: any.'),
  validation: section({
    measure: z
      .enum(['loss', 'RankIC'])
      .default('loss')
      .describe('ℳ: minus the mean squared error of the main task, or its mean daily rank correlation.'),
    everyDays: z.int().min(1).default(1).describe('Use every n-th day of the validation part.'),
    reward: rewardShare('validation days, the first ones,'),
  }).describe('How the validation performance ℳ is measured.'),
  corruption: section({
    stale: z.number().min(0).lt(1).default(0).describe('Share of the stocks, the most volatile ones; 0: none.'),
    days: z.int().min(1).max(1000).default(20).describe('Trading days that their main labels are too old.'),
  }).describe('Spoils training labels, so that a scheduler has something to find; validation and test stay clean.'),
  warmStart: z
    .string()
    .optional()
    .describe('Run folder of a model of the same kind, whose best parameters this one starts from.'),
  test: z
    .boolean()
    .default(true)
    .describe('Score the best model on the test part at the end; false while settings are being chosen.'),
});

export type ForecastConfig = z.output<typeof forecastSchema>;

/** The horizons of a configuration, ascending. */
export function horizonsOf({ tasks }: Pick<ForecastConfig, 'tasks'>): number[] {
  if (typeof tasks === 'number') return Array.from({ length: tasks }, (_, k) => k + 1);
  return [...tasks].sort((a, b) => a - b);
}

function areDistinct(values: readonly number[]): boolean {
  return new Set(values).size === values.length;
}
