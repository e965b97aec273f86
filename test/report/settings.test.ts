import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { findRuns } from '../../src/report/runs.js';
import { type DataSet, groupRuns, labelsOf, mainsOf } from '../../src/report/settings.js';
import { comparisons, requireKnown } from '../../src/report/view.js';
import { temporaryFolder } from '../run/temporary.js';
import { type MadeRun, makeForecastRun, makeOtherRun, makeTranslation } from './run-folders.js';

/** The data sets of synthetic runs of a forecast. */
function forecasts(...runs: MadeRun[]): DataSet[] {
  const folder = temporaryFolder();
  for (const [i, run] of runs.entries()) makeForecastRun(join(folder, `run-${i}`), run);
  return groupRuns(findRuns(folder).runs);
}

describe('grouping', () => {
  it('puts runs that differ in their seed, name or number of threads together', () => {
    const [data] = forecasts(
      { strategy: 'mtl', seed: 2, set: { threads: 2 } },
      { strategy: 'mtl', seed: 1 },
      { strategy: 'mtl', seed: 10, set: { 'problem.test': false } },
    );
    expect(data.settings).toHaveLength(1);
    expect(data.settings[0].runs.map(({ info }) => info.seed)).toEqual([1, 2, 10]);
  });

  it('tells strategies, sets of tasks, models and main tasks apart, in the order of the paper', () => {
    const [data, ...others] = forecasts(
      { strategy: 'learned', seed: 1, set: { 'problem.tasks': 5 } },
      { strategy: 'learned', seed: 1, main: 2 },
      { strategy: 'learned', seed: 1 },
      { strategy: 'curriculum', seed: 1 },
      { strategy: 'mtl', seed: 1 },
      { strategy: 'fixed', seed: 1, set: { 'problem.model': { name: 'mlp', layers: 3 } } },
      { strategy: 'fixed', seed: 1 },
    );
    expect(others).toEqual([]);
    expect(labelsOf(data)).toEqual(['GRU', 'MLP', 'CL (3 tasks)', 'MTL (3 tasks)', 'TCTS (3 tasks)', 'TCTS (5 tasks)']);
    expect(mainsOf(data)).toEqual([1, 2]);
  });

  it('adds to a name what it takes to tell settings apart, and no more', () => {
    const [data] = forecasts(
      { strategy: 'learned', seed: 1, set: { 'strategy.learningRate': 0.01, 'training.steps': 5 } },
      { strategy: 'learned', seed: 1, set: { 'strategy.learningRate': 0.02, 'training.steps': 5 } },
      { strategy: 'mtl', seed: 1 },
    );
    expect(labelsOf(data)).toEqual([
      'MTL (3 tasks)',
      'TCTS (3 tasks, learningRate 0.01)',
      'TCTS (3 tasks, learningRate 0.02)',
    ]);
  });

  it('takes the fewest keys that tell settings apart', () => {
    const set = (chosen: string, weight: number, steps: number) => ({
      'problem.chosen': chosen,
      'problem.auxiliaryWeight': weight,
      'training.steps': steps,
    });
    const [data] = forecasts(
      { strategy: 'learned', seed: 1, set: set('add', 0.25, 50) },
      { strategy: 'learned', seed: 1, set: set('add', 1, 250) },
      { strategy: 'learned', seed: 1, set: set('all', 1, 50) },
    );
    expect(labelsOf(data)).toEqual([
      'TCTS (3 tasks, chosen add, auxiliaryWeight 0.25)',
      'TCTS (3 tasks, chosen add, auxiliaryWeight 1)',
      'TCTS (3 tasks, chosen all, auxiliaryWeight 1)',
    ]);
  });

  it('names an ablation by what it lacks and the whole scheduler by nothing', () => {
    const [data] = forecasts(
      { strategy: 'learned', seed: 1, set: { 'strategy.without': ['loss', 'labels'] } },
      { strategy: 'learned', seed: 1 },
    );
    expect(labelsOf(data)).toEqual(['TCTS (3 tasks)', 'TCTS (3 tasks, without loss labels)']);
  });

  it('keeps runs together that each start from a run of their own seed', () => {
    const [data] = forecasts(
      ...[1, 2, 12].map((seed) => ({ strategy: 'mtl', seed, set: { 'problem.warmStart': `runs/gru-s${seed}` } })),
    );
    expect(data.settings).toHaveLength(1);
  });

  it('keeps other data apart, even under the same name', () => {
    const sets = forecasts(
      { strategy: 'mtl', seed: 1 },
      { strategy: 'mtl', seed: 1, set: { 'problem.data.path': 'elsewhere/cn_data' } },
    );
    expect(sets.map(({ title }) => title)).toEqual(['csi300', 'csi300 (2)']);
  });

  it('calls translation by the words of the paper', () => {
    const folder = temporaryFolder();
    for (const strategy of ['learned', 'fixed', 'best-fixed']) {
      makeTranslation(join(folder, strategy), { strategy, seed: 1, waits: [] });
    }
    const [data] = groupRuns(findRuns(folder).runs);
    expect(data.title).toBe('multi30k');
    expect(labelsOf(data)).toEqual(['wait-k', 'wait-k*', 'TCTS']);
  });

  it('takes a problem without data and main task as well', () => {
    const folder = temporaryFolder();
    makeOtherRun(join(folder, 'a'), { strategy: 'fixed', seed: 1 });
    const [data] = groupRuns(findRuns(folder).runs);
    expect(data).toMatchObject({ kind: 'known-answer', title: 'known-answer' });
    expect(mainsOf(data)).toEqual([undefined]);
  });
});

describe('comparisons', () => {
  const named = (sets: DataSet[], baselines: string[]) =>
    comparisons(sets[0], baselines).map(({ candidate, baseline }) => [candidate.label, baseline.label, candidate.main]);

  it('are of the best method on validation data with every baseline, for each main task', () => {
    const sets = forecasts(
      ...[1, 2].flatMap((main) => [
        { strategy: 'fixed', seed: 1, main, performance: -0.1 },
        { strategy: 'mtl', seed: 1, main, performance: -1 },
        { strategy: 'curriculum', seed: 1, main, performance: main === 1 ? -0.4 : -0.6 },
        { strategy: 'learned', seed: 1, main, performance: -0.5 },
      ]),
    );
    expect(named(sets, ['fixed', 'mtl'])).toEqual([
      ['CL (3 tasks)', 'GRU', 1],
      ['CL (3 tasks)', 'MTL (3 tasks)', 1],
      ['TCTS (3 tasks)', 'GRU', 2],
      ['TCTS (3 tasks)', 'MTL (3 tasks)', 2],
    ]);
    expect(named(sets, ['MTL (3 tasks)'])).toContainEqual(['GRU', 'MTL (3 tasks)', 1]);
  });

  it('take the baseline whose configuration is nearest', () => {
    const sets = forecasts(
      { strategy: 'fixed', seed: 1, set: { 'problem.model': { name: 'mlp' } }, performance: 0 },
      { strategy: 'fixed', seed: 1 },
      { strategy: 'learned', seed: 1 },
    );
    expect(named(sets, ['fixed'])).toEqual([['TCTS (3 tasks)', 'GRU', 1]]);
  });

  it('are of the last baseline with the others where there are only baselines', () => {
    const sets = forecasts({ strategy: 'fixed', seed: 1, performance: 0 }, { strategy: 'mtl', seed: 1 });
    expect(named(sets, ['fixed', 'mtl'])).toEqual([['MTL (3 tasks)', 'GRU', 1]]);
    expect(named(forecasts({ strategy: 'fixed', seed: 1 }), ['fixed', 'mtl'])).toEqual([]);
  });

  it('refuse a baseline that is not there', () => {
    const sets = forecasts({ strategy: 'fixed', seed: 1 });
    expect(() => requireKnown(sets, ['fixed', 'gru'])).not.toThrow();
    expect(() => requireKnown(sets, ['mlt'])).toThrow(
      '--baseline: there is no strategy or method "mlt" among the runs',
    );
  });
});
