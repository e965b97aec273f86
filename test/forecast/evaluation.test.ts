import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { parseForecast } from '../../src/cli/score-forecast.js';
import { type ForecastData, openForecastData } from '../../src/forecast/data/dataset.js';
import { labelTable } from '../../src/forecast/data/labels.js';
import { type PricePanel, samplesBetween } from '../../src/forecast/data/panel.js';
import { evaluateForecast, judge } from '../../src/forecast/evaluation/evaluation.js';
import { writeCsv } from '../../src/forecast/formats/csv.js';
import { syntheticMarket } from '../../src/forecast/formats/synthetic.js';
import { betasOf, forecastDay, writeForecasts } from '../../src/forecast/predictions.js';
import { createForecast } from '../../src/forecast/problem.js';
import { dailyScores, forecastScores } from '../../src/metrics/index.js';
import { Random } from '../../src/random.js';
import { commonKeys, runSession } from '../../src/run/index.js';
import { createStrategy, train, trainee } from '../../src/schedule/index.js';
import { panelOfCloses, temporaryFolder } from './panels.js';
import { SMALL, smallConfig } from './small-market.js';

const home = temporaryFolder();
const NETWORKS = [
  ['heads', {}],
  ['embedding', { sharing: 'embedding', main: 2 }],
  ['trees', { model: { name: 'trees', rounds: 20, numLeaves: 8, lambdaL1: 0, lambdaL2: 1 } }],
  ['gat', { model: { name: 'gat', hidden: 4, layers: 1 } }],
] as const;

/** A finished run in its own folder. */
async function makeRun(
  name: string,
  over: Record<string, unknown>,
): Promise<{ folder: string; test: Record<string, number> }> {
  const problem = { ...SMALL, ...over };
  const random = new Random(1);
  const context = { random: random.fork('problem'), threads: 1, workers: 1 };
  const subject = await createForecast(smallConfig(over), context);
  const config = { ...z.strictObject(commonKeys).parse({}), problem };
  const folder = join(home, name);
  const whole = trainee(subject, await createStrategy({ name: 'fixed', task: null }, subject, random));
  const steps = name === 'trees' ? 1 : 15;
  await runSession({ folder, config, total: 2 * steps, quiet: true }, whole, (session) =>
    train(whole, session, { episodes: name === 'trees' ? 1 : 2, steps }),
  );
  const test = { ...(await subject.test!()) };
  await subject.close?.();
  return { folder, test };
}

/** The days of a panel up to `last`, as prices in a CSV file. */
function csvUntil(panel: PricePanel, last: string, name: string): string {
  const path = join(home, name);
  const days = panel.calendar.indexOf(last) + 1;
  const cells = days * panel.symbols.length;
  const part = {
    ...panel,
    calendar: panel.calendar.slice(0, days),
    values: panel.values.slice(0, cells * panel.fields.length),
    members: panel.members.slice(0, cells),
  };
  writeCsv(part, path, `${path}.members`);
  return path;
}

describe.each(NETWORKS)('a run with %s', (name, over) => {
  let run: Awaited<ReturnType<typeof makeRun>>;
  let rows: { date: string; instrument: string; prediction: number }[];

  beforeAll(async () => {
    run = await makeRun(name, over);
  }, 60_000);

  it('is evaluated from its folder alone, with the figures that training found', async () => {
    const evaluation = await evaluateForecast(run.folder);
    const { scores } = evaluation;
    expect(evaluation).toMatchObject({ split: 'test', quintiles: { length: 5 } });
    // The last checkpoint of two episodes need not be the best one, which is evaluated.
    if (name === 'trees') expect(scores).toMatchObject(run.test);

    const folder = join(run.folder, 'evaluation/test');
    const text = readFileSync(join(folder, 'predictions.csv'));
    const columns = { date: 'date', instrument: 'instrument', prediction: 'prediction', label: 'label' };
    const days = parseForecast({ name: 'predictions.csv', bytes: text } as never, columns);
    expect(forecastScores(days).RankIC).toBeCloseTo(scores.RankIC, 6);
    const daily = readFileSync(join(folder, 'daily.csv'), 'utf8').trim().split('\n').slice(1);
    expect(daily.map((line) => line.split(',')[0])).toEqual(dailyScores(days).map(({ date }) => date));
    expect(JSON.parse(readFileSync(join(folder, 'scores.json'), 'utf8')).scores.IC).toBe(scores.IC);
    rows = text
      .toString()
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => line.split(','))
      .map(([date, instrument, prediction]) => ({ date, instrument, prediction: Number(prediction) }));
  });

  it('forecasts a day as it did in the evaluation, from data that end on that day', async () => {
    const date = '2015-07-15';
    const market = syntheticMarket({ stocks: 20, days: 160, strength: 0.6, seed: 1 });
    const data = csvUntil(market, date, `${name}.csv`);
    const forecast = await forecastDay(run.folder, { data });
    expect(forecast.date).toBe(date);
    const known = new Map(rows.filter((row) => row.date === date).map((row) => [row.instrument, row.prediction]));
    expect(forecast.stocks.length).toBe(known.size);
    for (const { instrument, prediction } of forecast.stocks) expect(prediction).toBeCloseTo(known.get(instrument)!, 4);
    const ranked = forecast.stocks.map(({ prediction }) => prediction);
    expect(ranked).toEqual([...ranked].sort((a, b) => b - a));

    const out = join(home, `${name}-predictions.csv`);
    writeForecasts(out, [forecast]);
    const [head, first] = readFileSync(out, 'utf8').split('\n');
    expect(head).toBe('date,instrument,prediction,rank');
    expect(first).toBe(`${date},${forecast.stocks[0].instrument},${forecast.stocks[0].prediction},1`);
  });

  it("keeps what it measures on other data apart from the run's own, and names the data", async () => {
    const own = await evaluateForecast(run.folder);
    const scores = () => readFileSync(join(run.folder, 'evaluation/test/scores.json'), 'utf8');
    const before = scores();
    const data = csvUntil(
      syntheticMarket({ stocks: 20, days: 160, strength: 0.6, seed: 2 }),
      '2015-08-14',
      `${name}2.csv`,
    );
    const other = await evaluateForecast(run.folder, { data });
    expect(scores()).toBe(before);
    expect(JSON.parse(before).data).toEqual(own.data);
    expect(own.data).toMatchObject({ name: 'synthetic market, seed 1', own: true });
    expect(other.data).toMatchObject({ name: data, own: false });
    expect(other.data.digest).not.toBe(own.data.digest);
    const at = `test-on-${name}2-csv-${other.data.digest.slice(0, 8)}`;
    expect(other.folder).toBe(join(run.folder, 'evaluation', at));
    expect(JSON.parse(readFileSync(join(other.folder!, 'scores.json'), 'utf8')).data).toEqual(other.data);
  });

  it('refuses a day that it cannot forecast', async () => {
    await expect(forecastDay(run.folder, { date: '2015-07-18' })).rejects.toThrow('2015-07-18 is not a trading day');
    await expect(forecastDay(run.folder, { date: '2015-01-06' })).rejects.toThrow(
      '1 days before it, expected 5 or more',
    );
  });
});

it('a run starts from the best model of another', async () => {
  const { folder } = await makeRun('source', {});
  const cold = await createForecast(smallConfig(), { random: new Random(5), threads: 1, workers: 1 });
  const start = async (over: Record<string, unknown>) => {
    const context = { random: new Random(5), threads: 1, workers: 1 };
    const problem = await createForecast(smallConfig({ ...over, warmStart: folder }), context);
    const performance = await problem.validate();
    await problem.close?.();
    return performance;
  };
  const best = (await evaluateForecast(folder, { split: 'validation', out: null })).scores;
  expect(best.days).toBeGreaterThan(0);
  const warm = await start({});
  expect(warm).toBeGreaterThan(await cold.validate());
  // The main head becomes the only output, or that of every task: on the main task it is the same model.
  expect(await start({ sharing: 'shared' })).toBeCloseTo(warm, 6);
  expect(await start({ tasks: [1, 3] })).toBeCloseTo(warm, 6);
  expect(await start({ sharing: 'embedding' })).toBeCloseTo(warm, 6);
  await expect(start({ model: { name: 'gru', hidden: 7, layers: 1 } })).rejects.toThrow(
    'the parameter trunk.weight_ih_l0 has the shape [18, 5] and here [21, 5]',
  );
  await expect(start({ model: { name: 'lstm', hidden: 6, layers: 1 } })).rejects.toThrow('expected the same model');
  await cold.close?.();
});

describe('a fall by half', () => {
  // On 2015-03-02 (training) the first stock, on 2015-07-01 (test) the second one falls to .511 of what it was.
  const falls = (): string => {
    const market = syntheticMarket({ stocks: 20, days: 160, strength: 0.6, seed: 1, suspended: 0 });
    const values = market.values.slice();
    ['2015-03-02', '2015-07-01'].forEach((date, stock) => {
      for (let day = market.calendar.indexOf(date); day < 160; day++) {
        for (let f = 0; f < 4; f++) values[(day * 20 + stock) * 5 + f] *= 0.511;
      }
    });
    return csvUntil({ ...market, values }, market.calendar.at(-1)!, 'falls.csv');
  };
  const model = { name: 'linear' };
  const labels = { transform: 'raw' };
  const labelOf = (data: ForecastData, part: 'train' | 'test', panel: PricePanel, stock: number, date: string) => {
    const { samples } = data[part];
    const at = samples.day.findIndex((day, i) => panel.calendar[day] === date && samples.stock[i] === stock);
    return labelTable(panel, samples, { kind: 'daily', horizons: [1], transform: 'raw' })[at];
  };

  it('is seen clipped by a model that is asked to, and counts in full in scores and backtest', async () => {
    const data = { format: 'csv', path: falls(), maxMove: 0.3 };
    const set = await openForecastData(smallConfig({ data, model, labels }));
    // The day's own return multiplies it: at most some per cent.
    const [trained, happened] = [set.cleaned, set.panel].map((panel) => labelOf(set, 'train', panel, 0, '2015-02-27'));
    expect(trained).toBeCloseTo(-0.3, 5);
    expect(Math.abs(happened + 0.489)).toBeLessThan(0.05);
    expect(Math.min(...set.train.labels)).toBeCloseTo(-0.3, 5);

    const { folder, test } = await makeRun('clipped', { data, model, labels });
    const { backtest, notes } = await evaluateForecast(folder, {
      backtest: { top: 20, drop: 20, costs: { buy: 0, sell: 0, minimum: 0 }, invested: 1, limit: 9 },
    });
    expect(notes).toEqual([]);
    const predictions = readFileSync(join(folder, 'evaluation/test/predictions.csv'), 'utf8').split('\n');
    const [row] = predictions.filter((line) => line.startsWith('2015-06-30,S01,'));
    const label = Number(row.split(',')[3]);
    expect(Math.abs(label + 0.489)).toBeLessThan(0.05);
    // One of 20 stocks that are all held falls by half: the worst day loses 2.4 %, clipped it would lose 1.5 %.
    const course = readFileSync(join(folder, 'evaluation/test/backtest.csv'), 'utf8').trim().split('\n').slice(1);
    const fall = course.map((line) => line.split(',')).find(([date]) => date === '2015-07-01')!;
    const others = predictions.filter((line) => line.startsWith('2015-06-30,') && line !== row);
    const rest = others.reduce((sum, line) => sum + Number(line.split(',')[3]), 0);
    // Weights have drifted a little from a twentieth each since the purchase.
    expect(Number(fall[2])).toBeCloseTo((label + rest) / 20, 2);
    expect(Number(fall[2]) - rest / 20).toBeLessThan(-0.02);
    expect(backtest.executable).toBe(false);
    expect(test.MSE).toBeGreaterThan(0);
  });

  it('is believed where nobody asked', async () => {
    const set = await openForecastData(smallConfig({ data: { format: 'csv', path: falls() }, model, labels }));
    expect(set.cleaned).toBe(set.panel);
    expect(Math.min(...set.train.labels)).toBeLessThan(-0.44);
  });
});

it('forecasts that are not finite are refused, not left out', () => {
  const config = smallConfig();
  const panel = syntheticMarket({ stocks: 20, days: 160 });
  const samples = samplesBetween(panel, 20, 30);
  const forecasts = new Float32Array(samples.length).fill(1);
  forecasts[3] = Number.NaN;
  forecasts[4] = Number.POSITIVE_INFINITY;
  expect(() => judge(config, panel, samples, forecasts)).toThrow(
    `2 of ${samples.length} forecasts are not finite: the training of the model diverged`,
  );
});

it('an evaluation on data that begin with the part says that windows are not whole', async () => {
  const { folder } = await makeRun('short', { model: { name: 'linear' } });
  const market = syntheticMarket({ stocks: 20, days: 160, strength: 0.6, seed: 1 });
  const from = market.calendar.indexOf('2015-04-27');
  const part = (days: number): PricePanel => ({
    ...market,
    calendar: market.calendar.slice(days),
    values: market.values.slice(days * 20 * 5),
    members: market.members.slice(days * 20),
  });
  const data = join(home, 'late.csv');
  // Test alone needs history; the other parts must be there for the split to be valid, one day of training at least.
  writeCsv(part(from), data, `${data}.members`);
  const { notes } = await evaluateForecast(folder, { split: 'validation', data, out: null });
  // 2015-05-01 is the fifth weekday from 2015-04-27 on, and a window of 6 days needs five before it.
  expect(notes).toEqual([
    {
      kind: 'day of the validation part with fewer than the 5 days before it that a window needs: zeros there',
      count: 1,
      first: '2015-05-01 has 4',
    },
    // The market has 20 stocks.
    { kind: 'day with fewer stocks than the 50 to hold', count: 29, first: '2015-05-01' },
  ]);
});

it('a folder that is no run of a forecast is refused', async () => {
  const folder = join(home, 'empty');
  mkdirSync(folder);
  await expect(evaluateForecast(folder)).rejects.toThrow('not a run folder');
});

it('the beta of a stock is the slope of its returns on those of the market', () => {
  // Moves of the index .1, −.1, .2, 0, .1; A moves twice as much, B the other way, C with 4 of 5 days missing.
  const moves = [0.1, -0.1, 0.2, 0, 0.1];
  const prices = (slope: number) => {
    let price = 100;
    return [100, ...moves.map((m) => (price *= 1 + slope * m))];
  };
  const gap = Number.NaN;
  const closes = { A: prices(2), B: prices(-1), C: [1, gap, gap, gap, 1, 1] };
  const panel = panelOfCloses(closes, prices(1));
  const [a, b, c] = betasOf(panel, samplesBetween(panel, 5, 5), 5);
  expect(a).toBeCloseTo(2, 4);
  expect(b).toBeCloseTo(-1, 4);
  expect(c).toBeNaN();
});
