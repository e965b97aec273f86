import { z } from 'zod';
import { section } from '../../run/index.js';
import { parseDay } from '../data/calendar.js';

const rate = z.number().min(0).lt(1).optional();

/** The `backtest` of a configuration; the preset provides defaults. */
export const backtestSchema = section({
  preset: z
    .enum(['china', 'us'])
    .default('china')
    .describe(
      "Costs, limit and days of a market. china: qlib's, buy .0005, sell .0015, minimum 5, limit .095, days 238. us: buy and sell .0005, no minimum, no limit, days 252.",
    ),
  top: z.int().min(1).default(50).describe('Number of stocks to hold: those with the highest forecasts.'),
  drop: z.int().min(0).default(5).describe('Maximum number of stocks to replace per day.'),
  trade: z
    .enum(['label', 'close', 'next-open', 'next-close'])
    .default('label')
    .describe(
      'When the forecasts of day t are traded: at the close where the label of the main task begins; at the close of day t, which is not possible in practice; at the open or the close of the next day.',
    ),
  costs: z
    .strictObject({
      buy: rate.describe('Fraction of the value bought.'),
      sell: rate.describe('Fraction of the value sold.'),
      minimum: z.number().min(0).optional().describe('Minimum cost of a trade, in money.'),
    })
    .optional()
    .describe('What a trade costs.'),
  limit: z
    .number()
    .positive()
    .nullable()
    .optional()
    .describe(
      'A stock whose price has moved by this fraction or more since its last close cannot be traded; null: no limit.',
    ),
  days: z
    .number()
    .positive()
    .optional()
    .describe(
      "Bars in a year, for annual figures. Default: the preset's for daily prices, otherwise counted in the data.",
    ),
  weights: z
    .enum(['equal', 'score'])
    .default('equal')
    .describe(
      'How money is split among the stocks bought: equally, or in proportion to how far a forecast is above the lowest of the day.',
    ),
  longShort: z
    .boolean()
    .default(false)
    .describe(
      'Also short as many stocks with the lowest forecasts, with the same amount: the return is that of the long side minus that of the short side.',
    ),
  benchmark: z
    .enum(['auto', 'index', 'members', 'none'])
    .default('auto')
    .describe(
      'What returns are compared with: the index of the data, the mean of all members, or nothing. auto: the index if there is one, otherwise the members; nothing with longShort.',
    ),
  participation: z
    .number()
    .positive()
    .max(1)
    .default(0.05)
    .describe("Maximum share of a stock's daily trading value in one trade, for the capacity."),
  cash: z.number().positive().default(1e8).describe('Initial cash.'),
  invested: z
    .number()
    .positive()
    .max(1)
    .default(0.95)
    .describe("Fraction of the free cash spent on a day's purchases."),
}).describe('How forecasts are traded in an evaluation; training does not depend on it.');

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

/** Display name of a bar: `day`, or `bar` if it is shorter or longer. */
export function barName(calendar: readonly string[]): 'day' | 'bar' {
  return isDaily(calendar) ? 'day' : 'bar';
}

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

/** Bars in a year: those of the market for daily prices, otherwise counted in the calendar. */
function barsPerYear(calendar: readonly string[], daily: number): number {
  if (isDaily(calendar)) return daily;
  const days = dayNumbers(calendar);
  // One more bar than gaps: a week of bars spans seven days from the first to the first of the next.
  const span = (days[days.length - 1] - days[0]) * (days.length / Math.max(1, days.length - 1));
  return Math.round((days.length * 365.25) / Math.max(1, span));
}

/** Whether bars are usually a day apart, or the few days of a weekend or of holidays. */
function isDaily(calendar: readonly string[]): boolean {
  const days = dayNumbers(calendar);
  const gaps = days.slice(1).map((day, i) => day - days[i]);
  const usual = gaps.sort((a, b) => a - b)[gaps.length >> 1] ?? 1;
  return usual >= 1 && usual <= 4;
}

function dayNumbers(calendar: readonly string[]): number[] {
  return calendar.map((date) => parseDay(date.slice(0, 10)) ?? 0);
}

/** What to sell and what to buy; stocks by index, the most wanted first. */
export interface Decision {
  readonly sell: readonly number[];
  readonly buy: readonly number[];
}

/**
 * The decision of qlib's TopkDropoutStrategy (sell from the bottom, buy from the top): hold `top` stocks and replace at
 * most `drop` of them a day.
 *
 * Candidates are the stocks with the highest forecasts not held, `drop` more than there are free places. Held stocks
 * and candidates are ranked together, and held stocks among the last `drop` are sold, so never one that is better than
 * what would be bought for it. A held stock without a forecast (it left the market, it is suspended) ranks last. Equal
 * forecasts rank by the index of the stock. Unlike qlib's, a stock with a forecast is not sold when the market is too
 * small to offer another for it.
 *
 * @param held stocks in the portfolio
 * @param forecasts of each stock, NaN if there is none
 */
export function topkDrop(held: readonly number[], forecasts: ArrayLike<number>, top: number, drop: number): Decision {
  const rank = (a: number, b: number): number => {
    const x = forecasts[a];
    const y = forecasts[b];
    if (Number.isNaN(x) || Number.isNaN(y)) return Number(Number.isNaN(x)) - Number(Number.isNaN(y)) || a - b;
    return y - x || a - b;
  };
  const isHeld = new Set(held);
  const others: number[] = [];
  for (let stock = 0; stock < forecasts.length; stock++) {
    if (!isHeld.has(stock) && !Number.isNaN(forecasts[stock])) others.push(stock);
  }
  const free = top - held.length;
  const candidates = others.sort(rank).slice(0, Math.max(0, drop + free));
  const ranked = [...held, ...candidates].sort(rank);
  const replaceable = Math.max(0, Math.min(drop, candidates.length - free));
  const sell = ranked.filter((stock, i) => {
    const fromEnd = ranked.length - i;
    return isHeld.has(stock) && fromEnd <= (Number.isNaN(forecasts[stock]) ? drop : replaceable);
  });
  return { sell, buy: candidates.slice(0, Math.max(0, sell.length + free)) };
}

/** Cash and holdings. Amounts are fractional shares at adjusted prices; there are no lots. */
export class Account {
  private readonly costs: Costs;
  private readonly amounts = new Map<number, number>();
  cash: number;
  /** Sums over all trades so far. */
  traded = 0;
  paid = 0;

  constructor(cash: number, costs: Costs) {
    this.cash = cash;
    this.costs = costs;
  }

  /** Stocks held, in the order they were bought. */
  held(): number[] {
    return [...this.amounts.keys()];
  }

  /** Value of the holdings. */
  holdings(prices: ArrayLike<number>): number {
    let sum = 0;
    for (const [stock, amount] of this.amounts) sum += amount * prices[stock];
    return sum;
  }

  value(prices: ArrayLike<number>): number {
    let sum = this.cash;
    for (const [stock, amount] of this.amounts) sum += amount * prices[stock];
    return sum;
  }

  /** Sells all of a stock, unless cash and proceeds together do not cover the cost. */
  sell(stock: number, price: number): void {
    const value = (this.amounts.get(stock) ?? 0) * price;
    const cost = Math.max(value * this.costs.sell, this.costs.minimum);
    if (value === 0 || this.cash + value < cost) return;
    this.amounts.delete(stock);
    this.book(value, cost, value - cost);
  }

  /** Buys for `wanted` money, or for as much as the cash allows after the cost. */
  buy(stock: number, price: number, wanted: number): void {
    const { buy, minimum } = this.costs;
    // The cost is the minimum for values up to minimum / buy and proportional above; solve value + cost = cash.
    const affordable = this.cash * (buy / (1 + buy)) >= minimum ? this.cash / (1 + buy) : this.cash - minimum;
    const value = Math.min(wanted, affordable);
    if (!(value > 1e-5)) return;
    const cost = Math.max(value * buy, minimum);
    this.amounts.set(stock, (this.amounts.get(stock) ?? 0) + value / price);
    this.book(value, cost, -value - cost);
  }

  private book(value: number, cost: number, change: number): void {
    this.cash += change;
    this.traded += value;
    this.paid += cost;
  }
}
