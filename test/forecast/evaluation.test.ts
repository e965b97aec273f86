import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { parseForecast } from '../../src/cli/score-forecast-table.js';
import { createForecast } from '../../src/forecast/create.js';
import { type Panel, writeCsv } from '../../src/forecast/data/index.js';
import { evaluateForecast } from '../../src/forecast/evaluation.js';
import { forecastDay, writeForecast } from '../../src/forecast/forecast-day.js';
import { syntheticMarket } from '../../src/forecast/market.js';
import { dailyScores, forecastScores } from '../../src/metrics/index.js';
import { Random } from '../../src/random.js';
import { commonKeys, runSession } from '../../src/run/index.js';
import { train, trainee } from '../../src/schedule/index.js';
import { fixed } from '../../src/schedule/strategies/fixed.js';
import { temporaryFolder } from './panels.js';
import { SMALL, smallConfig } from './small-market.js';

const home = temporaryFolder();
const NETWORKS = [
  ['heads', {}],
  ['embedding', { sharing: 'embedding', main: 2 }],
  ['trees', { model: { name: 'trees', rounds: 20, numLeaves: 8, lambdaL1: 0, lambdaL2: 1 } }],
  ['gat', { model: { name: 'gat', hidden: 4, layers: 1 } }],
] as const;

/** A finished run in a folder of its own. */
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
  const whole = trainee(subject, fixed(subject, random, { task: null }));
  const steps = name === 'trees' ? 1 : 15;
  await runSession({ folder, config, total: 2 * steps, quiet: true }, whole, (session) =>
    train(whole, session, { episodes: name === 'trees' ? 1 : 2, steps }),
  );
  const test = { ...(await subject.test!()) };
  await subject.close?.();
  return { folder, test };
}

/** The days of a panel up to `last`, as prices in a CSV file. */
function csvUntil(panel: Panel, last: string, name: string): string {
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
    writeForecast(out, forecast);
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

it('a folder that is no run of a forecast is refused', async () => {
  const folder = join(home, 'empty');
  mkdirSync(folder);
  await expect(evaluateForecast(folder)).rejects.toThrow('not a run folder');
});
