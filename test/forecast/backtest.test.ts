import { describe, expect, it } from 'vitest';
import { Account } from '../../src/forecast/backtest/account.js';
import { backtest } from '../../src/forecast/backtest/backtest.js';
import { groupReturns } from '../../src/forecast/backtest/groups.js';
import { risk } from '../../src/forecast/backtest/risk.js';
import { topkDrop } from '../../src/forecast/backtest/topk-drop.js';
import { samplesBetween } from '../../src/forecast/data/samples.js';
import { panelOfCloses } from './panels.js';

describe('risk', () => {
  it('adds returns up: mean, mean over deviation, deepest fall of the sum', () => {
    // Sums 0.02, 0.01, 0.04, −0.01, 0.02; peak 0.04, so the deepest fall is −0.05. Mean 0.004;
    // squared deviations (0.016² + 0.014² + 0.026² + 0.054² + 0.026²) = 0.00472, over 4: 0.00118.
    const { annualReturn, informationRatio, maxDrawdown } = risk([0.02, -0.01, 0.03, -0.05, 0.03], 238);
    expect(annualReturn).toBeCloseTo(0.952, 12);
    expect(informationRatio).toBeCloseTo((0.004 / Math.sqrt(0.00118)) * Math.sqrt(238), 10);
    expect(maxDrawdown).toBeCloseTo(-0.05, 12);
    // As in qlib (cummax of the sums): a loss on the first day is no fall from anywhere.
    expect(risk([-0.1, 0.05]).maxDrawdown).toBe(0);
  });

  it('is undefined for too few days', () => {
    expect(risk([0.1]).informationRatio).toBeNaN();
    expect(risk([]).annualReturn).toBeNaN();
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
  const costs = { buy: 0.0005, sell: 0.0015, least: 5 };

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
  const free = { buy: 0, sell: 0, least: 0 };

  it('trades on the close of the day after the forecast and compares with the index', () => {
    // Scores of day 0 prefer A, of day 1 B. Bought at the close of day 1 (A at 10), so day 1 earns nothing; A rises 5 % on
    // day 2 and is exchanged for B at that close; B rises 2 % on day 3.
    const panel = panelOfCloses({ A: [10, 10, 10.5, 10.5], B: [20, 20, 20, 20.4] }, [100, 101, 101, 102.01]);
    const samples = samplesBetween(panel, 0, 1);
    const result = backtest(panel, samples, [2, 1, 1, 2], 1, {
      hold: 1,
      replace: 1,
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
          hold: 1,
          replace: 1,
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
    const result = backtest(panel, samples, [1, 1], 1, { hold: 1, replace: 1, cash: 1e6, invested: 0.5 });
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
    const options = { hold: 3, replace: 1, costs: free, cash: 900, invested: 1 };
    const result = backtest(panel, samples, [3, 2, 1], 1, options);
    expect(result.turnover[0]).toBeCloseTo(1 / 3, 12);
    const higher = backtest(panel, samples, [3, 2, 1], 1, { ...options, priceLimit: 0.2 });
    expect(higher.turnover[0]).toBeCloseTo(2 / 3, 12);
  });

  it('keeps a suspended stock at its last close, and its score', () => {
    // A and B are held; B is suspended on day 2 with the higher last score; C is best. A must go, not B.
    const panel = panelOfCloses({ A: [10, 10, 10, 10, 10.5], B: [10, 10, NaN, NaN, 12], C: [10, 10, 10, 10, 11] });
    const samples = samplesBetween(panel, 0, 2);
    // Days 0 and 1: A, B, C; day 2: A, C.
    const scores = [3, 4, 0, 3, 4, 0, 3, 9];
    const { value, turnover } = backtest(panel, samples, scores, 1, {
      hold: 2,
      replace: 1,
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
      hold: 1,
      replace: 1,
      costs: free,
      invested: 1,
    });
    expect([...turnover]).toEqual([1, 0, 0, 2]);
  });

  it('does not trade a stock whose price is only repeated, with a volume of zero', () => {
    const panel = panelOfCloses({ A: [10, 10, 10] });
    panel.values[1 * 5 + 4] = 0;
    expect([...backtest(panel, samplesBetween(panel, 0, 1), [1], 1, { hold: 1, replace: 1 }).turnover]).toEqual([0]);
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
    expect(() => backtest(panel, samplesBetween(panel, 0, 0), [1], 1, { hold: 0 })).toThrow(
      /hold: cannot hold 0 stocks/,
    );
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
