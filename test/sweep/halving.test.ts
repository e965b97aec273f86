import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import { trainRun } from '../../src/cli/training-run.js';
import { ForecastProblem } from '../../src/forecast/problem.js';
import { createRun } from '../../src/run/index.js';
import { rungsOf } from '../../src/sweep/choices.js';
import { type Executor, type Job, runSweep } from '../../src/sweep/index.js';
import { queueExecutor } from '../../src/sweep/queue/executor.js';
import { serveQueue } from '../../src/sweep/queue/worker.js';
import { describeWithRedis, startRedis } from '../redis.js';
import { temporaryFolder } from '../run/temporary.js';
import { planFor } from './grids.js';

it('the rounds of a halving let one in three go on, three times as long', () => {
  expect(rungsOf(9, 27, 3)).toEqual([
    { episodes: 3, keep: 3 },
    { episodes: 9, keep: 1 },
  ]);
  // ⌈4 ∕ 3⌉ = 2, ⌈2 ∕ 3⌉ = 1; 12 ∕ 3² is 1.
  expect(rungsOf(4, 12, 3)).toEqual([
    { episodes: 1, keep: 2 },
    { episodes: 3, keep: 1 },
  ]);
  // A first round of one's own; the last is the whole training, after which the best is taken.
  expect(rungsOf(9, 10, 3, 5)).toEqual([
    { episodes: 5, keep: 3 },
    { episodes: 10, keep: 1 },
  ]);
  expect(rungsOf(2, 1, 3)).toEqual([{ episodes: 1, keep: 1 }]);
  expect(rungsOf(1, 10, 3)).toEqual([]);
});

/** Leaves the log of a run that validates every two updates, or its result. */
class Pretence implements Executor {
  readonly submitted: Job[] = [];

  constructor(private readonly performance: (task: number, update: number) => number) {}

  async submit(job: Job): ReturnType<Executor['submit']> {
    this.submitted.push(job);
    const config = parse(job.config);
    if (!this.known.has(job.folder)) createRun(job.folder, { config, seed: config.seed }).lock.release();
    this.known.add(job.folder);
    const last = job.until ?? config.training.episodes * config.training.steps;
    const lines = Array.from({ length: last / 2 }, (_, i) => {
      const step = 2 * (i + 1);
      return `${JSON.stringify({ step, performance: this.performance(config.strategy.task, step) })}\n`;
    });
    writeFileSync(join(job.folder, 'metrics.jsonl'), lines.join(''));
    if (job.until === undefined) {
      const result = { updates: last, best: { performance: 1, update: last }, test: null };
      writeFileSync(join(job.folder, 'result.json'), JSON.stringify(result));
    }
    return { state: 'done' };
  }

  async close(): Promise<void> {}

  private readonly known = new Set<string>();
}

const NINE = `base: base.yaml
set: {training: {episodes: 9, steps: 2}, strategy.name: fixed}
groups:
  - name: a
    select: {over: {strategy.task: [1, 2, 3, 4, 5, 6, 7, 8, 9]}, search: halving}
`;

it('a halving finds the best by validation, goes on with what it has, and counts its looks', async () => {
  // Task 3 is ahead at first, task 5 in the end; of the others the higher numbers are better.
  const performance = (task: number, update: number): number => {
    if (task === 3) return 10;
    return task === 5 ? 9.5 + (update > 2 ? 2 : 0) : task;
  };
  const executor = new Pretence(performance);
  const { choices, runs } = await runSweep(planFor(NINE), { executor });
  const [{ chosen, looks, candidates }] = choices;
  expect(chosen).toEqual({ task: '5' });
  // Nine scores after 2 updates, those of 3, 5 and 9 after 6.
  expect(looks).toEqual({ configurations: 9, scores: 12 });
  expect(candidates[2]!.rungs).toEqual([
    { updates: 2, score: 10 },
    { updates: 6, score: 10 },
  ]);
  expect(candidates[4]!.rungs).toEqual([
    { updates: 2, score: 9.5 },
    { updates: 6, score: 11.5 },
  ]);
  expect(candidates[0]!.rungs).toEqual([{ updates: 2, score: 1 }]);
  // 9 · 2 updates, 3 · 4 more, 12 more: instead of 9 · 18.
  const asked = executor.submitted.map(({ name, until }) => `${/task=(\d)/.exec(name)![1]}:${until ?? 'end'}`);
  expect(asked.slice(0, 9)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9].map((task) => `${task}:2`));
  expect(asked.slice(9)).toEqual(['3:6', '5:6', '9:6', '5:end']);
  expect(runs.filter(({ candidate }) => !candidate).map(({ name }) => name)).toEqual(['a,task=5,seed=1']);
});

describeWithRedis('a halving on a queue', () => {
  it('comes to the choice of one on this machine, each round of a run a job of its own', async () => {
    const performance = (task: number, update: number): number => (task === 4 && update > 2 ? 20 : task);
    const here = await runSweep(planFor(NINE), { executor: new Pretence(performance) });
    const plan = planFor(NINE);
    const runs = dirname(plan.folder);
    mkdirSync(runs);
    const redis = await startRedis();
    const far = new Pretence(performance);
    const stop = new AbortController();
    const worker = serveQueue(redis.url, { runs, cores: 2, run: (job) => far.submit(job), signal: stop.signal });
    try {
      const executor = await queueExecutor(redis.url, { runs, lookSeconds: 0.05 });
      const { choices } = await runSweep(plan, { executor });
      expect(choices).toEqual(here.choices);
      // Of nine the three best after 2 updates, 7, 8 and 9: task 4 is too late.
      expect(choices[0]).toMatchObject({ chosen: { task: '9' }, looks: { configurations: 9, scores: 12 } });
      const asked = far.submitted.map(({ name, until }) => `${/task=(\d)/.exec(name)![1]}:${until ?? 'end'}`);
      expect(asked.slice(0, 9).sort()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9].map((task) => `${task}:2`));
      expect(asked.slice(9, 12).sort()).toEqual(['7:6', '8:6', '9:6']);
      expect(asked.slice(12)).toEqual(['9:end']);
    } finally {
      stop.abort();
      await worker;
    }
  });
});

it('a halving that compares unlike trainings is refused', () => {
  const grid = (over: string, name = 'fixed') =>
    `base: base.yaml\nset: {strategy.name: ${name}}\ngroups: [{name: a, select: {search: halving, over: ${over}}}]\n`;
  expect(() => planFor(grid('{training.steps: [1, 2]}'))).toThrow(/halving compares after equal numbers of updates/);
  expect(() => planFor(grid('{threads: [1, 2]}', 'best-fixed'))).toThrow(/halving cannot pause best-fixed/);
});

it('the test part is not looked at by a run that pauses, not even after its last update', async () => {
  const folder = temporaryFolder();
  mkdirSync(folder, { recursive: true });
  const config = {
    problem: {
      kind: 'forecast' as const,
      data: { format: 'synthetic', stocks: 8, days: 60 },
      split: {
        train: ['2015-01-12', '2015-02-20'],
        validation: ['2015-02-23', '2015-03-06'],
        test: ['2015-03-09', '2015-03-20'],
      } as never,
      features: { window: 3 },
      model: { name: 'linear' },
      batch: { size: 32 },
    },
    strategy: { name: 'fixed' },
    training: { episodes: 2, steps: 2 },
    threads: 1,
    logging: { tensorboard: false },
  };
  const test = vi.spyOn(ForecastProblem.prototype, 'test');
  try {
    const path = join(folder, 'run');
    for (const [until, resume] of [
      [2, false],
      [4, true],
    ] as const) {
      const { outcome, result } = await trainRun(config, { folder: path, until, resume, quiet: true });
      expect(outcome).toMatchObject({ state: 'interrupted', step: until });
      expect(result).toBeUndefined();
    }
    expect(test).not.toHaveBeenCalled();
    const { result } = await trainRun(config, { folder: path, resume: true, quiet: true });
    expect(test).toHaveBeenCalledOnce();
    const whole = await trainRun(config, { folder: join(folder, 'whole'), quiet: true });
    expect(result).toEqual(whole.result);
  } finally {
    test.mockRestore();
  }
});
