import { Random, type RandomState } from '../../random.js';
import { type Problem, requireAbilities } from '../problem.js';
import { stateOnly } from '../snapshots.js';
import type { Strategy } from '../strategy.js';
import { entropyOf } from './distribution.js';
import { sampleRows } from './sampling.js';

/** What a problem with a known answer says is right for each sample: the bound that other strategies are measured by. */
export function oracle<Batch>(problem: Problem<Batch>, seed: Random): Strategy<Batch> {
  const able = requireAbilities(problem, 'oracle', 'oracle');
  const K = problem.tasks.length;
  let random = seed.fork('oracle');
  return {
    name: 'oracle',
    policy: async (batch) => able.oracle(batch),
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
