import { z } from 'zod';
import { section } from '../../run/index.js';
import { parseDay } from '../data/calendar.js';

const rate = z.number().min(0).lt(1).optional();

/** The `backtest` of a configuration; what is left out is the preset's. */
export const backtestSchema = section({
  preset: z
    .enum(['china', 'us'])
    .default('china')
    .describe(
      "Costs, limit and days of a market. china: qlib's, buy .0005, sell .0015, minimum 5, limit .095, days 238. us: buy and sell .0005, no minimum, no limit, days 252.",
    ),
  top: z.int().min(1).default(50).describe('Stocks to hold: those with the highest forecasts.'),
  drop: z.int().min(0).default(5).describe('Stocks to replace a day, at most.'),
  trade: z
    .enum(['label', 'close', 'next-open', 'next-close'])
    .default('label')
    .describe(
      'Where the forecasts of day t are traded: at the close where the label of the main task begins; at the close of day t, which nobody can; at the open or the close of the day after.',
    ),
  costs: z
    .strictObject({
      buy: rate.describe('Fraction of the value bought.'),
      sell: rate.describe('Fraction of the value sold.'),
      minimum: z.number().min(0).optional().describe('Least cost of a trade, in money.'),
    })
    .optional()
    .describe('What a trade costs.'),
  limit: z
    .number()
    .positive()
    .nullable()
    .optional()
    .describe(
      'A stock whose price has moved by this fraction or more since its last close cannot be traded; null: any can.',
    ),
  days: z
    .number()
    .positive()
    .optional()
    .describe(
      "Bars of a year, for yearly figures. When left out: the preset's for daily prices, else counted in the data.",
    ),
  weights: z
    .enum(['equal', 'score'])
    .default('equal')
    .describe(
      'How money is split over the stocks bought: evenly, or in proportion to how far a forecast lies above the lowest of the day.',
    ),
  longShort: z
    .boolean()
    .default(false)
    .describe(
      'Hold as many stocks with the lowest forecasts short, with as much money: the return is that of the long side minus that of the short side.',
    ),
  benchmark: z
    .enum(['auto', 'index', 'members', 'none'])
    .default('auto')
    .describe(
      'What returns are compared with: the index of the data, the mean of all members, or nothing. auto: the index where there is one, else the members; nothing with longShort.',
    ),
  participation: z
    .number()
    .positive()
    .max(1)
    .default(0.05)
    .describe('Share of the value that a stock trades in a day that a trade may take, for the capacity.'),
  cash: z.number().positive().default(1e8).describe('Money to begin with.'),
  invested: z
    .number()
    .positive()
    .max(1)
    .default(0.95)
    .describe("Fraction of the free cash that a day's purchases take."),
}).describe('How forecasts are traded when they are evaluated; training does not depend on it.');

export type BacktestConfig = z.output<typeof backtestSchema>;
/** The settings of a backtest as a user gives them: all have defaults. */
export type BacktestOptions = z.input<typeof backtestSchema>;

/** What a trade costs. */
export interface Costs {
  readonly buy: number;
  readonly sell: number;
  readonly minimum: number;
}

/** All settings, those of the preset filled in. */
export type BacktestSettings = Omit<BacktestConfig, 'costs' | 'limit' | 'days'> & {
  readonly costs: Costs;
  readonly limit: number | null;
  readonly days: number;
};

const PRESETS: Readonly<Record<BacktestConfig['preset'], Pick<BacktestSettings, 'costs' | 'limit' | 'days'>>> = {
  china: { costs: { buy: 0.0005, sell: 0.0015, minimum: 5 }, limit: 0.095, days: 238 },
  us: { costs: { buy: 0.0005, sell: 0.0005, minimum: 0 }, limit: null, days: 252 },
};

export function backtestSettings(config: BacktestConfig, calendar: readonly string[]): BacktestSettings {
  const { costs, limit, days } = PRESETS[config.preset];
  return {
    ...config,
    costs: { ...costs, ...config.costs },
    limit: config.limit === undefined ? limit : config.limit,
    days: config.days ?? barsPerYear(calendar, days),
  };
}

/** Bars of a year: those of the market for daily prices, else as many as the calendar has in one. */
function barsPerYear(calendar: readonly string[], daily: number): number {
  const days = calendar.map((date) => parseDay(date.slice(0, 10)) ?? 0);
  const gaps = days.slice(1).map((day, i) => day - days[i]);
  const usual = gaps.sort((a, b) => a - b)[gaps.length >> 1] ?? 1;
  if (usual >= 1 && usual <= 4) return daily;
  // One bar more than gaps: a week of bars spans seven days from the first to the first of the next.
  const span = (days[days.length - 1] - days[0]) * (calendar.length / Math.max(1, gaps.length));
  return Math.round((calendar.length * 365.25) / Math.max(1, span));
}
