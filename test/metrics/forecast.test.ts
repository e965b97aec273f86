import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  dailyScores,
  type ForecastDay,
  forecastScores,
  labelledSquaredError,
  meanSquaredError,
} from '../../src/metrics/forecast.js';
import { averageRanks, mean, pairwiseSum, pearson, spearman, standardDeviation } from '../../src/metrics/statistics.js';
import { describeWithShared, readSharedJson } from '../shared.js';

type Missing = number | null;
const numbers = (values: readonly Missing[]) => values.map((value) => value ?? Number.NaN);
const expectNumber = (ours: number, theirs: Missing, label: string) => {
  if (theirs === null) expect(ours, label).toBeNaN();
  else expect(ours, label).toBeCloseTo(theirs, 10);
};

describeWithShared('forecast scores agree with pandas and qlib', () => {
  interface Pair {
    x: Missing[];
    y: Missing[];
    pearson: Missing;
    spearman: Missing;
    avg_rank_x: Missing[];
    mean_x: Missing;
    std_x_ddof1: Missing;
  }

  it('in correlations, ranks, means and deviations', () => {
    const pairs = readSharedJson<Pair[]>('vectors/forecast/pandas_corr.json');
    expect(pairs).toHaveLength(60);
    for (const [i, pair] of pairs.entries()) {
      const [x, y] = [numbers(pair.x), numbers(pair.y)];
      const present = x.filter((value) => !Number.isNaN(value));
      expectNumber(pearson(x, y), pair.pearson, `pearson ${i}`);
      expectNumber(spearman(x, y), pair.spearman, `spearman ${i}`);
      expectNumber(mean(present), pair.mean_x, `mean ${i}`);
      expectNumber(standardDeviation(present), pair.std_x_ddof1, `std ${i}`);
      expect(Array.from(averageRanks(x)), `ranks ${i}`).toEqual(numbers(pair.avg_rank_x));
    }
  });

  interface Panel {
    name: string;
    days: { date: string; pred: Missing[]; label: Missing[] }[];
    ic_by_day: Record<string, Missing>;
    rank_ic_by_day: Record<string, Missing>;
    n_days_ic: number;
    metrics: Record<string, Missing>;
    mse_qlib_gru_loss_fn: Missing;
    mse_sklearn_valid_pairs: Missing;
  }
  const panels = () => readSharedJson<Panel[]>('vectors/forecast/qlib_ic.json');
  const daysOf = (panel: Panel): ForecastDay[] =>
    panel.days.map(({ date, pred, label }) => ({ date, predictions: numbers(pred), labels: numbers(label) }));

  it('day by day, in the order of the dates', () => {
    for (const panel of panels()) {
      const daily = dailyScores(daysOf(panel));
      expect(daily.map((day) => day.date)).toEqual(Object.keys(panel.ic_by_day).sort());
      for (const { date, IC, RankIC } of daily) {
        expectNumber(IC, panel.ic_by_day[date], `${panel.name} ${date} IC`);
        expectNumber(RankIC, panel.rank_ic_by_day[date], `${panel.name} ${date} RankIC`);
      }
    }
  });

  it('over all days', () => {
    expect(panels()).toHaveLength(6);
    for (const panel of panels()) {
      const scores = forecastScores(daysOf(panel));
      expectNumber(scores.IC, panel.metrics.IC, `${panel.name} IC`);
      expectNumber(scores.ICIR, panel.metrics.ICIR, `${panel.name} ICIR`);
      expectNumber(scores.RankIC, panel.metrics['Rank IC'], `${panel.name} RankIC`);
      expectNumber(scores.RankICIR, panel.metrics['Rank ICIR'], `${panel.name} RankICIR`);
      expectNumber(scores.MSE, panel.mse_sklearn_valid_pairs, `${panel.name} MSE`);
      expectNumber(labelledSquaredError(daysOf(panel)), panel.mse_qlib_gru_loss_fn, `${panel.name} qlib loss`);
      expect(scores.days, panel.name).toBe(panel.n_days_ic);
    }
  });
});

const value = fc.integer({ min: -1e6, max: 1e6 }).map((thousandths) => thousandths / 1000);
const cross = fc.array(fc.tuple(value, value), { minLength: 3, maxLength: 30 });
const columns = (pairs: readonly (readonly [number, number])[]) =>
  [pairs.map(([x]) => x), pairs.map(([, y]) => y)] as const;

describe('rank correlation', () => {
  it('does not change under strictly increasing maps', () => {
    const integers = fc.array(fc.tuple(fc.integer({ min: -50, max: 50 }), fc.integer({ min: -50, max: 50 })), {
      minLength: 3,
      maxLength: 30,
    });
    fc.assert(
      fc.property(integers, (pairs) => {
        const [x, y] = columns(pairs);
        const [cubed, grown] = [x.map((v) => v ** 3), y.map((v) => 2 * v + 7)];
        expect(spearman(cubed, grown)).toEqual(spearman(x, y));
      }),
    );
  });

  it('changes its sign when one side is turned round', () => {
    fc.assert(
      fc.property(cross, (pairs) => {
        const [x, y] = columns(pairs);
        const turned = y.map((v) => -v);
        for (const correlation of [spearman, pearson]) {
          const [plain, negated] = [correlation(x, y), correlation(x, turned)];
          if (Number.isNaN(plain)) expect(negated).toBeNaN();
          else expect(negated).toBeCloseTo(-plain, 9);
        }
      }),
    );
  });
});

describe('forecast scores', () => {
  const panel = fc.array(cross, { minLength: 2, maxLength: 6 }).map((days) =>
    days.map((pairs, i) => {
      const [predictions, labels] = columns(pairs);
      return { date: `2020-01-${String(i + 10)}`, predictions, labels };
    }),
  );

  it('have zMSE = 2 (1 − IC), since z-scores have mean 0 and variance 1', () => {
    // (1/n) Σ (a − b)² = var a + var b − 2 cov(a, b) = 2 − 2 r.
    fc.assert(
      fc.property(panel, (days) => {
        for (const day of dailyScores(days)) {
          if (Number.isNaN(day.IC)) expect(day.zMSE).toBeNaN();
          else expect(day.zMSE).toBeCloseTo(2 * (1 - day.IC), 6);
        }
      }),
    );
  });

  it('do not depend on the order of days or of instruments', () => {
    fc.assert(
      fc.property(panel, (days) => {
        const turned = days.toReversed().map((day) => ({
          date: day.date,
          predictions: day.predictions.toReversed(),
          labels: day.labels.toReversed(),
        }));
        const [a, b] = [forecastScores(days), forecastScores(turned)];
        expect(b.days).toBe(a.days);
        if (!Number.isNaN(a.RankIC)) expect(b.RankIC).toBeCloseTo(a.RankIC, 10);
        expect(b.MSE).toBeCloseTo(a.MSE, 8);
      }),
    );
  });

  it('leave out pairs with a missing side', () => {
    const day = { date: '2020-01-02', predictions: [1, 2, Number.NaN, 3], labels: [1, 3, 100, Number.NaN] };
    expect(meanSquaredError([day])).toBe(0.5);
    expect(labelledSquaredError([day])).toBeNaN();
    expect(dailyScores([day])[0]).toMatchObject({ IC: expect.closeTo(1, 12), RankIC: expect.closeTo(1, 12) });
  });

  it('of one day have no information ratio, of none nothing', () => {
    const day = { date: '2020-01-02', predictions: [1, 2, 3], labels: [1, 2, 4] };
    expect(forecastScores([day])).toMatchObject({
      ICIR: Number.NaN,
      RankICIR: Number.NaN,
      RankIC: expect.closeTo(1, 12),
      days: 1,
    });
    expect(forecastScores([])).toMatchObject({ IC: Number.NaN, MSE: Number.NaN, days: 0 });
  });
});

describe('pairwise summation', () => {
  it('adds whole numbers exactly, however many', () => {
    for (const n of [0, 1, 7, 8, 9, 127, 128, 129, 1000, 4097]) {
      expect(pairwiseSum(Float64Array.from({ length: n }, (_, i) => i + 1))).toBe((n * (n + 1)) / 2);
    }
  });

  it('rounds as numpy does', () => {
    // Fewer than eight values are added one after the other; eight as a tree, whose doublings of 0.1 are exact, while
    // one after the other they would give 0.7999999999999999.
    expect(pairwiseSum([0.1, 0.1, 0.1])).toBe(0.30000000000000004);
    expect(pairwiseSum(new Float64Array(8).fill(0.1))).toBe(0.8);
  });
});
