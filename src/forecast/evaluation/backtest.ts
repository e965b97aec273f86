import { InputError } from '../../errors.js';
import { mean } from '../../metrics/index.js';
import { parseConfig } from '../../run/index.js';
import { fieldOffset, type PricePanel, type Samples, valueAt } from '../data/panel.js';
import {
  Account,
  type BacktestConfig,
  type BacktestOptions,
  type BacktestSettings,
  backtestSchema,
  backtestSettings,
  type Decision,
  topkDrop,
} from './portfolio.js';
import { type Risk, risk } from './risk.js';

/** The series of a backtest, one value per trading day, and its figures. */
export interface Backtest {
  readonly dates: readonly string[];
  /** Value of cash and holdings at the close. */
  readonly value: Float64Array;
  /** Return of the day before costs, and the costs, both as fractions of the previous day's value. */
  readonly returns: Float64Array;
  readonly costs: Float64Array;
  /** Value of the holdings at the close as a fraction of the portfolio; with short ones, of both sides together. */
  readonly exposure: Float64Array;
  /** Value bought and sold as a fraction of the previous day's value. */
  readonly turnover: Float64Array;
  /** Return of the index, or of the equal-weight members if the panel has no index; 0 without a benchmark. */
  readonly benchmark: Float64Array;
  readonly benchmarkName: string;
  readonly meanTurnover: number;
  readonly meanExposure: number;
  /** Money that could have been traded this way (`capacityOf`); null if the data has no volume. */
  readonly capacity: number | null;
  /** Dates of forecasts for fewer stocks than there are to hold. */
  readonly thinDays: readonly string[];
  readonly portfolio: Risk;
  readonly market: Risk;
  /** Returns minus the benchmark's, before and after costs. */
  readonly excess: Risk;
  readonly excessAfterCosts: Risk;
}

/** When and at which price forecasts are traded. */
export interface Execution {
  /**
   * Days from a forecast to its trade: `labelStart` of what was forecast, or the trade misses the return that the forecast
   * is about. qlib's is 1. With 0 the trade is at the same close that the forecast uses: an upper bound that nobody
   * can trade.
   */
  readonly delay: number;
  readonly price: 'open' | 'close';
}

/**
 * Trades on the forecasts as qlib's TopkDropoutStrategy and simulator do: the forecasts of day t decide the orders of day
 * t + `delay`, dealt at its close or open; sales first, then the free cash times `invested` is split over the purchases. A
 * stock that is suspended or at its price limit is not traded in either direction; an order that fails is not repeated.
 *
 * A held stock that is suspended keeps its last forecast (qlib forecasts suspended members too; without one they would
 * fill the last ranks and block all sales); one that trades but has none, having left the market, is sold first.
 *
 * Simpler than qlib: adjusted prices and fractional shares (no lots of 100), no market impact, no limit by volume. A
 * suspended or delisted stock is held at its last close. Short sides pay the same costs and no fee for borrowing; both
 * sides begin every day with the same money.
 *
 * @param forecasts of each sample; NaN for none
 */
export function backtest(
  panel: PricePanel,
  samples: Samples,
  forecasts: ArrayLike<number>,
  { delay, price }: Execution,
  options: BacktestOptions = {},
): Backtest {
  const settings = backtestSettings(parseOptions(options), panel.calendar);
  if (!Number.isInteger(delay) || delay < 0)
    throw new InputError(`cannot trade ${delay} days after the forecast`, { key: 'delay' });
  if (samples.length === 0) throw new InputError('there is no sample to trade on');
  const first = samples.day[0] + delay;
  const last = Math.min(samples.day[samples.length - 1] + delay, panel.calendar.length - 1);
  if (first > last) {
    const forecast = panel.calendar[samples.day[0]];
    throw new InputError(`the data ends before the trades, ${delay} trading days after the forecasts of ${forecast}`);
  }
  const side = (values: ArrayLike<number>): Side =>
    simulate(panel, samples, values, { delay, price, first, last }, settings);
  const { cash, days, longShort } = settings;
  const long = side(forecasts);
  const whole = longShort ? hedged(long, side(Float64Array.from(forecasts, (x) => -x)), cash) : long;
  const { trades: _, ...series } = whole;
  const { returns, costs, turnover } = series;
  const benchmark = benchmarkReturns(panel, first, last, settings);
  const net = returns.map((r, i) => r - costs[i]);
  return {
    dates: panel.calendar.slice(first, last + 1),
    ...series,
    benchmark: benchmark.returns,
    benchmarkName: benchmark.name,
    meanTurnover: mean(turnover),
    meanExposure: mean(whole.exposure),
    capacity: fieldOffset(panel, 'volume') < 0 ? null : capacityOf(whole.trades, settings.participation),
    thinDays: thinDays(panel, samples, settings),
    portfolio: risk(net, days),
    market: risk(benchmark.returns, days),
    excess: risk(
      returns.map((r, i) => r - benchmark.returns[i]),
      days,
    ),
    excessAfterCosts: risk(
      net.map((r, i) => r - benchmark.returns[i]),
      days,
    ),
  };
}

function thinDays(
  { calendar }: PricePanel,
  { day, dayStarts }: Samples,
  { top, longShort }: BacktestSettings,
): string[] {
  const wanted = longShort ? 2 * top : top;
  const starts = [...dayStarts.subarray(0, -1)].filter((start, d) => dayStarts[d + 1] - start < wanted);
  return starts.map((start) => calendar[day[start]]);
}

function parseOptions(options: BacktestOptions): BacktestConfig {
  const result = backtestSchema.safeParse(options);
  return result.success ? result.data : parseConfig(backtestSchema, options as Record<string, unknown>, 'backtest');
}

/** The series of one side, one value per day. */
type Side = Pick<Backtest, 'value' | 'returns' | 'costs' | 'turnover' | 'exposure'> & { readonly trades: Trade[] };

/** A purchase or a sale. */
export interface Trade {
  /** As a fraction of the portfolio's value on the previous evening. */
  readonly share: number;
  /** What the stock traded that day in the whole market, in money. */
  readonly marketValue: number;
}

/**
 * The money at which 95 % of what is traded would stay within `participation` of the market. A portfolio of M trades
 * shareᵢ · M, which is that part of the market's value Vᵢ at Mᵢ = participation · Vᵢ ∕ shareᵢ. The capacity is the Mᵢ below
 * which 5 % of the traded value lies. Infinite if nothing is traded.
 */
export function capacityOf(trades: readonly Trade[], participation: number): number {
  const limits = trades.map(({ share, marketValue }) => ({ share, money: (participation * marketValue) / share }));
  limits.sort((a, b) => a.money - b.money);
  let left = THIN_SHARE * limits.reduce((sum, { share }) => sum + share, 0);
  // Slack: a sum of many shares may miss the twentieth of them all by rounding.
  const limit = limits.find(({ share }) => {
    left -= share;
    return left < -1e-12;
  });
  return limit?.money ?? Number.POSITIVE_INFINITY;
}

/** Share of the traded value that may exceed the share of the market. */
const THIN_SHARE = 0.05;

function simulate(
  panel: PricePanel,
  samples: Samples,
  forecasts: ArrayLike<number>,
  { delay, price, first, last }: Execution & { readonly first: number; readonly last: number },
  settings: BacktestSettings,
): Side {
  const { top, drop, cash } = settings;
  const account = new Account(cash, settings.costs);
  const market = new Market(panel, price, first - 1);
  const length = last - first + 1;
  const [value, returns, costs, turnover, exposure] = [0, 0, 0, 0, 0].map(() => new Float64Array(length));
  const signal = new Signal(panel, samples, forecasts);
  const trades: Trade[] = [];
  let before = cash;
  for (let i = 0; i < length; i++) {
    market.advance();
    const { traded, paid } = account;
    const held = account.held();
    const known = signal.on(first + i - delay, held);
    const record = (stock: number, value: number): void => {
      if (value > 0) trades.push({ share: value / before, marketValue: market.tradedValue(stock) });
    };
    if (known !== undefined) trade(account, market, topkDrop(held, known, top, drop), known, settings, record);
    value[i] = account.value(market.prices);
    costs[i] = (account.paid - paid) / before;
    returns[i] = value[i] / before - 1 + costs[i];
    turnover[i] = (account.traded - traded) / before;
    exposure[i] = account.holdings(market.prices) / value[i];
    before = value[i];
  }
  return { value, returns, costs, turnover, exposure, trades };
}

/** Long one side and short the other, both with the value of the previous evening. */
function hedged(long: Side, short: Side, cash: number): Side {
  const sum = (key: 'costs' | 'turnover' | 'exposure') => long[key].map((x, i) => x + short[key][i]);
  const [returns, costs] = [long.returns.map((r, i) => r - short.returns[i]), sum('costs')];
  let worth = cash;
  const value = returns.map((r, i) => {
    worth *= 1 + r - costs[i];
    return worth;
  });
  const trades = [...long.trades, ...short.trades];
  return { value, returns, costs, turnover: sum('turnover'), exposure: sum('exposure'), trades };
}

function trade(
  account: Account,
  market: Market,
  { sell, buy }: Decision,
  forecasts: Float64Array,
  { invested, limit, weights }: BacktestSettings,
  record: (stock: number, value: number) => void,
): void {
  const booked = (stock: number, order: () => void): void => {
    const { traded } = account;
    if (market.tradable(stock, limit)) order();
    record(stock, account.traded - traded);
  };
  for (const stock of sell) booked(stock, () => account.sell(stock, market.tradePrice(stock)));
  const budget = account.cash * invested;
  const amounts =
    weights === 'equal'
      ? buy.map(() => budget / buy.length)
      : scoreShares(buy, forecasts).map((share) => budget * share);
  for (const [i, stock] of buy.entries()) {
    booked(stock, () => account.buy(stock, market.tradePrice(stock), amounts[i]));
  }
}

/** In proportion to the distance of the forecast from the lowest of the day; equally if all are the lowest. */
function scoreShares(buy: readonly number[], forecasts: Float64Array): number[] {
  const lowest = forecasts.reduce((low, x) => (x < low ? x : low), Number.POSITIVE_INFINITY);
  const above = buy.map((stock) => forecasts[stock] - lowest);
  const total = above.reduce((sum, x) => sum + x, 0);
  return above.map((x) => (total > 0 ? x / total : 1 / buy.length));
}

/** The forecasts, day by day. */
class Signal {
  /** Number of the next day of the samples. */
  private next = 0;
  /** Last forecast of each stock. */
  private readonly known: Float64Array;

  constructor(
    private readonly panel: PricePanel,
    private readonly samples: Samples,
    private readonly forecasts: ArrayLike<number>,
  ) {
    this.known = new Float64Array(panel.symbols.length).fill(Number.NaN);
  }

  /** Forecast of each stock on `day`, which must not lie before the day of the last call; undefined when there is none. */
  on(day: number, held: readonly number[]): Float64Array | undefined {
    const { dayStarts, stock } = this.samples;
    const from = dayStarts[this.next];
    if (this.samples.day[from] !== day) return undefined;
    const to = dayStarts[++this.next];
    const current = new Float64Array(this.known.length).fill(Number.NaN);
    for (let i = from; i < to; i++) {
      current[stock[i]] = this.forecasts[i];
      this.known[stock[i]] = this.forecasts[i];
    }
    for (const s of held) if (Number.isNaN(current[s]) && !hasTraded(this.panel, day, s)) current[s] = this.known[s];
    return current;
  }
}

/** The prices, day by day. */
class Market {
  /** Last known close of each stock, NaN before the first one. */
  readonly prices: Float64Array;
  /** Move of each price of a trade against the last close before; NaN when the stock is suspended or new. */
  private readonly moves: Float64Array;
  private readonly close: number;
  private readonly traded: number;
  private day = -1;

  constructor(
    private readonly panel: PricePanel,
    price: 'open' | 'close',
    day: number,
  ) {
    this.close = fieldOffset(panel, 'close');
    this.traded = fieldOffset(panel, price);
    this.prices = new Float64Array(panel.symbols.length).fill(Number.NaN);
    this.moves = new Float64Array(panel.symbols.length);
    while (this.day < day) this.advance();
  }

  advance(): void {
    this.day++;
    for (let stock = 0; stock < this.prices.length; stock++) {
      this.moves[stock] = this.tradePrice(stock) / this.prices[stock] - 1;
      const close = this.at(stock, this.close);
      if (!Number.isNaN(close)) this.prices[stock] = close;
    }
  }

  /** The price that a stock is bought and sold at on this day; NaN if there is none. */
  tradePrice(stock: number): number {
    return this.at(stock, this.traded);
  }

  /** Volume times the mean price of the day, or its close; NaN if there is no volume. */
  tradedValue(stock: number): number {
    const [volume, vwap] = ['volume', 'vwap'].map((field) => valueAt(this.panel, this.day, stock, field));
    return volume * (vwap > 0 ? vwap : this.prices[stock]);
  }

  tradable(stock: number, limit: number | null): boolean {
    if (!hasTraded(this.panel, this.day, stock) || !(this.tradePrice(stock) > 0)) return false;
    // A stock that is new has no move that could be at a limit; it is not traded on its first day.
    return Math.abs(this.moves[stock]) < (limit ?? Number.POSITIVE_INFINITY);
  }

  private at(stock: number, field: number): number {
    const { symbols, fields, values } = this.panel;
    return values[(this.day * symbols.length + stock) * fields.length + field];
  }
}

/** Some vendors repeat the last close with a volume of zero while a stock is suspended. */
function hasTraded(panel: PricePanel, day: number, stock: number): boolean {
  const volume = valueAt(panel, day, stock, 'volume');
  return valueAt(panel, day, stock, 'close') > 0 && (volume > 0 || fieldOffset(panel, 'volume') < 0);
}

function benchmarkReturns(
  panel: PricePanel,
  first: number,
  last: number,
  { benchmark, longShort }: Pick<BacktestSettings, 'benchmark' | 'longShort'>,
): { readonly name: string; readonly returns: Float64Array } {
  const { index } = panel;
  const chosen = benchmark !== 'auto' ? benchmark : longShort ? 'none' : index === undefined ? 'members' : 'index';
  const returns = (of: (day: number) => number) =>
    Float64Array.from({ length: last - first + 1 }, (_, i) => of(first + i));
  if (chosen === 'none') return { name: 'nothing', returns: returns(() => 0) };
  if (chosen === 'members') {
    return { name: 'equal-weight members', returns: returns((day) => memberReturn(panel, day)) };
  }
  if (index === undefined) {
    throw new InputError('the data has no index to compare with: expected problem.data.index, or another benchmark', {
      key: 'problem.backtest.benchmark',
    });
  }
  return { name: index.symbol, returns: returns((day) => indexReturn(index.close, day)) };
}

/** Returns of the index on some days, or of the equal-weight members if the panel has no index. */
export function marketReturns(panel: PricePanel, first: number, last: number): Float64Array {
  return benchmarkReturns(panel, first, last, { benchmark: 'auto', longShort: false }).returns;
}

/** Return of the index since its last known close; 0 if unknown. */
function indexReturn(close: Float32Array, day: number): number {
  let before = day - 1;
  while (before >= 0 && Number.isNaN(close[before])) before--;
  const move = before < 0 ? Number.NaN : close[day] / close[before] - 1;
  return Number.isNaN(move) ? 0 : move;
}

/** Mean return of the stocks that were members on the day before and have a close on both days. */
function memberReturn(panel: PricePanel, day: number): number {
  const stocks = panel.symbols.length;
  const width = panel.fields.length;
  const close = fieldOffset(panel, 'close');
  let sum = 0;
  let count = 0;
  for (let stock = 0; stock < stocks; stock++) {
    const before = (day - 1) * stocks + stock;
    const move = panel.values[(before + stocks) * width + close] / panel.values[before * width + close] - 1;
    if (panel.members[before] === 0 || Number.isNaN(move)) continue;
    sum += move;
    count++;
  }
  return count === 0 ? 0 : sum / count;
}
