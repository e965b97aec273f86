import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { parse } from 'yaml';
import { planOf } from '../../src/cli/sweep-run.js';
import { PAPER_ROWS } from '../../src/report/sections/paper-tables.js';
import { jsonSchema, referenceYaml } from '../../src/run/index.js';
import { axisNames, groupSchema } from '../../src/sweep/grid.js';
import { countRuns, gridSchema, loadGrid, plannedRuns } from '../../src/sweep/index.js';
import { gridFile, planFor } from './grids.js';

const names = (text: string) => plannedRuns(planFor(text)).map(({ run }) => run.name);
const configs = (text: string) => plannedRuns(planFor(text)).map(({ run }) => parse(run.job.config));

describe('a grid', () => {
  it('runs every combination with every seed, under names that say which', () => {
    const text = `base: base.yaml
seeds: 2
groups:
  - name: all
    grid:
      strategy.name: [fixed, mtl]
      training.steps: [2, 4]
`;
    expect(names(text)).toEqual([
      'all,strategy=fixed,steps=2,seed=1',
      'all,strategy=fixed,steps=2,seed=2',
      'all,strategy=fixed,steps=4,seed=1',
      'all,strategy=fixed,steps=4,seed=2',
      'all,strategy=mtl,steps=2,seed=1',
      'all,strategy=mtl,steps=2,seed=2',
      'all,strategy=mtl,steps=4,seed=1',
      'all,strategy=mtl,steps=4,seed=2',
    ]);
    expect(countRuns(planFor(text).grid)).toBe(8);
    expect(configs(text)[7]).toMatchObject({ seed: 2, strategy: { name: 'mtl' }, training: { episodes: 3, steps: 4 } });
  });

  it('lays the values of a group over those for all, and those of the axes over both', () => {
    const [config] = configs(`base: base.yaml
set: {training.steps: 5, training.episodes: 7, threads: 3}
groups:
  - name: a
    set: {training.steps: 6}
    grid: {training.episodes: [8]}
`);
    expect(config).toMatchObject({ training: { steps: 6, episodes: 8 }, threads: 3 });
  });

  it('keeps assignments of the command line between what it sets for all and what a group sets', () => {
    const plan = planFor(
      `base: base.yaml
set: {training.steps: 5, training.episodes: 5}
groups: [{name: a, set: {training.steps: 6}}]
`,
      { set: ['training.steps=1', 'training.episodes=1'] },
    );
    expect(plannedRuns(plan)[0].run.config.training).toEqual({ steps: 6, episodes: 1 });
  });

  it('may have a base of its own for a group, relative to the file that names it, with all else as for the others', () => {
    const text = `base: base.yaml
set: {threads: 3}
groups:
  - name: a
  - {name: b, base: translation.yaml, set: {problem.main: 5}, grid: {strategy.name: [mtl]}}
`;
    expect(configs(text)).toMatchObject([
      { problem: { kind: 'known-answer' }, training: { episodes: 3, steps: 2 }, threads: 3 },
      { problem: { kind: 'translation', main: 5 }, strategy: { name: 'mtl' }, training: { episodes: 1 }, threads: 3 },
    ]);
    const file = gridFile(text);
    const deeper = join(file, '..', 'deeper');
    mkdirSync(deeper);
    writeFileSync(join(deeper, 'grid.yaml'), 'extends: ../grid.yaml\n');
    expect(loadGrid(join(deeper, 'grid.yaml')).bases).toEqual(loadGrid(file).bases);
  });

  it('fills in the folder of the data, in all texts that it sets and in no others', () => {
    const text = `base: translation.yaml
set: {problem.data: {from: corpus, folder: '{data}/a'}}
groups:
  - name: a
  - {name: b, set: {problem.data.folder: '{data}/b'}}
  - {name: c, grid: {problem.data.folder: {one: '{data}/c'}}}
`;
    const runs = plannedRuns(planFor(text, { data: 'some/where' })).map(({ run }) => parse(run.job.config));
    expect(runs.map(({ problem }) => problem.data.folder)).toEqual(['some/where/a', 'some/where/b', 'some/where/c']);
    expect(planFor(text, { data: 'some/where' })).toMatchObject({ data: 'some/where' });
    expect(() => planFor(text)).toThrow(
      /grid\.yaml:2: set\.problem\.data\.folder: \{data\} stands for the folder that --data names, but there is no --data/,
    );
    expect(() => planFor('base: base.yaml\ngroups: [{name: a}]\n', { data: 'x' })).toThrow(
      /--data: no value of .*grid\.yaml contains \{data\}/,
    );
  });

  it('can be run with other seeds than its own', () => {
    const file = gridFile('base: base.yaml\nseeds: 9\ngroups: [{name: a}, {name: b, seeds: [7]}]\n');
    const runs = plannedRuns(planOf(loadGrid(file, [3, 5]))).map(({ run }) => run.name);
    expect(runs).toEqual(['a,seed=3', 'a,seed=5', 'b,seed=3', 'b,seed=5']);
  });

  it('takes several keys at once as one axis of labelled maps', () => {
    const text = `base: base.yaml
groups:
  - name: a
    grid:
      strategy:
        plain: {name: fixed}
        ours: {name: learned, hidden: [32]}
`;
    expect(names(text)).toEqual(['a,strategy=plain,seed=1', 'a,strategy=ours,seed=1']);
    expect(configs(text)[1].strategy).toMatchObject({ name: 'learned', hidden: [32] });
  });

  it('reckons the cores of a job as threads, times workers if their number is given', () => {
    const cores = (set: string) =>
      plannedRuns(planFor(`base: base.yaml\ngroups: [{name: a, set: ${set}}]\n`))[0].run.job.cores;
    expect(cores('{threads: 3, workers: 2}')).toBe(6);
    expect(cores('{threads: 3}')).toBe(3);
  });

  it('evaluates where there is something to evaluate, on as many cores as the training had', () => {
    const verbs = (text: string) =>
      plannedRuns(planFor(text, { evaluated: ({ kind }) => kind === 'translation' }))[0].run.job.after;
    expect(verbs('base: base.yaml\ngroups: [{name: a}]\n')).toEqual([]);
    expect(verbs('base: translation.yaml\ngroups: [{name: a}]\n')).toEqual([['evaluate', '--threads', '1']]);
    expect(verbs('base: translation.yaml\nafter: ["evaluate --k 1,3"]\ngroups: [{name: a}]\n')).toEqual([
      ['evaluate', '--k', '1,3', '--threads', '1'],
    ]);
    expect(verbs('base: translation.yaml\ngroups: [{name: a, after: []}]\n')).toEqual([]);
  });

  it('counts the candidates of a choice once, and the chosen one with its other seeds', () => {
    const text = `base: base.yaml
seeds: 5
groups:
  - name: a
    grid: {training.steps: [1, 2, 3]}
    select: {over: {strategy.name: [fixed, mtl]}}
`;
    // 3 settings × 2 candidates with the first seed, then 3 settings with the other 4 seeds.
    expect(countRuns(planFor(text).grid)).toBe(3 * 2 + 3 * 4);
    expect(plannedRuns(planFor(text)).map(({ candidate }) => candidate)).toEqual(Array(6).fill(true));
  });

  it('has a name of its own for every combination', () => {
    const labels = fc.uniqueArray(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 4 });
    const axes = fc.record({
      'training.steps': labels,
      'training.episodes': labels,
      'saving.everySteps': labels,
      'logging.everySteps': labels,
    });
    fc.assert(
      fc.property(axes, fc.integer({ min: 1, max: 3 }), (grid, seeds) => {
        const all = names(JSON.stringify({ base: 'base.yaml', seeds, groups: [{ name: 'g', grid }] }));
        const product = Object.values(grid).reduce((count, values) => count * values.length, seeds);
        expect(new Set(all).size).toBe(product);
        for (const name of all) expect(name).toMatch(/^\w[\w.=,+-]*$/);
      }),
      { numRuns: 25 },
    );
  });
});

test('the short name of a key is as many of its last words as tell it from the others', () => {
  const keys = ['problem.main', 'strategy.name', 'strategy.learningRate', 'problem.learningRate', 'problem.model.name'];
  expect([...axisNames(keys).values()]).toEqual([
    'main',
    'strategy',
    'strategy.learningRate',
    'problem.learningRate',
    'model',
  ]);
  expect([...axisNames(['strategy', 'strategy.name']).values()]).toEqual(['strategy', 'strategy.name']);
});

describe('a mistake in a grid is told with its line and key', () => {
  const message = (text: string) => () => planFor(text);

  it.each([
    [
      'an unknown key of the grid',
      'base: base.yaml\ngrups: []\n',
      /grid\.yaml:2: grups: unknown key; did you mean groups/,
    ],
    ['no group', 'base: base.yaml\ngroups: []\n', /grid\.yaml:2: groups: expected a list of at least 1 item/],
    [
      'an axis without values',
      'base: base.yaml\ngroups:\n  - name: a\n    grid:\n      strategy.name: []\n',
      /grid\.yaml:5: groups\.0\.grid\.strategy\.name: expected/,
    ],
    [
      'a key that no training knows',
      'base: base.yaml\ngroups:\n  - name: a\n    grid:\n      training.stebs: [1]\n',
      /grid\.yaml:5: training\.stebs: unknown key; did you mean training\.steps/,
    ],
    [
      'a value that no training takes',
      'base: base.yaml\ngroups:\n  - name: a\n    grid:\n      strategy.name: [fixed, mlt]\n',
      /grid\.yaml:5: strategy\.name: .*found "mlt"; did you mean "mtl"/,
    ],
    [
      'a mistake inside a labelled map',
      'base: base.yaml\ngroups:\n  - name: a\n    grid:\n      strategy:\n        x: {name: fixed}\n        y: {name: mtl, radius: 2}\n',
      /grid\.yaml:7: strategy\.radius: unknown key/,
    ],
    [
      'a seed among the settings',
      'base: base.yaml\nset:\n  seed: 3\ngroups: [{name: a}]\n',
      /grid\.yaml:3: set\.seed: .*seeds/,
    ],
    [
      'a map without a label',
      'base: base.yaml\ngroups: [{name: a, grid: {strategy: [{name: mtl}]}}]\n',
      /needs a label/,
    ],
    [
      'a value twice',
      'base: base.yaml\ngroups: [{name: a, grid: {training.steps: [1, 1]}}]\n',
      /two values are called "1"/,
    ],
    [
      'a group twice',
      'base: base.yaml\ngroups:\n  - {name: a}\n  - {name: a}\n',
      /grid\.yaml:4: .*two groups are called a/,
    ],
    [
      'a key on two axes',
      'base: base.yaml\ngroups: [{name: a, grid: {training.steps: [1]}, select: {over: {training.steps: [2]}}}]\n',
      /already in the grid/,
    ],
    [
      'a group that is not there',
      'base: translation.yaml\ngroups: [{name: wait}, {name: b, warmStart: wiat}]\n',
      /there is no group wiat; did you mean wait/,
    ],
    [
      'a group that starts from a later one',
      'base: translation.yaml\ngroups: [{name: a, warmStart: b}, {name: b}]\n',
      /expected an earlier group, found b/,
    ],
    [
      'a start that could be several runs',
      'base: translation.yaml\ngroups: [{name: a, grid: {problem.main: [1, 3]}}, {name: b, warmStart: a, set: {problem: {kind: monotonic, data: {from: toy}}}}]\n',
      /expected one run of a for each seed to start b from, found 2/,
    ],
    [
      'a seed without a start',
      'base: translation.yaml\ngroups: [{name: a, seeds: 2}, {name: b, warmStart: a, seeds: 3}]\n',
      /expected a run of a with seed 3, which b has/,
    ],
    [
      'k* where none is found',
      'base: translation.yaml\ngroups: [{name: a, atBestWait: strategy.around}]\n',
      /expected waitKStar in this file/,
    ],
    [
      'k* for a key that no training knows',
      'base: translation.yaml\nwaitKStar: {among: w, for: [1]}\ngroups: [{name: w}, {name: a, atBestWait: strategy.arround}]\n',
      /strategy\.arround: unknown key/,
    ],
    [
      'a verb that does not exist',
      'base: base.yaml\nafter: [evaluat]\ngroups: [{name: a}]\n',
      /grid\.yaml:2: after\.0: expected/,
    ],
    ['a base that is not there', 'base: bse.yaml\ngroups: [{name: a}]\n', /bse\.yaml cannot be read: does not exist/],
    [
      'a base of a group that is not there',
      'base: base.yaml\ngroups: [{name: a, base: bse.yaml}]\n',
      /bse\.yaml cannot be read: does not exist/,
    ],
  ])('%s', (_, text, expected) => {
    expect(message(text)).toThrow(expected);
  });

  it('refuses more combinations than anybody means, without making them', () => {
    const many = `[${Array.from({ length: 1000 }, (_, i) => i + 1).join(',')}]`;
    const grid = `{training.steps: ${many}, training.episodes: ${many}, logging.everySteps: ${many}}`;
    const text = `base: base.yaml\ngroups: [{name: a, grid: ${grid}}]\n`;
    expect(countRuns(loadGrid(gridFile(text)))).toBe(1e9);
    expect(message(text)).toThrow('1000000000 runs, expected at most 100000');
  });
});

describe('the ready grids', () => {
  const folder = fileURLToPath(new URL('../../configs/sweeps/', import.meta.url));
  const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'));

  it.each(files)('%s is valid', (name) => {
    const needsData = readFileSync(folder + name, 'utf8').includes("'{data}/");
    const plan = planOf(loadGrid(folder + name), needsData ? { data: 'DIR' } : {});
    expect(plannedRuns(plan).length).toBeGreaterThan(0);
  });

  it('of scheduling have every arm on every problem, paired by seeds', () => {
    const groups = planOf(loadGrid(`${folder}scheduling-small.yaml`), { data: 'DIR' }).groups;
    const problems = groups.filter(({ name }) => !name.endsWith('-equal-time'));
    const oracles = ['known-answer', 'contextual', 'series-noisy', 'stocks-stale', 'translation-scrambled'];
    expect(problems.map(({ name }) => name)).toEqual([
      ...oracles,
      ...['ETTh1', 'ETTh2', 'weather', 'CSI300', 'Multi30k-wait-1', 'Multi30k-wait-3', 'Multi30k-wait-9'],
    ]);
    for (const { name, settings, seeds } of problems) {
      const made = name === 'known-answer' || name === 'contextual';
      expect(settings).toHaveLength(oracles.includes(name) ? 14 : 13);
      expect(seeds).toHaveLength(made ? 20 : /translation|Multi30k/.test(name) ? 5 : 10);
      expect(seeds[0]).toBe(301);
      // Uniform until two thirds: the share of the main task among K tasks is 1 ∕ K.
      const { config } = settings[4].variants[0].run(301);
      const { tasks, waits } = config.problem as { tasks?: number | number[]; waits?: number };
      const K = { 'known-answer': 5, contextual: 3 }[name] ?? waits ?? (Array.isArray(tasks) ? tasks.length : tasks);
      expect(config.strategy).toEqual({ name: 'static', main: 1 / K!, rest: 'uniform', until: 0.67 });
      const short = groups.find((group) => group.name === `${name}-equal-time`);
      expect(short?.seeds).toEqual(made ? undefined : seeds);
    }
  });

  it("of the stock experiment have every row of the paper's tables for three main tasks, with five seeds", () => {
    const runs = plannedRuns(planOf(loadGrid(`${folder}stock-full.yaml`))).map(({ run }) => ({
      seed: run.seed,
      strategy: run.config.strategy.name,
      problem: run.config.problem as unknown as { main: number; tasks: number; model: { name: string }; test: boolean },
    }));
    for (const { strategy, model, tasks } of PAPER_ROWS) {
      for (const main of [1, 2, 3]) {
        const seeds = runs.flatMap(({ seed, strategy: name, problem }) => {
          const isRow = name === strategy && problem.model.name === model && problem.tasks === (tasks ?? 3);
          return isRow && problem.main === main ? [seed] : [];
        });
        expect(seeds).toEqual([1, 2, 3, 4, 5]);
      }
    }
    expect(runs.every(({ problem }) => problem.test === false)).toBe(true);
  });

  it.each(['stock-smoke.yaml', 'translation-smoke.yaml'])(
    '%s has the four strategies of the paper, two main tasks and two seeds, each run on one core',
    (name) => {
      const runs = plannedRuns(planOf(loadGrid(folder + name))).map(({ run }) => run);
      const strategies = new Set(runs.map(({ config }) => config.strategy.name));
      expect([...strategies].sort()).toEqual(['curriculum', 'fixed', 'learned', 'mtl']);
      expect(new Set(runs.map(({ config }) => config.problem.main)).size).toBeGreaterThanOrEqual(2);
      expect(new Set(runs.map(({ seed }) => seed))).toEqual(new Set([1, 2]));
      expect(new Set(runs.map(({ job }) => job.cores))).toEqual(new Set([1]));
    },
  );

  // After a change of the schema: npx vitest run test/sweep/plan.test.ts -u
  it('come with a reference and a schema for editors that are those of the code', async () => {
    const group = referenceYaml(groupSchema, 'The keys of a group:').trimEnd();
    const commented = group
      .split('\n')
      .map((line) => (line.startsWith('#') || line === '' ? line || '#' : `# ${line}`));
    const reference = `${referenceYaml(gridSchema, TITLE)}\n${commented.join('\n')}\n`;
    await expect(reference).toMatchFileSnapshot(`${folder}reference.yaml`);
    const schema = `${JSON.stringify(jsonSchema(gridSchema), null, 2)}\n`;
    await expect(schema).toMatchFileSnapshot(`${folder}schema.json`);
  });
});

const TITLE =
  'Every key of a grid for tcts sweep, with its default. It may begin with "extends: other.yaml". docs/scaling.md has examples.';
