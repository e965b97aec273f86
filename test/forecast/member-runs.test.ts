import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { trainingRun, trainRun } from '../../src/cli/training-run.js';
import {
  evaluateForecast,
  forecastDays,
  type PricePanel,
  syntheticMarket,
  writeCsv,
} from '../../src/forecast/index.js';
import { trainConfigSchema } from '../../src/problems/index.js';
import {
  bestCheckpoint,
  checkpointFolder,
  loadValues,
  memberFolder,
  openRun,
  readMembers,
} from '../../src/run/index.js';
import { type Executor, isDone, type Outcome } from '../../src/sweep/index.js';
import { temporaryFolder } from './panels.js';

/** Trains members in this process, and remembers which. */
function inProcess(): Executor & { readonly trained: string[] } {
  const trained: string[] = [];
  return {
    trained,
    async submit(job) {
      if (isDone(job)) return { state: 'done' };
      trained.push(job.name);
      await trainingRun(loadValues(trainConfigSchema, parse(job.config)), { folder: job.folder, quiet: true });
      return { state: 'done' };
    },
    async close() {},
  };
}

const CONFIG = {
  problem: {
    kind: 'forecast',
    data: { format: 'csv', path: 'prices.csv' },
    split: { walkForward: { train: '4m', validation: '1m', step: '2m' } },
    tasks: 2,
    features: { window: 6 },
    model: { name: 'linear' },
    batch: { size: 100 },
    learningRate: 0.01,
    backtest: { top: 5, drop: 2 },
  },
  strategy: { name: 'fixed' },
  training: { episodes: 2, steps: 15 },
  threads: 1,
} as const;

const folder = temporaryFolder();

async function train(name: string, problem: object, resume = false) {
  const executor = inProcess();
  const config = { ...CONFIG, problem: { ...CONFIG.problem, ...problem } };
  const run = await trainRun(config as never, { folder: join(folder, name), executor, resume, quiet: true });
  return { ...run, trained: executor.trained };
}

function prices(name: string, panel: PricePanel): { format: 'csv'; path: string } {
  const path = join(folder, name);
  writeCsv(panel, path, `${path}.members`);
  return { format: 'csv', path };
}

/** Days from one on, as they might also have gone on: all prices of a day and stock alike, so that none cross. */
function otherFuture(panel: PricePanel, from: string): PricePanel {
  const values = panel.values.slice();
  const day = panel.calendar.findIndex((date) => date >= from);
  const width = panel.fields.length;
  for (let cell = day * panel.symbols.length; cell < values.length / width; cell++) {
    const factor = 1 + ((cell * 7919) % 101) / 100;
    for (let field = 0; field < width; field++) values[cell * width + field] *= factor;
  }
  return { ...panel, values };
}

const rowsOf = (run: string): string[] =>
  readFileSync(join(run, 'evaluation/test/predictions.csv'), 'utf8').trim().split('\n').slice(1);
const parameters = (run: string, member: string) => {
  const { tensors } = bestCheckpoint(checkpointFolder(memberFolder(run, member)))!;
  return [...tensors].map(([name, { data }]) => [name, [...(data as Float32Array)]]);
};

describe('a walk-forward', () => {
  const whole = syntheticMarket({ stocks: 20, days: 260, strength: 0.6 });
  let run: string;
  beforeAll(async () => {
    const { folder: path, trained, members, result } = await train('walk', { data: prices('a.csv', whole) });
    run = path;
    expect(trained).toEqual(['2015-06-12', '2015-08-12', '2015-10-12', '2015-12-12']);
    expect(members).toBe(4);
    expect(openRun(run).info.state).toBe('finished');
    await evaluateForecast(run);
    expect(result?.test?.RankIC).toBeGreaterThan(0.3);
  }, 60_000);

  it('keeps what was read of its files once, for all members', () => {
    const found = readdirSync(run, { recursive: true, encoding: 'utf8' });
    expect(found.filter((file) => basename(file) === 'data.cache')).toEqual(['data.cache']);
  });

  it('forecasts each day with the model of its window, and nothing else', async () => {
    const own: string[] = [];
    for (const { name } of readMembers(run)!) {
      await evaluateForecast(memberFolder(run, name));
      own.push(...rowsOf(memberFolder(run, name)));
    }
    expect(rowsOf(run)).toEqual(own);
    const { scores, windows, dates } = await evaluateForecast(run, { out: null });
    expect(dates).toEqual(['2015-06-12', whole.calendar.at(-1)]);
    const meanIC = windows!.reduce((sum, { days, IC }) => sum + days * IC, 0) / scores.days;
    // The last day of the data has no label, and so no correlation.
    expect(windows!.reduce((sum, { days }) => sum + days, 0)).toBe(scores.days + 1);
    expect(meanIC).toBeCloseTo(scores.IC, 1);
    await expect(evaluateForecast(run, { split: 'validation' })).rejects.toThrow(/^--split: .*evaluate a member$/);
    // After the last window its model continues; before the first it does not know better.
    const { days } = await forecastDays(run, { from: '2015-06-11', to: '2015-06-12' });
    expect(days.map(({ date }) => date)).toEqual(['2015-06-11', '2015-06-12']);
  });

  it('is the same whatever happens later', { timeout: 60_000 }, async () => {
    const { folder: other } = await train('other', { data: prices('b.csv', otherFuture(whole, '2015-10-12')) });
    await evaluateForecast(other);
    // The predictions of a day see that day; the labels of the last days see the next.
    const predictions = (of: string, until: string) =>
      rowsOf(of)
        .filter((row) => row < until)
        .map((row) => row.split(',').slice(0, 3).join());
    expect(predictions(other, '2015-10-12')).toEqual(predictions(run, '2015-10-12'));
    expect(rowsOf(other)).not.toEqual(rowsOf(run));
    // The window that begins on 2015-10-12 is trained and chosen on what was before.
    for (const name of ['2015-06-12', '2015-08-12', '2015-10-12']) {
      expect(parameters(other, name)).toEqual(parameters(run, name));
    }
    expect(parameters(other, '2015-12-12')).not.toEqual(parameters(run, '2015-12-12'));
  });

  it('goes on when days are added, trains what is new alone, and refuses days that are gone', async () => {
    const path = join(folder, 'grow.csv');
    const lines = readFileSync(join(folder, 'a.csv'), 'utf8').split('\n');
    const until = (date: string) => lines.filter((line, i) => i === 0 || line < date).join('\n');
    writeFileSync(path, until('2015-10-01'));
    const data = { format: 'csv', path };
    const first = await train('grow', { data });
    expect(first.trained).toEqual(['2015-06-12', '2015-08-12']);
    writeFileSync(path, lines.join('\n'));
    const second = await train('grow', { data }, true);
    expect(second.trained).toEqual(['2015-10-12', '2015-12-12']);
    await evaluateForecast(second.folder);
    expect(rowsOf(second.folder)).toEqual(rowsOf(run));
    writeFileSync(path, [lines[0], ...lines.slice(1).filter((line) => line >= '2015-02-01')].join('\n'));
    await expect(train('grow', { data }, true)).rejects.toThrow(
      /no longer make the window of its member 2015-06-12: do they begin/,
    );
    expect(openRun(second.folder).info.state).toBe('finished');
  });

  it('starts each window from the one before, if wished', async () => {
    const split = { walkForward: { ...CONFIG.problem.split.walkForward, warmStart: true, to: '2015-10-11' } };
    const { folder: warm } = await train('warm', { data: prices('c.csv', whole), split });
    expect(parameters(warm, '2015-06-12')).toEqual(parameters(run, '2015-06-12'));
    expect(parameters(warm, '2015-08-12')).not.toEqual(parameters(run, '2015-08-12'));
    const { problem } = openRun(memberFolder(warm, '2015-08-12')).config as { problem: { warmStart: string } };
    expect(problem.warmStart).toBe(memberFolder(warm, '2015-06-12'));
  });

  it('names members that fail, with the reason of the first, and stops when it is asked to', async () => {
    const data = { format: 'synthetic', stocks: 20, days: 260 };
    const config = { ...CONFIG, problem: { ...CONFIG.problem, data } } as never;
    const path = join(folder, 'failed');
    const ending = (outcome: Outcome, resume: boolean) => {
      const executor: Executor = { submit: async () => outcome, close: async () => {} };
      return trainRun(config, { folder: path, executor, resume, quiet: true });
    };
    await expect(ending({ state: 'failed', reason: 'it diverged' }, false)).rejects.toThrow(
      /failed: 4 of 4 members failed, the first is 2015-06-12: it diverged$/,
    );
    expect(openRun(path).info.state).toBe('failed');
    const { outcome, result } = await ending({ state: 'stopped' }, true);
    expect([outcome.state, outcome.resumeCommand, result]).toEqual([
      'interrupted',
      `tcts train --resume ${path}`,
      undefined,
    ]);
    expect(openRun(path).info.state).toBe('interrupted');
    expect(existsSync(join(path, 'result.json'))).toBe(false);
    await expect(evaluateForecast(path)).rejects.toThrow(
      /its member 2015-06-12 is missing, expected all to be finished/,
    );
  });

  it('finds nothing in random walks', async () => {
    const data = { format: 'synthetic', stocks: 20, days: 260, strength: 0 };
    const { folder: noise } = await train('noise', { data });
    const { RankIC, RankICIR, days } = (await evaluateForecast(noise, { out: null })).scores;
    // RankICIR is mean ∕ deviation of the daily RankIC.
    expect(days).toBeGreaterThan(100);
    expect(Math.abs(RankIC)).toBeLessThan((2 * Math.abs(RankIC / RankICIR)) / Math.sqrt(days));
  });
});

describe('several seeds', () => {
  const data = { format: 'synthetic', stocks: 20, days: 160, strength: 0.6 };
  const dates = {
    train: ['2015-01-20', '2015-04-30'],
    validation: ['2015-05-01', '2015-06-15'],
    test: ['2015-06-16', '2015-07-31'],
  };

  it('forecast the mean of their daily ranks, with its spread', { timeout: 60_000 }, async () => {
    const {
      folder: run,
      trained,
      result,
    } = await train('seeds', { data, split: dates, seeds: 3, model: { name: 'mlp' } });
    expect(trained).toEqual(['seed=3', 'seed=4', 'seed=5']);
    expect(result?.test).not.toHaveProperty('MSE');
    const { scores, windows } = await evaluateForecast(run);
    expect(scores.RankIC).toBe(result?.test?.RankIC);
    expect([Number.isNaN(scores.MSE), windows]).toEqual([true, undefined]);
    const members = [];
    for (const name of trained) members.push(await forecastDays(memberFolder(run, name), { date: '2015-07-01' }));
    const { days } = await forecastDays(run, { date: '2015-07-01' });
    const n = days[0].stocks.length;
    for (const { instrument, prediction, spread } of days[0].stocks) {
      const ranks = members.map(
        (one) => (n - one.days[0].stocks.findIndex((stock) => stock.instrument === instrument)) / n,
      );
      const mean = ranks.reduce((a, b) => a + b) / 3;
      expect(prediction).toBeCloseTo(mean, 6);
      expect(spread).toBeCloseTo(Math.sqrt(ranks.reduce((sum, rank) => sum + (rank - mean) ** 2, 0) / 2), 6);
    }
    expect(readFileSync(join(run, 'evaluation/test/predictions.csv'), 'utf8')).toMatch(
      /^date,instrument,prediction,label,spread\n/,
    );
    // Another seed of the whole has other members; a run of members is no model to start from.
    await expect(train('from', { data, split: dates, warmStart: run })).rejects.toThrow(
      /it consists of other runs: name one of them/,
    );
    expect(existsSync(join(folder, 'from'))).toBe(false);
  });
});
