import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { crossedBootstrap, holm } from '../../src/metrics/index.js';
import { Random } from '../../src/random.js';
import { markdownTable } from '../../src/report/files.js';
import { SeriesReader } from '../../src/report/reader.js';
import { findRuns } from '../../src/report/runs.js';
import { methodDifferences } from '../../src/report/sections/differences.js';
import { isPapersMarket, PAPER_ROWS, paperTables } from '../../src/report/sections/paper-tables.js';
import { type DataSet, groupRuns } from '../../src/report/settings.js';
import { temporaryFolder } from '../run/temporary.js';
import { makeForecast } from './run-folders.js';

const SPLIT = { 'problem.split': { test: ['2016-01-01', '2020-08-01'] } };
const DAYS = 60;

/** RankIC of each day by arm and seed, and runs with them. */
function made(arms: Readonly<Record<string, { strategy: string; seeds: number; gain: number; set?: object }>>): {
  readonly daily: Record<string, number[][]>;
  readonly data: DataSet;
} {
  const folder = temporaryFolder();
  const random = new Random(5);
  const market = Array.from({ length: DAYS }, () => random.normal());
  const daily: Record<string, number[][]> = {};
  for (const [name, { strategy, seeds, gain, set = {} }] of Object.entries(arms)) {
    daily[name] = Array.from({ length: seeds }, () =>
      market.map((value) => 0.05 + gain + 0.1 * value + 0.02 * random.normal()),
    );
    for (const [i, values] of daily[name].entries()) {
      makeForecast(join(folder, `${name}-${i}`), { strategy, seed: i + 1, set: { ...SPLIT, ...set }, daily: values });
    }
  }
  return { daily, data: groupRuns(findRuns(folder).runs)[0] };
}

describe('differences over seeds and days', () => {
  const arms = {
    gru: { strategy: 'fixed', seeds: 3, gain: 0 },
    mlp: { strategy: 'fixed', seeds: 3, gain: -0.05, set: { 'problem.model': { name: 'mlp' } } },
    mtl: { strategy: 'mtl', seeds: 4, gain: 0 },
    learned: { strategy: 'learned', seeds: 4, gain: 0.03 },
    far: { strategy: 'learned', seeds: 1, gain: 0, set: { 'problem.tasks': 5 } },
  };

  it('are of the scheduler against all with its tasks and the model alone, and of other models against that', () => {
    const found = methodDifferences(made(arms).data, new SeriesReader());
    expect(found.map(({ candidate, baseline }) => `${candidate.label} − ${baseline.label}`)).toEqual([
      'TCTS (3 tasks) − GRU',
      'TCTS (3 tasks) − MTL (3 tasks)',
      'MLP − GRU',
    ]);
  });

  it('are tested on the seeds that both have, and corrected for their number', () => {
    const { daily, data } = made(arms);
    const found = methodDifferences(data, new SeriesReader());
    const pairs = [
      ['learned', 'gru', 3],
      ['learned', 'mtl', 4],
      ['mlp', 'gru', 3],
    ] as const;
    const expected = pairs.map(([own, other, seeds]) =>
      crossedBootstrap(
        daily[own].slice(0, seeds).map((values, s) => values.map((value, t) => value - daily[other][s][t])),
      ),
    );
    for (const [i, { test, holm: corrected }] of found.entries()) {
      expect(test.seeds).toBe(pairs[i][2]);
      expect(test.p).toBeCloseTo(expected[i].p, 9);
      expect(corrected).toBeCloseTo(holm(expected.map(({ p }) => p))[i], 9);
      expect(corrected).toBeLessThan(0.05);
    }
  });
});

it('leaves out methods that have no RankIC, as when all forecasts of a day are the same', () => {
  const folder = temporaryFolder();
  for (const [strategy, value] of Object.entries({ fixed: Number.NaN, learned: 0.1 })) {
    for (const seed of [1, 2]) {
      makeForecast(join(folder, `${strategy}-${seed}`), { strategy, seed, daily: new Array(DAYS).fill(value) });
    }
  }
  expect(methodDifferences(groupRuns(findRuns(folder).runs)[0], new SeriesReader())).toEqual([]);
});

describe("the paper's tables", () => {
  const arms = {
    gru: { strategy: 'fixed', seeds: 5, gain: 0 },
    lstm: { strategy: 'fixed', seeds: 1, gain: 0, set: { 'problem.model': { name: 'lstm' } } },
    learned: { strategy: 'learned', seeds: 2, gain: 0.03 },
  };
  const tables = () => paperTables(made(arms).data, 'csi300').map((table) => markdownTable(table).split('\n'));
  const cells = (lines: readonly string[], method: string) =>
    lines.find((line) => line.startsWith(`| ${method} |`))?.split(' | ');

  it('have all rows of the paper in its order, with others behind those they belong to', () => {
    const [results, icir] = tables();
    const methods = results.slice(2).map((line) => line.split(' | ')[0].slice(2));
    expect(methods).toEqual([
      ...['GRU', 'MLP', 'trees', 'GAT', 'LSTM'],
      ...[3, 5, 10].flatMap((tasks) => ['MTL', 'CL', 'TCTS'].map((method) => `${method} (${tasks} tasks)`)),
    ]);
    expect(icir.map((line) => line.split(' | ')[0]).slice(2)).toEqual(methods.map((method) => `| ${method}`));
  });

  it('have its figures beside those of the runs, with the number of seeds where there are fewer than five', () => {
    const [results, icir] = tables();
    expect(cells(results, 'GRU')).toMatchObject({ 1: expect.not.stringContaining('seed'), 2: '0.049 / 1.903' });
    expect(cells(results, 'TCTS (3 tasks)')?.[1]).toMatch(/\(2 seeds\)\*\*$/);
    expect(cells(results, 'LSTM')).toMatchObject({ 1: expect.stringMatching(/\(1 seed\)$/), 2: '– / –' });
    expect(cells(results, 'TCTS (5 tasks)')?.slice(1, 5)).toEqual([
      '– / –',
      '**0.075** / **1.849**',
      '– / –',
      '**0.032** / **1.939**',
    ]);
    expect(cells(icir, 'TCTS (10 tasks)')?.slice(-1)).toEqual(['**0.160** |']);
  });

  it('have other main tasks behind its three', () => {
    const { data } = made({
      gru: { strategy: 'fixed', seeds: 2, gain: 0 },
      far: { strategy: 'fixed', seeds: 2, gain: 0, set: { 'problem.main': 5 } },
    });
    const [results] = paperTables(data, 'csi300').map((table) => markdownTable(table).split('\n'));
    expect(results[0]).toMatch(/\| Task-3 \| Task-3, paper \| Task-5 \|$/);
    expect(cells(results, 'GRU')).toHaveLength(8);
    expect(cells(results, 'GRU')?.[7]).toMatch(/^\**0\.\d{4}.*\(2 seeds\)/);
  });

  it('are for its market and its days alone', () => {
    const { data } = made(arms);
    expect(isPapersMarket(data)).toBe(true);
    const [setting] = data.settings;
    const other = {
      ...setting,
      keys: new Map([...setting.keys, ['problem.split.test', ['2016-01-01', '2019-08-01']]]),
    };
    expect(isPapersMarket({ ...data, settings: [other] })).toBe(false);
  });

  it('are those of the paper', () => {
    // Column sums of the two tables in the paper's source.
    const sums = (figure: 'RankIC' | 'MSE' | 'ICIR') =>
      [0, 1, 2].map((task) => Number(PAPER_ROWS.reduce((sum, row) => sum + row[figure][task], 0).toFixed(3)));
    expect(sums('RankIC')).toEqual([0.703, 0.327, 0.206]);
    expect(sums('MSE')).toEqual([24.47, 25.339, 25.539]);
    expect(sums('ICIR')).toEqual([5.431, 2.314, 1.485]);
  });
});
