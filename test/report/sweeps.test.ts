import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { writeReport } from '../../src/report/index.js';
import { findRuns } from '../../src/report/runs.js';
import { groupRuns, labelsOf } from '../../src/report/settings.js';
import { type ChoiceRecord, FORMAT, type RunRecord, type SweepRecord, writeSweep } from '../../src/sweep/record.js';
import { temporaryFolder } from '../run/temporary.js';
import { makeTranslation, REFERENCES } from './run-folders.js';

const read = (...path: string[]): string => readFileSync(join(...path), 'utf8');

/** The record of a sweep, as `tcts sweep` leaves it. */
function record(folder: string, groups: object[], runs: Partial<RunRecord>[], choices: ChoiceRecord[] = []): void {
  const whole = { labels: {}, seed: 1, candidate: false, state: 'done' };
  writeSweep(folder, {
    ...{ format: FORMAT, name: 'trial', version: '0.1.0', node: '20.0.0', onnxruntime: '1.0.0' },
    ...{ created: '2026-01-01T00:00:00.000Z', updated: '2026-01-01T00:00:00.000Z' },
    grid: { file: 'trial.yaml', set: ['problem.data.folder="multi30k"'], values: { groups } },
    runs: runs.map((run) => ({ ...whole, ...run }) as RunRecord),
    choices,
  } satisfies SweepRecord);
}

/** Runs of wait-1 and wait-3 with two seeds, each tested with both; the model of wait-3 is better at both. */
function waits(folder: string): Partial<RunRecord>[] {
  return [1, 3].flatMap((main) =>
    [1, 2].map((seed) => {
      const name = `wait,main=${main},seed=${seed}`;
      const tests = [1, 3].map((k) => ({ k, outputs: REFERENCES, bleu: 10 * main + k + seed }));
      makeTranslation(join(folder, name), { strategy: 'fixed', seed, main, waits: tests });
      return { name, group: 'wait', labels: { main: String(main) }, seed };
    }),
  );
}

/** Wait-3 was chosen for k = 1 and k = 3. */
const choices: ChoiceRecord[] = [1, 3].map((k) => ({
  step: 'wait-k*',
  for: { main: String(k) },
  candidates: [1, 3].map((m) => ({
    labels: { main: String(m) },
    score: m === 3 ? -1 : -2,
    runs: [1, 2].map((seed) => `wait,main=${m},seed=${seed}`),
  })),
  chosen: { main: '3' },
}));

describe('a report on a sweep', () => {
  it('has wait-k*: the figures of the chosen runs under wait-k, and the wait they were trained on', async () => {
    const folder = temporaryFolder();
    record(folder, [{ name: 'wait' }], waits(folder), choices);
    const files = await writeReport(folder);
    const table = read(files.folder, 'tables/multi30k-results.md');
    // BLEU is 10·m + k + seed: the mean over seeds 1 and 2 is 10·m + k + 1.5, its deviation 0.71.
    expect(table.split('\n').slice(0, 4)).toEqual([
      '| k | wait-k | wait-k\\* |',
      '| --- | ---: | ---: |',
      '| 1 | 12.50 ± 0.71 | **32.50 ± 0.71 / 3** |',
      '| 3 | **34.50 ± 0.71** | **34.50 ± 0.71 / 3** |',
    ]);
    // It is no further training: it is counted once, and has no learning curve.
    expect(files.runs).toBe(4);
    expect(read(files.folder, 'tables/runs.md').trim().split('\n')).toHaveLength(2 + 4);
    expect(read(files.folder, 'tables/multi30k-speed.md')).not.toContain('wait-k\\*');
    expect(read(files.folder, 'figures/multi30k-bleu-latency.csv')).toContain('wait-k*,1,');
  });

  it('compares with wait-k*', async () => {
    const folder = temporaryFolder();
    const runs = waits(folder);
    const tests = [{ k: 1, outputs: REFERENCES, bleu: 40 }];
    for (const seed of [1, 2]) {
      const name = `ours,seed=${seed}`;
      makeTranslation(join(folder, name), { strategy: 'learned', seed, main: 1, waits: tests });
      runs.push({ name, group: 'ours', seed });
    }
    record(folder, [{ name: 'wait' }, { name: 'ours' }], runs, choices);
    const { folder: report } = await writeReport(folder);
    const rows = read(report, 'tables/multi30k-significance.md').split('\n').slice(2);
    expect(rows[0]).toContain('| k = 1 | TCTS | wait-k | +27.500 |');
    expect(rows[1]).toContain('| k = 1 | TCTS | wait-k\\* | +7.500 |');

    // Where k* is k, there is but one comparison.
    record(folder, [{ name: 'wait' }, { name: 'ours' }], runs, [{ ...choices[0], chosen: { main: '1' } }]);
    await writeReport(folder);
    expect(read(report, 'tables/multi30k-significance.md').trim().split('\n')).toHaveLength(2 + 1);
  });

  it('counts a model of all waits for every main task whose wait it was decoded with, but not its best parameters', async () => {
    const folder = temporaryFolder();
    const tests = (checkpoint: string, bleu: number) =>
      [1, 3].map((k) => ({ k, outputs: REFERENCES, bleu: bleu + k, checkpoint }));
    for (const main of [1, 3]) {
      makeTranslation(join(folder, `wait-${main}`), { strategy: 'fixed', seed: 1, main, waits: tests('latest', 20) });
    }
    makeTranslation(join(folder, 'all'), { strategy: 'mtl', seed: 1, main: 3, waits: tests('latest', 30) });
    const { folder: report } = await writeReport(folder);
    const table = () => read(report, 'tables/multi30k-results.md').split('\n').slice(2, 4);
    expect(table()).toEqual(['| 1 | 21.00 | **31.00** |', '| 3 | 23.00 | **33.00** |']);
    // It was trained once.
    expect(read(report, 'tables/runs.md').trim().split('\n')).toHaveLength(2 + 3);

    for (const name of ['wait-1', 'wait-3', 'all']) rmSync(join(folder, name), { recursive: true });
    for (const main of [1, 3]) {
      makeTranslation(join(folder, `wait-${main}`), { strategy: 'fixed', seed: 1, main, waits: tests('best', 20) });
    }
    makeTranslation(join(folder, 'all'), { strategy: 'mtl', seed: 1, main: 3, waits: tests('best', 30) });
    await writeReport(folder);
    expect(table()).toEqual(['| 1 | 21.00 | – |', '| 3 | 23.00 | **33.00** |']);
  });

  it('shows what was chosen, and the command of the sweep in place of those of its runs', async () => {
    const folder = temporaryFolder();
    record(folder, [{ name: 'wait' }], waits(folder), choices);
    const files = await writeReport(folder);
    expect(read(files.folder, 'tables/trial-choices.csv').split('\n').slice(1, 3)).toEqual([
      'wait-k*,main 1,main 1,−2.0000,2,',
      'wait-k*,main 1,main 3,−1.0000,2,chosen',
    ]);
    const markdown = read(files.markdown);
    expect(markdown).toContain(`    tcts sweep trial.yaml --set 'problem.data.folder="multi30k"'  # trial`);
    expect(markdown).not.toContain('    tcts train');
  });

  it('lists candidates apart', async () => {
    const folder = temporaryFolder();
    const runs = [0.1, 0.2].map((rate, i) => {
      const name = `ours,learningRate=${rate},seed=1`;
      const set = { 'strategy.learningRate': rate };
      makeTranslation(join(folder, name), { strategy: 'learned', seed: 1, set, waits: [] });
      return { name, group: 'ours', labels: { learningRate: String(rate) }, candidate: i === 0 };
    });
    record(folder, [{ name: 'ours', select: { over: { 'strategy.learningRate': [0.1, 0.2] } } }], runs);
    const files = await writeReport(folder);
    expect(files.runs).toBe(1);
    expect(read(files.folder, 'tables/runs.md')).not.toContain('learningRate=0.1');
    expect(read(files.folder, 'tables/runs-candidates.md')).toContain('ours,learningRate=0.1,seed=1');
    expect(read(files.markdown)).toContain('1 finished run, and 1 used only to choose settings.');
  });

  it('takes a record that cannot be read as none, and says so', async () => {
    const folder = temporaryFolder();
    waits(folder);
    writeFileSync(join(folder, 'sweep.json'), '{"format":');
    const files = await writeReport(folder);
    expect(files.runs).toBe(4);
    expect(read(files.folder, 'tables/files-left-out.csv')).toContain('expected the record of a sweep in JSON');
  });
});

describe('the names of the methods of a sweep', () => {
  const names = (groups: object[], runs: { group: string; main: number; set: Record<string, unknown> }[]): string[] => {
    const folder = temporaryFolder();
    const records = runs.map(({ group, main, set }, i) => {
      const name = `run-${i}`;
      makeTranslation(join(folder, name), { strategy: 'learned', seed: 1, main, set, waits: [] });
      return { name, group };
    });
    record(folder, groups, records);
    return labelsOf(groupRuns(findRuns(folder).runs)[0]);
  };
  const chosen = [
    { group: 'ours', main: 1, set: { 'strategy.learningRate': 0.1, 'training.steps': 5 } },
    { group: 'ours', main: 3, set: { 'strategy.learningRate': 0.2, 'training.steps': 6 } },
  ];

  it('do not tell what was chosen for each main task', () => {
    const over = { 'strategy.learningRate': [0.1, 0.2], training: {} };
    expect(names([{ name: 'ours', select: { over } }], chosen)).toEqual(['TCTS']);
    expect(names([{ name: 'ours' }], chosen)).toHaveLength(2);
  });

  it('do not tell which run a run has started from, nor k*', () => {
    const runs = [1, 3].map((main) => ({
      group: 'ours',
      main,
      set: { 'problem.warmStart': `wait,main=${main}`, 'strategy.around': main + 2 },
    }));
    expect(names([{ name: 'ours', warmStart: 'wait', atBestWait: 'strategy.around' }], runs)).toEqual(['TCTS']);
  });

  it('are those of the groups where it would take several keys', () => {
    const runs = [
      ['plain', 0.1, 5],
      ['fast', 0.2, 5],
      ['long', 0.1, 6],
    ].map(([group, rate, steps]) => ({
      group: String(group),
      main: 1,
      set: { 'strategy.learningRate': rate, 'training.steps': steps },
    }));
    expect(names([], runs)).toEqual(['TCTS (fast)', 'TCTS (long)', 'TCTS (plain)']);
  });
});
