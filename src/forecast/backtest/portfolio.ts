import type { Costs } from './settings.js';

/** What to sell and what to buy; stocks by their index, the most wanted first. */
export interface Decision {
  readonly sell: readonly number[];
  readonly buy: readonly number[];
}

/**
 * The decision of qlib's TopkDropoutStrategy (sell from the bottom, buy from the top): hold `top` stocks and replace at
 * most `drop` of them a day.
 *
 * Candidates are the stocks with the highest forecasts not held, `drop` more than there are free places. Held stocks and candidates
 * are ranked together, and held stocks among the last `drop` are sold: so never one that is better than what would be
 * bought for it. A held stock without a forecast (it left the market, it is suspended) ranks last. Equal forecasts rank by the
 * index of the stock. Unlike qlib's, a stock with a forecast is not sold when the market is too small to offer another for it.
 *
 * @param held stocks in the portfolio
 * @param forecasts of each stock, NaN where there is none
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

  /** Worth of the holdings. */
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
