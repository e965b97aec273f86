import { z } from 'zod';
import { InputError } from '../../errors.js';
import { Random } from '../../random.js';
import { formatDay, parseDay } from '../data/calendar.js';
import { FIELDS, type PricePanel } from '../data/panel.js';
import { dataFormat, Notes } from './format.js';

const schema = z.strictObject({
  format: z.literal('synthetic').describe('A synthetic market in which neighbouring horizons help each other.'),
  stocks: z.int().min(1).max(100_000).default(80).describe('Number of stocks.'),
  days: z.int().min(2).max(100_000).default(750).describe('Trading days, starting on 2015-01-05.'),
  seed: z.int().min(0).default(1).describe("Seed of the market, independent of the run's."),
  strength: z.number().min(0).max(1).default(0.25).describe('Best correlation that any forecast can reach.'),
  persistence: z.number().min(0).lt(1).default(0.8).describe('Fraction of it that remains one day further ahead.'),
});

/** Options for programs only, besides the keys of a configuration. */
const marketSchema = schema.extend({
  seed: z.union([z.number(), z.string()]).default(schema.shape.seed.def.defaultValue as number),
  /** First day; trading days are Monday to Friday. */
  start: z.string().default('2015-01-05'),
  /** Common factors J that move all stocks. */
  factors: z.number().default(3),
  /** Fraction of stock-days lost to suspensions. */
  suspended: z.number().default(0.02),
});

/** α is `strength`, ρ is `persistence`. */
export type MarketOptions = Partial<Omit<z.output<typeof marketSchema>, 'format'>>;

export const synthetic = dataFormat({
  schema,
  title: 'a made-up market',
  madeUp: 'synthetic market',
  read(config) {
    const panel = syntheticMarket(config);
    return { panel, cleaned: panel, notes: new Notes() };
  },
});

/**
 * A synthetic stock market with known laws; days t, stocks s, factors j, every z, ξ, ε independent standard normal:
 *
 *     pressure    q_{s,t} = ρ q_{s,t−1} + √(1−ρ²) ξ_{s,t}
 *     own part    u_{s,t} = σ_{s,t} (α q_{s,t−1} + √(1−α²) z_{s,t})
 *     factors     f_{j,t} = τ_{j,t} z_{j,t}
 *     log return  r_{s,t} = Σ_j β_{s,j} f_{j,t} + u_{s,t}
 *     volatility  σ²_{s,t+1} = (1 − a − b) σ̄_s² + a u²_{s,t} + b σ²_{s,t},   τ likewise   (GARCH(1,1): it clusters)
 *     log volume  = log v̄_s + 0.3 q_{s,t} + 0.5 (|u_{s,t}| / σ̄_s − 0.8) + 0.3 ε
 *     day's range = σ_{s,t} (1 + |ε|) above max(open, close) by the share 1 / (1 + e^{q}), below min(open, close) by the rest
 *     open        = close of the day before, moved by 0.3 σ_{s,t} ε
 *
 * The planted dependence: the pressure q of today, which the day's volume and the position of the close in its range reveal,
 * moves the return of every day ahead, E[u_{s,t+k} | q_{s,t}] = α σ ρ^{k−1} q_{s,t}. The tasks of neighbouring
 * horizons therefore have the same best forecast up to scale, under independent noise: what is learnt on the sibling
 * helps. The best possible correlation with the own part of the return of day k is α ρ^{k−1}.
 *
 * A tenth of the stocks are listed late, and stocks are occasionally suspended for some days, as in real data.
 */
export function syntheticMarket(options: MarketOptions = {}): PricePanel {
  const { stocks, days, seed, factors, strength, persistence, suspended, start } = {
    ...marketSchema.parse({ format: 'synthetic' }),
    ...options,
  };
  check('stocks', stocks, Number.isInteger(stocks) && stocks >= 1);
  check('days', days, Number.isInteger(days) && days >= 2 && days <= MOST_DAYS);
  if (stocks * days > MOST_CELLS) {
    throw new InputError(`${stocks} stocks on ${days} days are too many, expected a product of ${MOST_CELLS} at most`, {
      key: 'days',
    });
  }
  check('factors', factors, Number.isInteger(factors) && factors >= 0);
  check('strength', strength, strength >= 0 && strength <= 1);
  check('persistence', persistence, persistence >= 0 && persistence < 1);
  check('suspended', suspended, suspended >= 0 && suspended < 1);

  const market = new Random(seed).fork('market');
  const draw = market.fork('days');
  const factorVolatility = new Float64Array(factors).fill(FACTOR_VOLATILITY ** 2);
  const factorReturn = new Float64Array(factors);
  const stockStates = Array.from({ length: stocks }, (_, s) => listing(market.fork(`stock ${s}`), factors, days));

  const values = new Float32Array(days * stocks * FIELDS.length).fill(Number.NaN);
  for (let t = 0; t < days; t++) {
    for (let j = 0; j < factors; j++) {
      factorReturn[j] = Math.sqrt(factorVolatility[j]) * draw.normal();
      factorVolatility[j] = garch(factorVolatility[j], factorReturn[j], FACTOR_VOLATILITY);
    }
    for (let s = 0; s < stocks; s++) {
      const stock = stockStates[s];
      const bar = tradingDay(stock, factorReturn, strength, persistence);
      const away = t < stock.listed || isSuspended(stock, suspended);
      // The first stock trades every day, so that no day is without a price.
      if (away && s > 0) continue;
      values.set(bar, (t * stocks + s) * FIELDS.length);
    }
  }
  return {
    calendar: weekdays(start, days),
    symbols: stockStates.map((_, s) => `S${String(s).padStart(String(stocks - 1).length, '0')}`),
    fields: FIELDS,
    values,
    members: new Uint8Array(days * stocks).fill(1),
  };
}

/** Beyond it dates have more than four digits for the year. */
const MOST_DAYS = 2_000_000;
/** Stock-days; this many take 1 GB. */
const MOST_CELLS = 50_000_000;

/** GARCH(1,1): the weight of the last shock, and of the last variance. */
const A = 0.1;
const B = 0.85;
const FACTOR_VOLATILITY = 0.006;
/** Days a suspension lasts on average. */
const SUSPENSION = 5;
const LATE_LISTINGS = 0.1;

/** Parameters and state of a stock. */
interface Stock {
  readonly random: Random;
  readonly loadings: Float64Array;
  /** σ̄, long-run volatility of its own part. */
  readonly volatility: number;
  readonly logVolume: number;
  /** First day it trades. */
  readonly listed: number;
  variance: number;
  pressure: number;
  logClose: number;
  /** 1 while it is suspended. */
  away: 0 | 1;
}

function listing(random: Random, factors: number, days: number): Stock {
  // The first factor is the market: all stocks follow it.
  const loadings = Float64Array.from({ length: factors }, (_, j) => (j === 0 ? 1 : 0) + 0.5 * random.normal());
  const volatility = 0.012 * Math.exp(0.3 * random.normal());
  return {
    random,
    loadings,
    volatility,
    logVolume: Math.log(1e6) + random.normal(),
    listed: random.uniform() < LATE_LISTINGS ? random.int(Math.ceil(days / 2)) : 0,
    variance: volatility ** 2,
    pressure: random.normal(),
    logClose: Math.log(10) + 0.7 * random.normal(),
    away: 0,
  };
}

/** Moves the stock by a day and gives its open, high, low, close and volume. */
function tradingDay(stock: Stock, factorReturn: Float64Array, strength: number, persistence: number): number[] {
  const { random, loadings, volatility } = stock;
  const sigma = Math.sqrt(stock.variance);
  const own = sigma * (strength * stock.pressure + Math.sqrt(1 - strength ** 2) * random.normal());
  const before = stock.logClose;
  stock.logClose += loadings.reduce((sum, beta, j) => sum + beta * factorReturn[j], own);
  stock.variance = garch(stock.variance, own, volatility);
  stock.pressure = persistence * stock.pressure + Math.sqrt(1 - persistence ** 2) * random.normal();

  const logOpen = before + 0.3 * sigma * random.normal();
  const range = sigma * (1 + Math.abs(random.normal()));
  const above = 1 / (1 + Math.exp(stock.pressure));
  const logVolume =
    stock.logVolume + 0.3 * stock.pressure + 0.5 * (Math.abs(own) / volatility - 0.8) + 0.3 * random.normal();
  return [
    Math.exp(logOpen),
    Math.exp(Math.max(logOpen, stock.logClose) + range * above),
    Math.exp(Math.min(logOpen, stock.logClose) - range * (1 - above)),
    Math.exp(stock.logClose),
    Math.exp(logVolume),
  ];
}

function garch(variance: number, shock: number, longRun: number): number {
  return (1 - A - B) * longRun ** 2 + A * shock ** 2 + B * variance;
}

/** Suspensions begin at random and last SUSPENSION days on average (geometric), so that `share` of all days is lost. */
function isSuspended(stock: Stock, share: number): boolean {
  const draw = stock.random.uniform();
  if (stock.away === 0) stock.away = draw < share / (SUSPENSION * (1 - share)) ? 1 : 0;
  else if (draw < 1 / SUSPENSION) stock.away = 0;
  return stock.away === 1;
}

function weekdays(start: string, count: number): string[] {
  let day = parseDay(start);
  if (day === undefined) throw new InputError(`"${start}" is not a date, expected YYYY-MM-DD`, { key: 'start' });
  const dates: string[] = [];
  for (; dates.length < count; day++) {
    // 1970-01-01 was a Thursday.
    const weekday = (day + 4) % 7;
    if (weekday !== 0 && weekday !== 6) dates.push(formatDay(day));
  }
  return dates;
}

function check(key: string, value: number, valid: boolean): void {
  if (!valid) throw new InputError(`${value} is out of range`, { key });
}
