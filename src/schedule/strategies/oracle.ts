import { z } from 'zod';
import { Random, type RandomState } from '../../random.js';
import { type Problem, requireAbilities } from '../problem.js';
import { stateOnly } from '../snapshots.js';
import { describeStrategy, type Strategy } from '../strategy.js';
import { entropyOf, sampleRows } from './distribution.js';

/** What a problem with a known answer declares right for each sample: an upper bound for other strategies. */
export const oracle = describeStrategy({
  name: 'oracle',
  summary: 'The tasks that the problem knows to be right, if its answer is known.',
  role: 'bound',
  sees: 'its answer',
  options: z.strictObject({}),
  create: (_, problem, { random }) => drawnFromAnswer(problem, random.fork('oracle')),
});

function drawnFromAnswer<Batch>(problem: Problem<Batch>, seed: Random): Strategy<Batch> {
  const able = requireAbilities(problem, 'oracle', 'oracle');
  const K = problem.tasks.length;
  let random = seed;
  return {
    name: 'oracle',
    probabilities: async (batch) => able.oracle(batch),
    async choose(batch) {
      const rows = able.oracle(batch);
      const size = problem.sizeOf(batch);
      const tasks = new Int32Array(size);
      sampleRows(rows, random, tasks);
      let entropy = 0;
      for (let i = 0; i < size; i++) entropy += entropyOf([...rows.subarray(i * K, (i + 1) * K)]) / size;
      return { kind: 'sampled', tasks, weights: new Float32Array(size).fill(1), entropy };
    },
    endEpisode: async () => ({}),
    capture: () => stateOnly(random.state()),
    restore: ({ state }) => {
      random = Random.restore(state as RandomState);
    },
  };
}

/**
 * The oracle of a problem in which some tasks are corrupted for some samples, [size, K]. For clean samples: half the
 * main task, half the others equally, which is no worse than either alone on the problems here. Otherwise: the
 * remaining tasks equally.
 */
export function oracleRows(
  size: number,
  K: number,
  main: number,
  isSpoilt: (sample: number, task: number) => boolean,
): Float32Array {
  const rows = new Float32Array(size * K);
  for (let i = 0; i < size; i++) {
    const left = Array.from({ length: K }, (_, task) => task).filter((task) => !isSpoilt(i, task));
    if (left.length === 0) throw new RangeError(`every task of sample ${i} is corrupted`);
    for (const task of left) {
      const clean = task === main ? 0.5 : 0.5 / (K - 1);
      rows[i * K + task] = left.length < K || K === 1 ? 1 / left.length : clean;
    }
  }
  return rows;
}
