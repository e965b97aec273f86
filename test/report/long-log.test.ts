import { appendFileSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { writeReport } from '../../src/report/index.js';
import { SeriesReader } from '../../src/report/reader.js';
import type { ReportedRun } from '../../src/report/runs.js';
import { readEpisodes } from '../../src/run/index.js';
import { temporaryFolder } from '../run/temporary.js';
import { makeOtherRun } from './run-folders.js';

const episode = (e: number) =>
  `${JSON.stringify({ step: 10 * e, episode: e, performance: e, reward: 0, loss: 1, distribution: { a: 1 } })}\n`;

it('all episodes are kept where there are few, and of very many the first, every n-th, the best and the last', () => {
  const folder = temporaryFolder();
  const read = (count: number, best: number) => {
    writeFileSync(join(folder, 'metrics.jsonl'), Array.from({ length: count }, (_, i) => episode(i + 1)).join(''));
    return readEpisodes(folder, 10 * best);
  };
  const few = read(4096, 4000);
  expect(few.count).toBe(4096);
  for (const i of [0, 1, 2222, 4095]) expect(few.at(i).episode).toBe(i + 1);
  expect(few.best?.episode).toBe(4000);
  // ⌈50,000 ∕ 4096⌉ = 13: after the first 4096, places 4108, 4121 … are kept, as multiples of 13.
  const many = read(50_000, 33_333);
  expect(many.count).toBe(50_000);
  for (const i of [0, 17, 4095, 4108, 49_999]) expect(many.at(i).episode).toBe(i + 1);
  expect(many.at(4120).episode).toBe(4109);
  expect(many.best?.episode).toBe(33_333);
});

it('the speed is that of the updates between lines of two logs of any length', () => {
  const folder = temporaryFolder();
  const lines = Array.from({ length: 30_000 }, (_, i) => i + 1);
  const metrics = lines.map((i) => (i % 10 === 0 ? episode(i) : `${JSON.stringify({ step: i, loss: 1 })}\n`));
  // An update takes a quarter of a second, a validation nine.
  const seconds = (i: number) => i / 4 + 9 * Math.floor(i / 10);
  const timings = lines.map((i) => `${JSON.stringify({ step: i, seconds: seconds(i) })}\n`);
  writeFileSync(join(folder, 'metrics.jsonl'), metrics.join(''));
  writeFileSync(join(folder, 'timings.jsonl'), timings.join(''));
  expect(new SeriesReader().speed({ folder } as ReportedRun)).toBeCloseTo(4, 9);
});

it('a report on a run whose log has more than 512 MB, which no string can hold, has its curves', async () => {
  const folder = temporaryFolder();
  const file = join(makeOtherRun(join(folder, 'run'), { strategy: 'learned', seed: 1 }), 'metrics.jsonl');
  const lines = readFileSync(file, 'utf8');
  // A hole takes no space on the disk.
  truncateSync(file, 2 ** 29 + 1000);
  appendFileSync(file, `\n${lines}`);
  const { figures } = await writeReport(folder);
  expect(figures).toContain('figures/known-answer-learning-curves.csv');
  const curve = readFileSync(join(folder, 'report/figures/known-answer-learning-curves.csv'), 'utf8');
  // The four episodes before the hole, and the four behind it.
  expect(curve.trim().split('\n')).toHaveLength(9);
});
