import { join } from 'node:path';
import { expect, it } from 'vitest';
import { compareForecasts } from '../../src/forecast/evaluation/evaluation.js';
import { dates, temporaryFolder, writeFiles } from './panels.js';

/** A folder with the daily scores of a run. */
function evaluated(name: string, rankIC: readonly (number | '')[]): string {
  const lines = dates(rankIC.length).map((date, d) => `${date},${rankIC[d]},${rankIC[d]},1\n`);
  const daily = `date,IC,RankIC,zMSE\n${lines.join('')}`;
  const folder = join(home, name);
  writeFiles(folder, { 'evaluation/test/daily.csv': daily });
  return folder;
}

const home = temporaryFolder();
const wave = Array.from({ length: 200 }, (_, d) => Math.sin(d));

it('a constant advantage is certain, and none is no advantage', () => {
  const base = evaluated('base', wave);
  const better = evaluated(
    'better',
    wave.map((x, d) => x + 0.01 + 0.001 * Math.cos(7 * d)),
  );
  const { RankIC, against } = compareForecasts(better, base, 'test');
  expect(against).toBe(base);
  expect(RankIC.mean).toBeCloseTo(0.01, 4);
  expect(RankIC.days).toBe(200);
  // ⌈200^(1/3)⌉
  expect(RankIC.blockLength).toBe(6);
  expect(RankIC.p).toBeLessThan(0.001);
  expect(compareForecasts(base, base, 'test').IC).toMatchObject({ mean: 0, p: 1 });
});

it('only days on which both have a score count', () => {
  const all = evaluated('all', [0.1, 0.2, 0.3, 0.4, 0.5]);
  const some = evaluated('some', [0.1, '', 0.2, 0.3]);
  const { RankIC } = compareForecasts(all, some, 'test');
  expect(RankIC.days).toBe(3);
  expect(RankIC.mean).toBeCloseTo((0 + 0.1 + 0.1) / 3, 12);
});

it('runs that were evaluated on different data are not compared', () => {
  const [a, b, c] = ['a', 'b', 'c'].map((name) => evaluated(name, wave));
  const data = (folder: string, digest: string) =>
    writeFiles(folder, {
      'evaluation/test/scores.json': JSON.stringify({ data: { name: `D${digest}`, digest, own: true } }),
    });
  data(a, '1');
  data(b, '2');
  expect(() => compareForecasts(a, b, 'test')).toThrow('it was evaluated on D2, but the other run on D1');
  expect(() => compareForecasts(a, c, 'test')).toThrow('it was evaluated on data that it does not name');
  data(b, '1');
  expect(compareForecasts(a, b, 'test').IC.mean).toBe(0);
});

it('a run that has not been evaluated is named', () => {
  const base = evaluated('alone', wave);
  expect(() => compareForecasts(base, join(home, 'never'), 'test')).toThrow(
    /never.*test: it has no evaluation to compare with, expected that of: tcts evaluate .*never/,
  );
});
