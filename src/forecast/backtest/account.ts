/** What a trade costs. */
export interface Costs {
  /** Fraction of the value bought. Default 0.0005. */
  readonly buy: number;
  /** Fraction of the value sold. Default 0.0015. */
  readonly sell: number;
  /** Least cost of a trade, in money. Default 5. */
  readonly least: number;
}

/** Cash and holdings. Amounts are fractional shares at adjusted prices; there are no lots. */
export class Account {
  readonly #costs: Costs;
  readonly #amounts = new Map<number, number>();
  cash: number;
  /** Sums over all trades so far. */
  traded = 0;
  paid = 0;

  constructor(cash: number, costs: Costs) {
    this.cash = cash;
    this.#costs = costs;
  }

  /** Stocks held, in the order they were bought. */
  held(): number[] {
    return [...this.#amounts.keys()];
  }

  value(prices: ArrayLike<number>): number {
    let sum = this.cash;
    for (const [stock, amount] of this.#amounts) sum += amount * prices[stock]!;
    return sum;
  }

  /** Sells all of a stock, unless cash and proceeds together do not cover the cost. */
  sell(stock: number, price: number): void {
    const value = (this.#amounts.get(stock) ?? 0) * price;
    const cost = Math.max(value * this.#costs.sell, this.#costs.least);
    if (value === 0 || this.cash + value < cost) return;
    this.#amounts.delete(stock);
    this.#book(value, cost, value - cost);
  }

  /** Buys for `wanted` money, or for as much as the cash allows after the cost. */
  buy(stock: number, price: number, wanted: number): void {
    const { buy, least } = this.#costs;
    // The cost is the least one for values up to least / buy and proportional above; solve value + cost = cash.
    const affordable = this.cash * (buy / (1 + buy)) >= least ? this.cash / (1 + buy) : this.cash - least;
    const value = Math.min(wanted, affordable);
    if (!(value > 1e-5)) return;
    const cost = Math.max(value * buy, least);
    this.#amounts.set(stock, (this.#amounts.get(stock) ?? 0) + value / price);
    this.#book(value, cost, -value - cost);
  }

  #book(value: number, cost: number, change: number): void {
    this.cash += change;
    this.traded += value;
    this.paid += cost;
  }
}
