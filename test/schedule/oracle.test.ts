import { describe, expect, test } from 'vitest';
import { Random } from '../../src/random.js';
import { contextual, knownAnswer, oracleRows } from '../../src/schedule/index.js';
import { advance, start, strategyConfig } from './trainings.js';

describe('the answer', () => {
  test('of the made-up problems is the task whose labels are right and without noise', () => {
    const known = knownAnswer(new Random(1));
    const rows = known.oracle!(known.nextBatch());
    // Tasks: clean, main, off-60, off-120, off-180.
    expect([...rows.subarray(0, 10)]).toEqual([1, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
    const problem = contextual(new Random(1));
    const batch = problem.nextBatch();
    const answers = problem.oracle!(batch);
    // Tasks: main, even, odd.
    batch.kinds.forEach((kind, i) => {
      expect([...answers.subarray(3 * i, 3 * i + 3)]).toEqual(kind === 0 ? [0, 1, 0] : [0, 0, 1]);
    });
  });

  test('leaves the spoilt tasks out, and takes half the main task where none is', () => {
    const rows = oracleRows(3, 3, 1, (i, task) => (i === 1 && task === 1) || (i === 2 && task < 2));
    expect([...rows]).toEqual([0.25, 0.5, 0.25, 0.5, 0, 0.5, 0, 0, 1]);
    expect([...oracleRows(1, 1, 0, () => false)]).toEqual([1]);
    expect(() => oracleRows(1, 2, 0, () => true)).toThrow('every task of sample 0 is corrupted');
  });
});

test.each(['knownAnswer', 'contextual'] as const)(
  'the oracle is ahead of the main task and of all alike on %s',
  async (problem) => {
    const extent = { episodes: 20, steps: 20 };
    const loss = async (name: string) => {
      const subject = await start(strategyConfig({ name }), 1, problem);
      await advance(subject, extent);
      return (await subject.problem.test!()).loss;
    };
    const [oracle, fixed, mtl] = [await loss('oracle'), await loss('fixed'), await loss('mtl')];
    // The noise of the test labels alone is ½ · .3² = .045.
    expect(oracle).toBeLessThan(0.06);
    expect(oracle).toBeLessThan(0.5 * Math.min(fixed, mtl));
  },
);
