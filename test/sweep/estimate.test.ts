import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { estimate, type Job, plannedRuns, type runJob } from '../../src/sweep/index.js';
import { planFor } from './grids.js';

const runsOf = (text: string) => plannedRuns(planFor(text)).map(({ run }) => run);

const FOUR = `base: base.yaml
seeds: 2
groups: [{name: a, grid: {strategy.name: [fixed, mtl]}}]
`;

/** A trial in which the validation takes a second and an update half of one, by its log. */
function pretence(seconds = [1.5, 2, 2.5, 4.5], processor: readonly number[] = []) {
  const tried: Job[] = [];
  const run: typeof runJob = async (job) => {
    tried.push(job);
    mkdirSync(job.folder, { recursive: true });
    const lines = seconds.map((time, i) => JSON.stringify({ step: i + 1, seconds: time, processor: processor[i] }));
    writeFileSync(join(job.folder, 'timings.jsonl'), lines.map((line) => `${line}\n`).join(''));
    return { state: 'stopped' };
  };
  return { run, tried };
}

it('reckons all runs by a trial of one of each kind, in a folder that is gone afterwards', async () => {
  const { run, tried } = pretence();
  // Of 3 episodes with 2 updates each: 3 × (2 × 0.5 s + 1 s) = 6 s; four of them, two at a time.
  expect(await estimate(runsOf(FOUR), { cores: 2, run })).toEqual({ seconds: 12, trials: 1 });
  expect(existsSync(tried[0].folder)).toBe(false);
});

it('goes by the processor time of runs of one core, which other work on the machine does not change', async () => {
  // On the clock everything takes four times as long: the validation 1 s of the processor, an update 0.5 s.
  const { run } = pretence([6, 8, 10, 12], [1.5, 2, 2.5, 3]);
  expect((await estimate(runsOf(FOUR), { cores: 2, run })).seconds).toBe(12);
  // With two cores each, runs come one after the other: 4 × 3 × (2 × 2 s + 4 s).
  const two = runsOf(FOUR.replace('seeds: 2', 'seeds: 2\nset: {threads: 2, workers: 1}'));
  expect((await estimate(two, { cores: 2, run })).seconds).toBe(96);
});

it('is never shorter than the longest run', async () => {
  const { run } = pretence();
  expect((await estimate(runsOf(FOUR), { cores: 100, run })).seconds).toBe(6);
});

it('tries strategies that cost more, and other models, apart', async () => {
  const { run, tried } = pretence();
  const text =
    'base: base.yaml\ngroups: [{name: a, grid: {strategy.name: [fixed, mtl, static, self-paced, learned], threads: [1, 2]}}]\n';
  expect((await estimate(runsOf(text), { cores: 2, run })).trials).toBe(6);
  expect(tried.map(({ name }) => name)).toEqual([
    'a,strategy=fixed,threads=1,seed=1',
    'a,strategy=fixed,threads=2,seed=1',
    'a,strategy=self-paced,threads=1,seed=1',
    'a,strategy=self-paced,threads=2,seed=1',
    'a,strategy=learned,threads=1,seed=1',
    'a,strategy=learned,threads=2,seed=1',
  ]);
});

it('tries each problem of a grid apart', async () => {
  const { run } = pretence();
  const text = 'base: base.yaml\ngroups: [{name: a}, {name: b, set: {problem.kind: contextual}}]\n';
  expect((await estimate(runsOf(text), { cores: 2, run })).trials).toBe(2);
});

it('tries apart what makes an update dearer, and together what does not', async () => {
  const { run } = pretence();
  const kinds = `base: translation.yaml
set: {problem: {kind: monotonic, data: {from: toy}}}
groups:
  - {name: a, grid: {problem.attention: [milk, hmt], problem.latencyWeight: [0, 0.1]}}
  - {name: hmt, set: {problem.attention: hmt}, grid: {problem.candidates: {L1: {first: 1}, L3: {first: 3}}}}
  - {name: b, set: {problem.data: {from: verb-final}, problem.learning.peak: 1e-4}}
`;
  expect((await estimate(runsOf(kinds), { cores: 2, run })).trials).toBe(3);
});

it('says so if no two updates were made in the time of a trial', async () => {
  expect((await estimate(runsOf(FOUR), { cores: 2, run: pretence([1]).run })).seconds).toBeUndefined();
});

it('tells at once what would make the runs fail', async () => {
  const run: typeof runJob = async () => ({ state: 'failed', reason: 'there are no data' });
  await expect(estimate(runsOf(FOUR), { cores: 2, run })).rejects.toThrow(
    /trial of a,strategy=fixed,seed=1 failed: there are no data/,
  );
});
