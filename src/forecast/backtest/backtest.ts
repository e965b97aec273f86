import { InputError } from '../../errors.js';
import { fieldOffset, type Panel, valueAt } from '../data/panel.js';
import type { Samples } from '../data/samples.js';
import { Account, type Costs } from './account.js';
import { type Risk, risk } from './risk.js';
import { topkDrop } from './topk-drop.js';

export interface BacktestOptions {
  /** Stocks to hold. Default 50. */
  readonly hold?: number;
  /** Stocks to replace a day, at most. Default 5. */
  readonly replace?: number;
  /** Default 5 basis points to buy, 15 to sell, at least 5 units of money. */
  readonly costs?: Costs;
  /** A stock whose close has moved by this fraction or more since its last close cannot be traded. Default 0.095. */
  readonly priceLimit?: number;
  /** Money to begin with. Default 100 million. */
  readonly cash?: number;
  /** Fraction of the free cash to invest. Default 0.95. */
  readonly invested?: number;
  /** For the yearly figures. Default 238. */
  readonly daysPerYear?: number;
}

/** The course of a backtest, a value a trading day, and its figures. */
export interface Backtest {
  readonly dates: readonly string[];
  /** Worth of cash and holdings at the close. */
  readonly value: Float64Array;
  /** Return of the day before costs, and the costs, both as fractions of the worth of the day before. */
  readonly returns: Float64Array;
  readonly costs: Float64Array;
  /** Value bought and sold as a fraction of the worth of the day before. */
  readonly turnover: Float64Array;
  /** Return of the index, or of the equal-weight members where the panel has no index. */
  readonly benchmark: Float64Array;
  readonly benchmarkName: string;
  readonly meanTurnover: number;
  readonly portfolio: Risk;
  readonly market: Risk;
  /** Returns minus the benchmark's, before and after costs. */
  readonly excess: Risk;
  readonly excessAfterCosts: Risk;
}

/**
 * Trades on the forecasts as qlib's TopkDropoutStrategy and simulator do: the scores of day t decide the orders of day
 * t + `delay`, dealt at its close; sales first, then the free cash times `invested` is split evenly over the purchases. A
 * stock that is suspended or at its price limit is not traded, whichever way; an order that fails is not repeated.
 *
 * A held stock that is suspended keeps its last score (qlib forecasts suspended members too; without a score they would
 * fill the last ranks and block all sales); one that trades but has no score, having left the market, is sold first.
 *
 * Simpler than qlib: adjusted prices and fractional shares (no lots of 100), no market impact, no limit by volume. A
 * suspended or delisted stock is held at its last close.
 *
 * @param scores forecast of each sample; NaN for none
 * @param delay days from a forecast to its trade: `labelStart` of what was forecast, or the trade misses the return that
 *   the forecast is about. qlib's is 1. With 0 the trade is at the very close that the forecast is made from: an upper
 *   bound that nobody can trade.
 */
export function backtest(
  panel: Panel,
  samples: Samples,
  scores: ArrayLike<number>,
  delay: number,
  options: BacktestOptions = {},
): Backtest {
  const { hold = 50, replace = 5, priceLimit = 0.095, cash = 1e8, invested = 0.95, daysPerYear } = options;
  if (!Number.isInteger(hold) || hold < 1) throw new InputError(`cannot hold ${hold} stocks`, { key: 'hold' });
  if (!Number.isInteger(replace) || replace < 0)
    throw new InputError(`cannot replace ${replace} stocks`, { key: 'replace' });
  if (!Number.isInteger(delay) || delay < 0)
    throw new InputError(`cannot trade ${delay} days after the forecast`, { key: 'delay' });
  if (samples.length === 0) throw new InputError('there is no sample to trade on');
  const first = samples.day[0]! + delay;
  const last = Math.min(samples.day[samples.length - 1]! + delay, panel.calendar.length - 1);
  if (first > last) {
    const forecast = panel.calendar[samples.day[0]!];
    throw new InputError(`the data ends before the trades, ${delay} trading days after the forecasts of ${forecast}`);
  }

  const account = new Account(cash, options.costs ?? { buy: 0.0005, sell: 0.0015, least: 5 });
  const market = new Market(panel, first - 1);
  const benchmark = benchmarkReturns(panel, first, last);
  const length = last - first + 1;
  const value = new Float64Array(length);
  const returns = new Float64Array(length);
  const costs = new Float64Array(length);
  const turnover = new Float64Array(length);
  const signal = new Signal(panel, samples, scores);
  let before = cash;
  for (let i = 0; i < length; i++) {
    market.advance();
    const { traded, paid } = account;
    const held = account.held();
    const dayScores = signal.on(first + i - delay, held);
    if (dayScores !== undefined) trade(account, market, topkDrop(held, dayScores, hold, replace), invested, priceLimit);
    value[i] = account.value(market.prices);
    costs[i] = (account.paid - paid) / before;
    returns[i] = value[i]! / before - 1 + costs[i]!;
    turnover[i] = (account.traded - traded) / before;
    before = value[i]!;
  }
  const net = returns.map((r, i) => r - costs[i]!);
  return {
    dates: panel.calendar.slice(first, last + 1),
    value,
    returns,
    costs,
    turnover,
    benchmark,
    benchmarkName: panel.index?.symbol ?? 'equal-weight members',
    meanTurnover: turnover.reduce((sum, x) => sum + x, 0) / length,
    portfolio: risk(net, daysPerYear),
    market: risk(benchmark, daysPerYear),
    excess: risk(
      returns.map((r, i) => r - benchmark[i]!),
      daysPerYear,
    ),
    excessAfterCosts: risk(
      net.map((r, i) => r - benchmark[i]!),
      daysPerYear,
    ),
  };
}

function trade(
  account: Account,
  market: Market,
  { sell, buy }: { readonly sell: readonly number[]; readonly buy: readonly number[] },
  invested: number,
  priceLimit: number,
): void {
  for (const stock of sell) if (market.tradable(stock, priceLimit)) account.sell(stock, market.prices[stock]!);
  const share = buy.length === 0 ? 0 : (account.cash * invested) / buy.length;
  for (const stock of buy) if (market.tradable(stock, priceLimit)) account.buy(stock, market.prices[stock]!, share);
}

/** The scores of one day after the other. */
class Signal {
  readonly #panel: Panel;
  readonly #samples: Samples;
  readonly #scores: ArrayLike<number>;
  /** Number of the next day of the samples. */
  #next = 0;
  /** Last score of each stock. */
  readonly #known: Float64Array;

  constructor(panel: Panel, samples: Samples, scores: ArrayLike<number>) {
    this.#panel = panel;
    this.#samples = samples;
    this.#scores = scores;
    this.#known = new Float64Array(panel.symbols.length).fill(Number.NaN);
  }

  /** Score of each stock on `day`, which must not lie before the day of the call before; undefined when there is none. */
  on(day: number, held: readonly number[]): Float64Array | undefined {
    const { dayStarts, stock } = this.#samples;
    const from = dayStarts[this.#next]!;
    if (this.#samples.day[from] !== day) return undefined;
    const to = dayStarts[++this.#next]!;
    const scores = new Float64Array(this.#known.length).fill(Number.NaN);
    for (let i = from; i < to; i++) {
      scores[stock[i]!] = this.#scores[i]!;
      this.#known[stock[i]!] = this.#scores[i]!;
    }
    for (const s of held) if (Number.isNaN(scores[s]!) && !hasTraded(this.#panel, day, s)) scores[s] = this.#known[s]!;
    return scores;
  }
}

/** The closes of one day after the other. */
class Market {
  readonly #panel: Panel;
  readonly #close: number;
  #day: number;
  /** Last known close of each stock, NaN before the first one. */
  readonly prices: Float64Array;
  /** Move of each close against the last one known before; NaN when the stock is suspended or new. */
  readonly #moves: Float64Array;

  constructor(panel: Panel, day: number) {
    this.#panel = panel;
    this.#close = fieldOffset(panel, 'close');
    this.prices = new Float64Array(panel.symbols.length).fill(Number.NaN);
    this.#moves = new Float64Array(panel.symbols.length);
    this.#day = -1;
    while (this.#day < day) this.advance();
  }

  advance(): void {
    this.#day++;
    const { symbols, fields, values } = this.#panel;
    for (let stock = 0; stock < symbols.length; stock++) {
      const close = values[(this.#day * symbols.length + stock) * fields.length + this.#close]!;
      this.#moves[stock] = close / this.prices[stock]! - 1;
      if (!Number.isNaN(close)) this.prices[stock] = close;
    }
  }

  tradable(stock: number, priceLimit: number): boolean {
    return hasTraded(this.#panel, this.#day, stock) && Math.abs(this.#moves[stock]!) < priceLimit;
  }
}

/** Some vendors repeat the last close with a volume of zero while a stock is suspended. */
function hasTraded(panel: Panel, day: number, stock: number): boolean {
  return valueAt(panel, day, stock, 'close') > 0 && valueAt(panel, day, stock, 'volume') > 0;
}

function benchmarkReturns(panel: Panel, first: number, last: number): Float64Array {
  return Float64Array.from({ length: last - first + 1 }, (_, i) =>
    panel.index === undefined ? memberReturn(panel, first + i) : indexReturn(panel.index.close, first + i),
  );
}

/** Return of the index since its last known close; 0 where it is unknown. */
function indexReturn(close: Float32Array, day: number): number {
  let before = day - 1;
  while (before >= 0 && Number.isNaN(close[before]!)) before--;
  const move = before < 0 ? Number.NaN : close[day]! / close[before]! - 1;
  return Number.isNaN(move) ? 0 : move;
}

/** Mean return of the stocks that were members on the day before and have a close on both days. */
function memberReturn(panel: Panel, day: number): number {
  const stocks = panel.symbols.length;
  const width = panel.fields.length;
  const close = fieldOffset(panel, 'close');
  let sum = 0;
  let count = 0;
  for (let stock = 0; stock < stocks; stock++) {
    const before = (day - 1) * stocks + stock;
    const move = panel.values[(before + stocks) * width + close]! / panel.values[before * width + close]! - 1;
    if (panel.members[before] === 0 || Number.isNaN(move)) continue;
    sum += move;
    count++;
  }
  return count === 0 ? 0 : sum / count;
}
