import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { SweepRecord } from '../../src/sweep/index.js';
import { temporaryFolder } from '../run/temporary.js';
import { startTcts, tcts } from './train-process.js';

const BASE = `problem: {kind: known-answer}
strategy: {name: fixed}
training: {episodes: 3, steps: 2}
threads: 1
logging: {tensorboard: false}
`;

function folderWith(grid: string): string {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'base.yaml'), BASE);
  writeFileSync(join(folder, 'grid.yaml'), grid);
  return folder;
}

const recordOf = (stdout: string) => JSON.parse(stdout) as SweepRecord & { folder: string };

describe('tcts sweep', () => {
  it('prints its plan and does nothing with --dry-run', async () => {
    const folder = folderWith('base: base.yaml\nseeds: 2\ngroups: [{name: a, grid: {strategy.name: [fixed, mtl]}}]\n');
    const { code, stdout } = await tcts(folder, 'sweep', 'grid.yaml', '--dry-run');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^a,strategy=fixed,seed=1 +to do +1 +6/m);
    expect(stdout.match(/^a,/gm)).toHaveLength(4);
    expect(readdirSync(folder).sort()).toEqual(['base.yaml', 'grid.yaml']);
  });

  it('does all runs but the one that fails, names the reason, exits with 1, and does only what is left next time', async () => {
    const around = (task: string) => `base: base.yaml
groups:
  - name: a
    grid:
      strategy:
        good: {name: mtl}
        bad: {name: window, around: ${task}}
`;
    const folder = folderWith(around('no-such-task'));
    const first = await tcts(folder, 'sweep', 'grid.yaml', '--json', '--cores', '1');
    expect(first.code).toBe(1);
    expect(recordOf(first.stdout).runs).toMatchObject([
      { name: 'a,strategy=good,seed=1', state: 'done' },
      { name: 'a,strategy=bad,seed=1', state: 'failed', reason: expect.stringMatching(/no-such-task/) },
    ]);
    expect(first.stderr).toMatch(/^failed {2}a,strategy=bad,seed=1: .*no-such-task/m);
    const finished = statSync(join(folder, 'runs/grid/a,strategy=good,seed=1/run.json')).mtimeMs;

    writeFileSync(join(folder, 'grid.yaml'), around('clean'));
    const second = await tcts(folder, 'sweep', 'grid.yaml');
    expect(second.stdout).toMatch(/2 runs: 2 done/);
    expect(second.code).toBe(0);
    expect(second.stderr).toMatch(/a,strategy=good,seed=1: already done/);
    expect(statSync(join(folder, 'runs/grid/a,strategy=good,seed=1/run.json')).mtimeMs).toBe(finished);
  });

  it('lets its runs save themselves at Ctrl-C, exits with 130, and goes on when it is started again', async () => {
    const folder = folderWith('base: base.yaml\nset: {training.episodes: 15000}\ngroups: [{name: a}]\n');
    const { child, ended } = startTcts(folder, 'sweep', 'grid.yaml');
    const run = join(folder, 'runs/grid/a,seed=1');
    while (!existsSync(join(run, 'metrics.jsonl')) && child.exitCode === null) await sleep(20);
    child.kill('SIGINT');
    const { code, stderr } = await ended;
    expect(code).toBe(130);
    expect(stderr).toMatch(/SIGINT: the runs save themselves and stop/);
    expect(stderr).toMatch(/stopped a,seed=1/);
    const again = await tcts(folder, 'sweep', 'grid.yaml', '--json', '--quiet');
    expect(recordOf(again.stdout).runs).toMatchObject([{ state: 'done' }]);
    expect(again.stderr).toBe('');
  });

  it('does not begin more than a thousand runs unasked', async () => {
    const steps = Array.from({ length: 101 }, (_, i) => i + 1).join(', ');
    const folder = folderWith(`base: base.yaml\nseeds: 10\ngroups: [{name: a, grid: {training.steps: [${steps}]}}]\n`);
    const { code, stderr } = await tcts(folder, 'sweep', 'grid.yaml');
    expect(code).toBe(1);
    expect(stderr).toMatch(/The grid has 1010 runs\. Continue\? There is no terminal to ask on: use --yes/);
    expect(existsSync(join(folder, 'runs'))).toBe(false);
  });
});

describe('tcts sweep with successive halving', () => {
  it('finds the task that is known to be the best, resumes what goes on, and tests that one alone', async () => {
    const folder = folderWith(`base: base.yaml
set: {training: {episodes: 9, steps: 4}}
groups:
  - name: a
    select: {search: halving, over: {strategy.task: [off-180, main, clean, off-60]}}
`);
    const first = await tcts(folder, 'sweep', 'grid.yaml', '--json');
    expect(first.code, first.stderr).toBe(0);
    const { choices, runs, folder: home } = recordOf(first.stdout);
    expect(choices[0]).toMatchObject({ chosen: { task: 'clean' }, looks: { configurations: 4, scores: 6 } });
    const at = (name: string, file: string) => join(folder, home, name, file);
    // Nothing but the chosen run has come to the end, where test data are looked at.
    const tested = runs.filter(({ name }) => existsSync(at(name, 'result.json')));
    expect(tested.map(({ name }) => name)).toEqual(['a,task=clean,seed=1']);
    // Its log is that of a run that was never stopped.
    const trained = [
      '--set',
      'training={episodes: 9, steps: 4}',
      '--set',
      'strategy.task=clean',
      '--set',
      'name=whole',
    ];
    await tcts(folder, 'train', 'base.yaml', ...trained, '--quiet');
    const log = (path: string) => readFileSync(path, 'utf8');
    expect(log(at('a,task=clean,seed=1', 'metrics.jsonl'))).toBe(log(join(folder, 'runs', 'whole', 'metrics.jsonl')));

    // A sweep that was killed before it could note its choice does nothing again but note it.
    const changed = () => runs.map(({ name }) => statSync(at(name, 'run.json')).mtimeMs);
    const before = changed();
    rmSync(join(folder, home, 'sweep.json'));
    const second = await tcts(folder, 'sweep', 'grid.yaml', '--json');
    expect(recordOf(second.stdout).choices).toEqual(choices);
    expect(changed()).toEqual(before);

    const report = await tcts(folder, 'report', 'runs', '--out', 'report');
    expect(report.code, report.stderr).toBe(0);
    const page = readdirSync(join(folder, 'report')).find((name) => name.endsWith('.md'));
    const text = readFileSync(join(folder, 'report', page!), 'utf8');
    expect(text).toContain('Looked at: 4 configurations, 6 validation scores.');
  }, 120_000);

  const FOUR = (steps: number) => `base: base.yaml
set: {training: {episodes: 9, steps: ${steps}}}
groups:
  - name: a
    select: {search: halving, over: {strategy.task: [main, clean, off-60, off-180]}}
`;

  it('refuses runs that consist of others before any is started', async () => {
    const grid = `base: base.yaml\ngroups: [{name: a, select: {search: halving, over: {problem.learningRate: [0.1, 0.01]}}}]\n`;
    const folder = folderWith(grid);
    const split = '{walkForward: {train: 3m, validation: 1m, step: 2m}}';
    const base = `problem: {kind: forecast, data: {format: synthetic}, split: ${split}}\nstrategy: {name: fixed}\n`;
    writeFileSync(join(folder, 'base.yaml'), `${base}training: {episodes: 3, steps: 2}\n`);
    const { code, stderr } = await tcts(folder, 'sweep', 'grid.yaml');
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^tcts: grid\.yaml:2.*halving cannot pause a run that consists of others .*expected search: all\n$/,
    );
    expect(existsSync(join(folder, 'runs'))).toBe(false);
  });

  it('says before what it will cost', async () => {
    const { stdout } = await tcts(folderWith(FOUR(4)), 'sweep', 'grid.yaml', '--dry-run');
    // 9 ∕ 3² episodes for all 4, ⌈4 ∕ 3⌉ = 2 of them for 3 episodes, the best for 9:
    // 4 · 4 + 2 · (12 − 4) + (36 − 12) = 56 updates.
    expect(stdout).toContain(
      'a: by halving: 4 candidates until update 4, 2 candidates until update 12, then the best to its end: ' +
        '56 updates a setting and seed instead of 144',
    );
    expect(stdout.match(/to do +1 +4 +\(candidate\)/g)).toHaveLength(4);
  });

  it('goes on where it was killed and comes to the same choice', async () => {
    const untouched = await tcts(folderWith(FOUR(300)), 'sweep', 'grid.yaml', '--json', '--quiet');
    const folder = folderWith(FOUR(300));
    const { child, ended } = startTcts(folder, 'sweep', 'grid.yaml', '--quiet');
    const logs = () =>
      readdirSync(join(folder, 'runs/grid')).map((run) => join(folder, 'runs/grid', run, 'metrics.jsonl'));
    const isSecondRound = () =>
      existsSync(join(folder, 'runs/grid')) &&
      logs().some((log) => existsSync(log) && readFileSync(log, 'utf8').includes('"step":600'));
    while (!isSecondRound() && child.exitCode === null) await sleep(20);
    child.kill('SIGKILL');
    await ended;
    expect(
      readdirSync(join(folder, 'runs/grid')).filter((run) => existsSync(join(folder, 'runs/grid', run, 'result.json'))),
    ).toEqual([]);
    const again = await tcts(folder, 'sweep', 'grid.yaml', '--json', '--quiet');
    expect(again.code, again.stderr).toBe(0);
    expect(recordOf(again.stdout).choices).toEqual(recordOf(untouched.stdout).choices);
  }, 120_000);
});
