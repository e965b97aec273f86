import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { createRun } from '../../src/run/index.js';
import { type Executor, type Job, type Outcome, type Plan, readSweep, runSweep } from '../../src/sweep/index.js';
import { planFor } from './grids.js';

interface Figures {
  /** Validation performance of a run, by its configuration. */
  readonly performance?: (config: Record<string, Record<string, unknown>>) => number;
  /** Validation performance of a model trained on wait-m under wait-k. */
  readonly onWait?: (m: number, k: number) => number;
  readonly outcome?: (job: Job) => Outcome;
}

/** Leaves in a run folder what a training and its evaluations would have left. */
class Pretence implements Executor {
  readonly submitted: Job[] = [];
  private readonly figures: Figures;
  private closed = false;

  constructor(figures: Figures = {}) {
    this.figures = figures;
  }

  async submit(job: Job, onProgress: Parameters<Executor['submit']>[1]): Promise<Outcome> {
    if (this.closed) return { state: 'stopped' };
    this.submitted.push(job);
    onProgress({ step: 0, steps: undefined });
    await Promise.resolve();
    const outcome = this.figures.outcome?.(job) ?? { state: 'done' };
    if (outcome.state === 'done') this.finish(job);
    return outcome;
  }

  async close(): Promise<void> {
    this.closed = true;
  }

  private finish({ folder, config: text, after }: Job): void {
    const config = parse(text);
    if (!this.trained.has(folder)) {
      const { lock } = createRun(folder, { config, seed: config.seed });
      lock.release();
      const info = JSON.parse(readFileSync(join(folder, 'run.json'), 'utf8'));
      writeFileSync(join(folder, 'run.json'), JSON.stringify({ ...info, state: 'finished' }));
      const performance = this.figures.performance?.(config) ?? 0;
      writeFileSync(
        join(folder, 'result.json'),
        JSON.stringify({ updates: 1, best: { performance, update: 1 }, test: null }),
      );
      this.trained.add(folder);
    }
    for (const verb of after) {
      const flag = (name: string) => verb[verb.indexOf(name) + 1];
      if (!verb.includes('--loss')) continue;
      mkdirSync(join(folder, 'evaluation'), { recursive: true });
      for (const k of flag('--k').split(',')) {
        const performance = this.figures.onWait?.(config.problem.main, Number(k)) ?? 0;
        const file = join(folder, 'evaluation', `${flag('--split')}-wait-${k}-loss.json`);
        writeFileSync(file, JSON.stringify({ plain: -performance, performance }));
      }
    }
    writeFileSync(join(folder, 'job.json'), JSON.stringify({ done: after }));
  }

  private readonly trained = new Set<string>();
}

const names = ({ submitted }: Pretence) => submitted.map(({ name }) => name);

const TWO = `base: base.yaml
groups:
  - name: a
    grid: {strategy.name: [fixed, mtl]}
`;

describe('a sweep', () => {
  it('does every run and records what became of it', async () => {
    const plan = planFor(TWO);
    const record = await runSweep(plan, { executor: new Pretence() });
    expect(record.runs).toMatchObject([
      { name: 'a,strategy=fixed,seed=1', group: 'a', labels: { strategy: 'fixed' }, seed: 1, state: 'done' },
      { name: 'a,strategy=mtl,seed=1', group: 'a', labels: { strategy: 'mtl' }, seed: 1, state: 'done' },
    ]);
    expect(readSweep(plan.folder)).toEqual(record);
  });

  it('leaves alone what is finished', async () => {
    const plan = planFor(TWO);
    const once = new Pretence({ outcome: ({ name }) => (name.includes('mtl') ? failed : done) });
    await runSweep(plan, { executor: once });
    const again = new Pretence();
    const record = await runSweep(plan, { executor: again });
    expect(names(again)).toEqual(['a,strategy=mtl,seed=1']);
    expect(record.runs.map(({ state }) => state)).toEqual(['done', 'done']);
    expect(record.created).toBe(readSweep(plan.folder)!.created);
  });

  it('goes on after a run that fails, and says why it did', async () => {
    const executor = new Pretence({ outcome: ({ name }) => (name.includes('fixed') ? failed : done) });
    const { runs } = await runSweep(planFor(TWO), { executor });
    expect(runs).toMatchObject([{ state: 'failed', reason: 'the data are missing' }, { state: 'done' }]);
  });

  it('refuses a run folder that holds something else, and does the rest', async () => {
    const plan = planFor(TWO);
    const [{ variants }] = plan.groups[0].settings;
    const { job } = variants[0].run(1);
    createRun(job.folder, { config: { ...parse(job.config), seed: 99 }, seed: 99 }).lock.release();
    const { runs } = await runSweep(plan, { executor: new Pretence() });
    expect(runs[0]).toMatchObject({ state: 'failed' });
    expect(runs[0].reason).toMatch(/another configuration: seed was 99 and is now 1/);
    expect(runs[1].state).toBe('done');
  });

  it('has its folder to itself', async () => {
    const plan = planFor(TWO);
    const busy = new Pretence();
    const first = runSweep(plan, { executor: busy });
    await expect(runSweep(plan, { executor: new Pretence() })).rejects.toThrow(/is using this folder/);
    expect((await first).runs.map(({ state }) => state)).toEqual(['done', 'done']);
    expect((await runSweep(plan, { executor: new Pretence() })).runs).toHaveLength(2);
  });

  it('begins nothing more once it is asked to stop', async () => {
    const stop = new AbortController();
    const executor = new Pretence({
      outcome: () => {
        stop.abort();
        return done;
      },
    });
    const text = `base: base.yaml\nseeds: 3\ngroups: [{name: a, select: {over: {strategy.name: [fixed, mtl]}}}]\n`;
    const { runs } = await runSweep(planFor(text), { executor, signal: stop.signal });
    // Both candidates were at work; the chosen one has its other two seeds still to come.
    expect(names(executor)).toHaveLength(2);
    expect(runs.map(({ state }) => state)).toEqual(['done', 'done', 'stopped', 'stopped']);
  });
});

describe('a choice by validation', () => {
  const text = `base: base.yaml
seeds: 3
groups:
  - name: a
    grid: {training.episodes: [5, 6]}
    select: {over: {training.steps: [1, 2, 3]}}
`;
  const plan = () => planFor(text);
  // The best number of steps is 2 for 5 episodes and 3 for 6.
  const performance: Figures['performance'] = ({ training }) =>
    -Math.abs((training.steps as number) - (training.episodes as number) + 3);

  it('is made with one seed for each setting of the grid, and run with all seeds', async () => {
    const executor = new Pretence({ performance });
    const { choices, runs } = await runSweep(plan(), { executor });
    expect(choices).toMatchObject([
      { step: 'a', for: { episodes: '5' }, chosen: { steps: '2' } },
      { step: 'a', for: { episodes: '6' }, chosen: { steps: '3' } },
    ]);
    expect(choices[0].candidates).toEqual([
      { labels: { steps: '1' }, score: -1, runs: ['a,episodes=5,steps=1,seed=1'] },
      { labels: { steps: '2' }, score: 0, runs: ['a,episodes=5,steps=2,seed=1'] },
      { labels: { steps: '3' }, score: -1, runs: ['a,episodes=5,steps=3,seed=1'] },
    ]);
    const results = runs.filter(({ candidate }) => !candidate).map(({ name }) => name);
    expect(results).toEqual([
      'a,episodes=5,steps=2,seed=1',
      'a,episodes=6,steps=3,seed=1',
      ...['a,episodes=5,steps=2,seed=2', 'a,episodes=5,steps=2,seed=3'],
      ...['a,episodes=6,steps=3,seed=2', 'a,episodes=6,steps=3,seed=3'],
    ]);
  });

  it('trains nothing twice: the chosen candidate is one of the results', async () => {
    const executor = new Pretence({ performance });
    await runSweep(plan(), { executor });
    expect(names(executor)).toHaveLength(6 + 4);
    expect(new Set(names(executor)).size).toBe(10);
  });

  it('passes over candidates that fail', async () => {
    const outcome: Figures['outcome'] = ({ name }) => (name.includes('episodes=5,steps=2') ? failed : done);
    const { choices } = await runSweep(plan(), { executor: new Pretence({ performance, outcome }) });
    expect(choices[0]).toMatchObject({ chosen: { steps: '1' } });
    expect(choices[0].candidates[1].score).toBeNull();
  });

  it('passes over a candidate whose result cannot be read, and says why', async () => {
    const bad: Figures['performance'] = (config) => (config.training.steps === 2 ? Number.NaN : performance(config));
    const { choices, runs } = await runSweep(plan(), { executor: new Pretence({ performance: bad }) });
    // NaN is written as null.
    expect(choices.map(({ chosen }) => chosen)).toEqual([{ steps: '1' }, { steps: '3' }]);
    expect(runs.find(({ name }) => name === 'a,episodes=5,steps=2,seed=1')).toMatchObject({
      state: 'failed',
      reason: expect.stringMatching(/result\.json: best\.performance: expected a number to choose by/),
    });
    expect(runs.filter(({ candidate, state }) => !candidate && state === 'done')).toHaveLength(6);
  });

  it('is not made where no candidate finishes; the other settings go on', async () => {
    const outcome: Figures['outcome'] = ({ name }) => (name.includes('episodes=5') ? failed : done);
    const { choices, runs } = await runSweep(plan(), { executor: new Pretence({ performance, outcome }) });
    expect(choices.find(({ for: where }) => where.episodes === '5')?.chosen).toBeNull();
    const results = runs.filter(({ candidate, state }) => !candidate && state === 'done');
    expect(results.map(({ labels }) => labels.episodes)).toEqual(['6', '6', '6']);
  });
});

describe('wait-k*', () => {
  const text = `base: translation.yaml
seeds: 2
after: []
groups:
  - name: wait
    grid: {problem.main: [1, 3, 5]}
  - name: window
    set: {strategy.name: window}
    grid: {problem.main: [1, 3]}
    atBestWait: strategy.around
waitKStar: {among: wait, for: [1, 3], beam: 1}
`;
  // Training with two more words than are waited for is best.
  const onWait: Figures['onWait'] = (m, k) => -1 - Math.abs(m - (k + 2));
  const evaluated = ({ submitted }: Pretence, flag: string) =>
    submitted.filter(({ after }) => after.some((verb) => verb.includes(flag)));

  it('is the wait whose models are best on the validation set under wait-k, and is tested under wait-k', async () => {
    const executor = new Pretence({ onWait });
    const { choices } = await runSweep(planFor(text), { executor });
    expect(choices).toMatchObject([
      { step: 'wait-k*', for: { main: '1' }, chosen: { main: '3' } },
      { step: 'wait-k*', for: { main: '3' }, chosen: { main: '5' } },
    ]);
    expect(choices[0].candidates.map(({ score }) => score)).toEqual([-3, -1, -3]);
    expect(evaluated(executor, '--split')).toHaveLength(3 * 2);
    const tests = executor.submitted.filter(({ after }) =>
      after.some((verb) => verb.includes('--k') && !verb.includes('--split')),
    );
    expect(tests.map(({ name, after }) => [name, after.at(-1)!.slice(0, 3).join(' ')])).toEqual([
      ['wait,main=3,seed=1', 'evaluate --k 1'],
      ['wait,main=3,seed=2', 'evaluate --k 1'],
      ['wait,main=5,seed=1', 'evaluate --k 3'],
      ['wait,main=5,seed=2', 'evaluate --k 3'],
    ]);
  });

  it('is what a group that waits for it is run with', async () => {
    const executor = new Pretence({ onWait });
    await runSweep(planFor(text), { executor });
    const around = executor.submitted
      .filter(({ name }) => name.startsWith('window'))
      .map(({ name, config }) => [name, parse(config).strategy.around]);
    expect(around).toEqual([
      ['window,main=1,seed=1', 3],
      ['window,main=1,seed=2', 3],
      ['window,main=3,seed=1', 5],
      ['window,main=3,seed=2', 5],
    ]);
  });

  it('fails what waits for it, with the reason, where no run has finished', async () => {
    const outcome: Figures['outcome'] = ({ name }) => (name.startsWith('wait') ? failed : done);
    const { runs } = await runSweep(planFor(text), { executor: new Pretence({ onWait, outcome }) });
    const reasons = runs.filter(({ group }) => group === 'window').map(({ reason }) => reason);
    expect(new Set(reasons)).toEqual(
      new Set(['there is no k* for the main task 1', 'there is no k* for the main task 3']),
    );
  });
});

describe('a group that starts from another', () => {
  const text = `base: translation.yaml
seeds: 2
groups:
  - {name: wait, grid: {problem.main: [1, 3]}}
  - {name: ours, set: {strategy.name: learned}, grid: {problem.main: [1, 3]}, warmStart: wait}
`;

  it('takes the run with its main task and seed, when that is done', async () => {
    const plan: Plan = planFor(text);
    const executor = new Pretence();
    await runSweep(plan, { executor });
    const starts = executor.submitted.slice(4).map(({ name, config }) => [name, parse(config).problem.warmStart]);
    expect(starts).toEqual([
      ['ours,main=1,seed=1', join(plan.folder, 'wait,main=1,seed=1')],
      ['ours,main=1,seed=2', join(plan.folder, 'wait,main=1,seed=2')],
      ['ours,main=3,seed=1', join(plan.folder, 'wait,main=3,seed=1')],
      ['ours,main=3,seed=2', join(plan.folder, 'wait,main=3,seed=2')],
    ]);
  });

  it('takes the run with its seed where the tasks of the two are not of one kind', async () => {
    const plan = planFor(`base: translation.yaml
seeds: 2
groups:
  - {name: wait, set: {problem.main: 3}}
  - name: heads
    set: {problem: {kind: monotonic, data: {from: toy}, latencyWeights: [0, 0.1], main: 0.1}}
    warmStart: wait
`);
    const executor = new Pretence();
    await runSweep(plan, { executor });
    const starts = executor.submitted.slice(2).map(({ config }) => parse(config).problem.warmStart);
    expect(starts).toEqual([join(plan.folder, 'wait,seed=1'), join(plan.folder, 'wait,seed=2')]);
  });

  it('fails where there is nothing to start from', async () => {
    const outcome: Figures['outcome'] = ({ name }) => (name === 'wait,main=1,seed=2' ? failed : done);
    const { runs } = await runSweep(planFor(text), { executor: new Pretence({ outcome }) });
    const ours = runs.filter(({ group }) => group === 'ours').map(({ state }) => state);
    expect(ours).toEqual(['done', 'failed', 'done', 'done']);
  });
});

const done: Outcome = { state: 'done' };
const failed: Outcome = { state: 'failed', reason: 'the data are missing' };
