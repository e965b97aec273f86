import { describe, expect, it } from 'vitest';
import { samplesBetween } from '../../src/forecast/data/panel.js';
import { capacityOf, backtest as tradeOn } from '../../src/forecast/evaluation/backtest.js';
import { Account, backtestSchema, backtestSettings, topkDrop } from '../../src/forecast/evaluation/portfolio.js';
import { groupReturns, risk } from '../../src/forecast/evaluation/risk.js';
import { panelOfCloses } from './panels.js';

type Backtest = typeof tradeOn;

/** A backtest that trades at closes, this many days after the forecasts. */
function backtest(
  panel: Parameters<Backtest>[0],
  samples: Parameters<Backtest>[1],
  forecasts: ArrayLike<number>,
  delay: number,
  options?: Parameters<Backtest>[4],
): ReturnType<Backtest> {
  return tradeOn(panel, samples, forecasts, { delay, price: 'close' }, options);
}

describe('risk', () => {
  it('adds returns up: mean, mean over deviation, deepest fall of the sum', () => {
    // Sums 0.02, 0.01, 0.04, −0.01, 0.02; peak 0.04, so the deepest fall is −0.05. Mean 0.004;
    // squared deviations (0.016² + 0.014² + 0.026² + 0.054² + 0.026²) = 0.00472, over 4: 0.00118.
    const { annualReturn, informationRatio, maxDrawdown } = risk([0.02, -0.01, 0.03, -0.05, 0.03], 238);
    expect(annualReturn).toBeCloseTo(0.952, 12);
    expect(informationRatio).toBeCloseTo((0.004 / Math.sqrt(0.00118)) * Math.sqrt(238), 10);
    expect(maxDrawdown).toBeCloseTo(-0.05, 12);
    // As in qlib (cummax of the sums): a loss on the first day is no fall from anywhere.
    expect(risk([-0.1, 0.05], 238).maxDrawdown).toBe(0);
  });

  it('is undefined for too few days', () => {
    expect(risk([0.1], 238).informationRatio).toBeNaN();
    expect(risk([], 238).annualReturn).toBeNaN();
  });
});

describe('the top-k-drop decision', () => {
  it('buys the best when nothing is held', () => {
    expect(topkDrop([], [0.1, 0.5, 0.3, NaN, 0.4], 2, 1)).toEqual({ sell: [], buy: [1, 4] });
  });

  it('replaces the worst held stocks by the best others', () => {
    // Held 0, 1, 2 with scores 1, 2, 3; candidates 4 (score 9) and 3 (5). Last 2 of all: 1 and 0.
    expect(topkDrop([0, 1, 2], [1, 2, 3, 5, 9], 3, 2)).toEqual({ sell: [1, 0], buy: [4, 3] });
  });

  it('never sells a stock for a worse one', () => {
    // Held 0 and 1 with 8 and 7; candidates 2 (7.5) and 3 (1). Ranked 0, 2, 1, 3: the last two hold one held stock, 1.
    expect(topkDrop([0, 1], [8, 7, 7.5, 1], 2, 2)).toEqual({ sell: [1], buy: [2] });
  });

  it('sells first what has no score, and fills free places', () => {
    expect(topkDrop([0, 1], [NaN, 5, 4, 3], 3, 1)).toEqual({ sell: [0], buy: [2, 3] });
  });

  it('sells nothing for want of a replacement, but for what has left the market', () => {
    expect(topkDrop([0, 1, 2], [1, 2, NaN], 5, 2)).toEqual({ sell: [2], buy: [] });
    expect(topkDrop([0, 1, 2], [1, 2, 3, 4], 3, 2)).toEqual({ sell: [0], buy: [3] });
  });

  it('only fills places when nothing is to be replaced', () => {
    expect(topkDrop([0], [1, 2, 3], 2, 0)).toEqual({ sell: [], buy: [2] });
  });
});

describe('an account', () => {
  const costs = { buy: 0.0005, sell: 0.0015, minimum: 5 };

  it('pays the rate, and at least the least cost', () => {
    const account = new Account(100_000, costs);
    account.buy(0, 10, 50_000); // cost 25
    expect(account.cash).toBeCloseTo(49_975, 9);
    account.buy(1, 10, 1_000); // 0.5, so 5
    expect(account.cash).toBeCloseTo(48_970, 9);
    account.sell(0, 11); // 55,000 − 82.5
    expect(account.cash).toBeCloseTo(103_887.5, 9);
    expect(account.value([11, 20])).toBeCloseTo(105_887.5, 9);
    expect(account.paid).toBeCloseTo(112.5, 9);
    expect(account.traded).toBeCloseTo(106_000, 9);
  });

  it('buys no more than the cash covers with its cost', () => {
    const rich = new Account(100_050, costs);
    rich.buy(0, 1, 1e6); // 100,000 + 50
    expect(rich.cash).toBeCloseTo(0, 6);
    expect(rich.value([1])).toBeCloseTo(100_000, 6);
    const poor = new Account(105, costs);
    poor.buy(0, 1, 1e6); // 100 + 5
    expect(poor.value([1])).toBeCloseTo(100, 9);
    const broke = new Account(4, costs);
    broke.buy(0, 1, 1e6);
    expect(broke.held()).toEqual([]);
  });
});

describe('a backtest', () => {
  const free = { buy: 0, sell: 0, minimum: 0 };

  it('trades on the close of the day after the forecast and compares with the index', () => {
    // Scores of day 0 prefer A, of day 1 B. Bought at the close of day 1 (A at 10), so day 1 earns nothing; A rises 5 % on
    // day 2 and is exchanged for B at that close; B rises 2 % on day 3.
    const panel = panelOfCloses({ A: [10, 10, 10.5, 10.5], B: [20, 20, 20, 20.4] }, [100, 101, 101, 102.01]);
    const samples = samplesBetween(panel, 0, 1);
    const result = backtest(panel, samples, [2, 1, 1, 2], 1, {
      top: 1,
      drop: 1,
      costs: free,
      cash: 1000,
      invested: 1,
    });
    expect(result.dates).toEqual(['2020-01-02', '2020-01-03']);
    expect([...result.returns].map((r) => Number(r.toFixed(6)))).toEqual([0, 0.05]);
    expect([...result.turnover].map((r) => Number(r.toFixed(6)))).toEqual([1, 2.1]);
    expect([...result.benchmark].map((r) => Number(r.toFixed(6)))).toEqual([0.01, 0]);
    expect(result.value[1]).toBeCloseTo(1050, 4);
    expect(result.excess.annualReturn).toBeCloseTo(((0.05 - 0.01) / 2) * 238, 5);
    expect(result.benchmarkName).toBe('INDEX');
  });

  it('trades at the close of the forecast itself, or days later, if told to', () => {
    // A rises by 5 % on day 2 and by 1 % on day 3. The forecast of day 1 buys it at the close of day 1 and has both, with a
    // delay of one day the second, of two days nothing: the course ends with the trade of the last forecast.
    const panel = panelOfCloses({ A: [10, 10, 10.5, 10.605], B: [20, 20, 20, 20] });
    const samples = samplesBetween(panel, 1, 3);
    const returns = (delay: number) =>
      [
        ...backtest(panel, samples, [2, 1, 2, 1, 2, 1], delay, {
          top: 1,
          drop: 1,
          costs: free,
          cash: 1000,
          invested: 1,
        }).returns,
      ].map((r) => Number(r.toFixed(6)));
    expect(returns(0)).toEqual([0, 0.05, 0.01]);
    expect(returns(1)).toEqual([0, 0.01]);
    expect(returns(2)).toEqual([0]);
    expect(() => returns(3)).toThrow('ends before the trades, 3 trading days after the forecasts of 2020-01-02');
    expect(() => returns(-1)).toThrow('delay: cannot trade -1 days');
  });

  it('separates returns and costs', () => {
    const panel = panelOfCloses({ A: [10, 10, 10.5] });
    const samples = samplesBetween(panel, 0, 1);
    const result = backtest(panel, samples, [1, 1], 1, { top: 1, drop: 1, cash: 1e6, invested: 0.5 });
    // 500,000 bought for 250; then 5 % on it. Nothing more: there is no other stock to buy.
    expect(result.costs[0]).toBeCloseTo(250 / 1e6, 12);
    expect(result.returns[0]).toBeCloseTo(0, 12);
    expect(result.returns[1]).toBeCloseTo(25_000 / 999_750, 9);
    expect(result.portfolio.annualReturn).toBeCloseTo(((25_000 / 999_750 - 250 / 1e6) / 2) * 238, 6);
  });

  it('trades neither a suspended stock nor one at its price limit', () => {
    // A is suspended on day 1, B rises by 10 % (limit 9.5 %): only C can be bought.
    const panel = panelOfCloses({ A: [10, Number.NaN, 12], B: [10, 11, 12], C: [10, 10, 11] });
    const samples = samplesBetween(panel, 0, 0);
    const options = { top: 3, drop: 1, costs: free, cash: 900, invested: 1 };
    const result = backtest(panel, samples, [3, 2, 1], 1, options);
    expect(result.turnover[0]).toBeCloseTo(1 / 3, 12);
    const higher = backtest(panel, samples, [3, 2, 1], 1, { ...options, limit: 0.2 });
    expect(higher.turnover[0]).toBeCloseTo(2 / 3, 12);
  });

  it('keeps a suspended stock at its last close, and its score', () => {
    // A and B are held; B is suspended on day 2 with the higher last score; C is best. A must go, not B.
    const panel = panelOfCloses({ A: [10, 10, 10, 10, 10.5], B: [10, 10, NaN, NaN, 12], C: [10, 10, 10, 10, 11] });
    const samples = samplesBetween(panel, 0, 2);
    // Days 0 and 1: A, B, C; day 2: A, C.
    const scores = [3, 4, 0, 3, 4, 0, 3, 9];
    const { value, turnover } = backtest(panel, samples, scores, 1, {
      top: 2,
      drop: 1,
      costs: free,
      cash: 100,
      invested: 1,
    });
    expect([...value]).toEqual([100, 100, 100]);
    expect([...turnover]).toEqual([1, 0, 1]);
  });

  it('sells a stock that has left the market as soon as it trades again', () => {
    // A is held; on day 2 it is no member any more but suspended, on day 3 it trades, so day 4 sells it for B.
    const panel = panelOfCloses({ A: [10, 10, NaN, 10, 10], B: [10, 10, 10, 10, 10] });
    panel.members.set([0, 1, 0, 1, 0, 1], 4);
    const samples = samplesBetween(panel, 0, 3);
    const { turnover } = backtest(panel, samples, [9, 1, 9, 1, 1, 1], 1, {
      top: 1,
      drop: 1,
      costs: free,
      invested: 1,
    });
    expect([...turnover]).toEqual([1, 0, 0, 2]);
  });

  it('does not trade a stock whose price is only repeated, with a volume of zero', () => {
    const panel = panelOfCloses({ A: [10, 10, 10] });
    panel.values[1 * 5 + 4] = 0;
    expect([...backtest(panel, samplesBetween(panel, 0, 1), [1], 1, { top: 1, drop: 1 }).turnover]).toEqual([0]);
  });

  it('is measured against the members of the day before where there is no index', () => {
    const panel = panelOfCloses({ A: [10, 11, 11], B: [10, 10, 20], C: [10, 10.5, NaN] });
    panel.members.set([1, 1, 1, 1, 0, 1], 0);
    const { benchmark, benchmarkName } = backtest(panel, samplesBetween(panel, 0, 1), [1, 2, 3, 1, 2], 1);
    expect(benchmarkName).toBe('equal-weight members');
    // Day 1: (10 % + 0 + 5 %) / 3. Day 2: A alone (B left, C is suspended).
    expect(benchmark[0]).toBeCloseTo(0.05, 6);
    expect(benchmark[1]).toBe(0);
  });

  it('refuses forecasts of the last day alone, and no forecasts', () => {
    const panel = panelOfCloses({ A: [1, 1] });
    expect(() => backtest(panel, samplesBetween(panel, 1, 1), [1], 1)).toThrow(
      /ends before the trades, 1 trading days after the forecasts of 2020-01-02/,
    );
    expect(() => backtest(panel, samplesBetween(panel, 1, 0), [], 1)).toThrow(/no sample to trade on/);
    expect(() => backtest(panel, samplesBetween(panel, 0, 0), [1], 1, { top: 0 })).toThrow(
      /top: expected an integer of at least 1, found 0/,
    );
  });
});

describe('the settings of a backtest', () => {
  const COSTS = { buy: 0.001, sell: 0.002, minimum: 0 };

  it('follow the worked example of docs/forecasting.md', () => {
    const panel = panelOfCloses({ A: [10, 10, 11, 11], B: [20, 20, 20, 21] });
    // Monday prefers A, Tuesday and Wednesday B; traded at the close of the day after.
    const options = { top: 1, drop: 1, costs: COSTS, cash: 1000, invested: 1, limit: null } as const;
    const course = backtest(panel, samplesBetween(panel, 0, 2), [2, 1, 1, 2, 1, 2], 1, options);
    // Tuesday: A for 1000 / 1.001. Wednesday: it has risen by a tenth; sold at .2 %, B bought at .1 %. Thursday: B + 5 %.
    const bought = 1000 / 1.001;
    const sold = 1.1 * bought;
    const exchanged = (0.998 * sold) / 1.001;
    const expected = {
      value: [bought, exchanged, 1.05 * exchanged],
      returns: [0, 0.1, 0.05],
      costs: [(0.001 * bought) / 1000, (0.002 * sold + 0.001 * exchanged) / bought, 0],
      turnover: [bought / 1000, (sold + exchanged) / bought, 0],
      exposure: [1, 1, 1],
    };
    for (const [key, days] of Object.entries(expected)) {
      days.forEach((x, d) => {
        expect(course[key as keyof typeof expected][d], `${key} ${d}`).toBeCloseTo(x, 5);
      });
    }
    // The numbers that the page prints.
    expect([...course.value].map((x) => x.toFixed(2))).toEqual(['999.00', '1095.61', '1150.39']);
    expect(course.turnover[1]).toBeCloseTo(2.197, 3);
    expect(course.costs[1]).toBeCloseTo(0.0033, 4);
  });

  it('tell how much money could be traded, from the volume', () => {
    // The worked example, with 100 shares of each stock a day. Shares of the worth and market values of its three trades:
    //   buy A   .999           1,000   of which a twentieth is a trade of 50 ∕ .999 = 50.05
    //   sell A  1.1            1,100                                     55 ∕ 1.1 = 50
    //   buy B   1095.61 ∕ 999  2,000                                     100 ∕ 1.0967 = 91.18
    // The sale of A alone is more than 5 % of what is traded, and it reaches the twentieth first.
    const panel = panelOfCloses({ A: [10, 10, 11, 11], B: [20, 20, 20, 21] });
    const samples = samplesBetween(panel, 0, 2);
    const forecasts = [1, 0, 0, 1, 0, 1];
    const settings = {
      top: 1,
      drop: 1,
      costs: { buy: 0.001, sell: 0.002, minimum: 0 },
      cash: 1000,
      invested: 1,
      limit: null,
    };
    expect(backtest(panel, samples, forecasts, 1, settings).capacity).toBeCloseTo(50, 9);
    // With twice the share of the market twice the money; the money to begin with does not matter.
    const other = { ...settings, participation: 0.1, cash: 77 };
    expect(backtest(panel, samples, forecasts, 1, other).capacity).toBeCloseTo(100, 9);
    const without = { ...panel, fields: ['open', 'high', 'low', 'close', 'other'] };
    expect(backtest(without, samples, forecasts, 1, settings).capacity).toBeNull();
  });

  it('call 5 % of the traded value thin', () => {
    const trades = [
      { share: 0.04, marketValue: 1 },
      { share: 0.02, marketValue: 10 },
      { share: 0.94, marketValue: 1000 },
    ];
    // The first is 4 % of all; with the second it is 6 %, and that one allows .5 · 10 ∕ .02.
    expect(capacityOf(trades, 0.5)).toBeCloseTo(250, 9);
    expect(capacityOf([], 0.5)).toBe(Number.POSITIVE_INFINITY);
  });

  it('trade at the open, with worth at the close', () => {
    const panel = panelOfCloses({ A: [10, 10, 11, 11], B: [20, 20, 20, 20] });
    // A opens Tuesday at 8 and closes at 10: bought at the open, it earns 25 % on the day. Its move of −20 % since Monday's
    // close is beyond a limit of 9.5 %.
    panel.values[1 * 2 * 5] = 8;
    const options = { top: 1, drop: 1, costs: { buy: 0, sell: 0, minimum: 0 }, cash: 1000, invested: 1 };
    const samples = samplesBetween(panel, 0, 1);
    const open = { delay: 1, price: 'open' } as const;
    const course = tradeOn(panel, samples, [2, 1, 2, 1], open, { ...options, limit: null });
    expect([...course.returns].map((r) => Number(r.toFixed(6)))).toEqual([0.25, 0.1]);
    const limited = tradeOn(panel, samples, [2, 1, 2, 1], open, options);
    expect(limited.returns[0]).toBe(0);
  });

  it('split money by the forecasts', () => {
    const panel = panelOfCloses({ A: [10, 10, 11], B: [10, 10, 10], C: [10, 10, 10] });
    // Above the lowest, C's 1: A by 3, B by 1. Three quarters of the money rise by a tenth.
    const options = { top: 2, drop: 1, weights: 'score', costs: { buy: 0, sell: 0, minimum: 0 }, invested: 1 } as const;
    const course = backtest(panel, samplesBetween(panel, 0, 1), [4, 2, 1, 4, 2, 1], 1, { ...options, limit: null });
    expect(course.returns[1]).toBeCloseTo(0.075, 6);
  });

  it('hold as much short as long', () => {
    // The best rises by 10 %, the worst falls by 5 %: 15 %, of 100 % long and 100 % short. Two stocks are too few for 2 × 2.
    const panel = panelOfCloses({ A: [10, 10, 11], B: [10, 10, 9.5] }, [1, 1, 2]);
    const options = { top: 1, drop: 1, longShort: true, costs: COSTS, cash: 1000, invested: 1, limit: null } as const;
    const samples = samplesBetween(panel, 0, 1);
    const course = backtest(panel, samples, [2, 1, 2, 1], 1, options);
    expect(course.returns[1]).toBeCloseTo(0.15, 6);
    expect(course.exposure[0]).toBeCloseTo(2, 9);
    expect(course.costs[0]).toBeCloseTo((2 * 0.001) / 1.001, 9);
    expect(course.value[1]).toBeCloseTo(1000 * (1 - 0.002 / 1.001) * 1.15, 3);
    // With nothing to compare with, unless it is asked for.
    expect(course.benchmarkName).toBe('nothing');
    expect([...course.benchmark]).toEqual([0, 0]);
    expect(backtest(panel, samples, [2, 1, 2, 1], 1, { ...options, benchmark: 'index' }).benchmark[1]).toBe(1);
    expect(course.thinDays).toEqual([]);
    expect(backtest(panel, samples, [2, 1, 2, 1], 1, { ...options, top: 2 }).thinDays).toHaveLength(2);
  });

  it('come from presets, and yearly figures from the bars of the data', () => {
    const settings = (config: Parameters<typeof backtestSchema.parse>[0], calendar: readonly string[]) =>
      backtestSettings(backtestSchema.parse(config), calendar);
    const daily = ['2020-01-01', '2020-01-02', '2020-01-03', '2020-01-06'];
    const china = { costs: { buy: 0.0005, sell: 0.0015, minimum: 5 }, limit: 0.095, days: 238, top: 50, drop: 5 };
    expect(settings({}, daily)).toMatchObject(china);
    const us = { costs: { buy: 0.0005, sell: 0.0005, minimum: 0 }, limit: null, days: 252 };
    expect(settings({ preset: 'us' }, daily)).toMatchObject(us);
    expect(settings({ preset: 'us', costs: { buy: 0 }, limit: 0.1, days: 10 }, daily)).toMatchObject({
      costs: { buy: 0, sell: 0.0005 },
      limit: 0.1,
      days: 10,
    });
    // A bar a week: 52 a year. Two a day on weekdays, over a year: twice 261.
    const weeks = Array.from({ length: 53 }, (_, w) =>
      new Date(Date.UTC(2020, 0, 3 + 7 * w)).toISOString().slice(0, 10),
    );
    expect(settings({}, weeks).days).toBe(52);
    const bars = Array.from({ length: 365 }, (_, d) => new Date(Date.UTC(2021, 0, 1 + d)))
      .filter((date) => date.getUTCDay() % 6 !== 0)
      .flatMap((date) => ['T10:00', 'T14:00'].map((time) => date.toISOString().slice(0, 10) + time));
    expect(settings({}, bars).days).toBeGreaterThan(515);
    expect(settings({}, bars).days).toBeLessThan(530);
  });
});

describe('group returns', () => {
  it('are the mean returns of equal parts by forecast, the best first', () => {
    const panel = panelOfCloses({ A: [1, 1], B: [1, 1], C: [1, 1], D: [1, 1], E: [1, 1] });
    const samples = samplesBetween(panel, 0, 1);
    const scores = [5, 1, 4, 2, 3, 1, 2, 3, NaN, 5];
    const returns = [0.5, 0.1, 0.3, 0.2, NaN, 0.1, 0.2, 0.3, 0.4, 0.5];
    const groups = groupReturns(samples, scores, returns, 2);
    expect([...groups.days]).toEqual([0, 1]);
    // Day 0 by score: A .5, C .3 | D .2, B .1 (E has no return). Day 1: E .5, C .3 | B .2, A .1 (D has no forecast).
    const round = (x: Float64Array): number[] => [...x].map((v) => Number(v.toFixed(9)));
    expect(groups.returns.map(round)).toEqual([
      [0.4, 0.4],
      [0.15, 0.15],
    ]);
    expect(groups.cumulative.map(round)).toEqual([
      [0.4, 0.8],
      [0.15, 0.3],
    ]);
    expect(round(groups.longShort)).toEqual([0.25, 0.5]);
  });

  it('leave out a day with fewer stocks than groups', () => {
    const panel = panelOfCloses({ A: [1, 1], B: [1, NaN] });
    const groups = groupReturns(samplesBetween(panel, 0, 1), [2, 1, 1], [0.1, 0.2, 0.3], 2);
    expect([...groups.days]).toEqual([0]);
  });
});
