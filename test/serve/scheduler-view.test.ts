import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createRun, saveCheckpoint } from '../../src/run/index.js';
import { RunReports } from '../../src/serve/run-report.js';
import type { SchedulerView } from '../../src/serve/scheduler-view.js';
import { temporaryFolder } from '../run/temporary.js';

/** A run of `learned` whose scheduler has one hidden unit, h = tanh(z), and the logits (h, −h). */
function schedulerRun({ strategy = 'learned', count = 100, saved = true } = {}): string {
  const config = {
    problem: { kind: 'translation' },
    strategy: { name: strategy, activation: 'tanh', without: ['training', 'validation', 'step'] },
  };
  const run = createRun(join(temporaryFolder(), 'run'), { config, seed: 1, command: ['tcts'] });
  const record = { step: 7, episode: 1, performance: -1, distribution: { 'wait-1': 0.5, 'wait-3': 0.5 } };
  writeFileSync(join(run.path, 'metrics.jsonl'), `${JSON.stringify(record)}\n`);
  const tensor = (shape: number[], ...values: number[]) =>
    ({ dtype: 'F32', shape, data: Float32Array.from(values) }) as const;
  // Only the first of the two features, the source length, counts. Mean 1, standard deviation 0.25; the second, mean 4,
  // has never changed.
  const scale = { count, means: [1, 4], squares: [count * 0.0625, 0], varied: [true, false] };
  const tensors = new Map([
    ['strategy/policy/0.weight', tensor([1, 2], 1, 0)],
    ['strategy/policy/0.bias', tensor([1], 0)],
    ['strategy/policy/1.weight', tensor([2, 1], 1, -1)],
    ['strategy/policy/1.bias', tensor([2], 0, 0)],
  ]);
  const state = { subject: { strategy: { own: { scale } } } };
  if (saved) saveCheckpoint(join(run.path, 'checkpoints'), { step: 7, tensors, state });
  run.lock.release();
  return run.path;
}

describe('what a scheduler prefers', () => {
  it('is its distribution over the tasks along each feature that has changed', async () => {
    const view = (await new RunReports().scheduler(schedulerRun())) as SchedulerView;
    expect(view).toMatchObject({ step: 7, tasks: ['wait-1', 'wait-3'], others: 0 });
    expect(view.features.map(({ name }) => name)).toEqual(['source length / mean']);
    const [{ values, shares }] = view.features;
    // Two standard deviations around the mean.
    expect([values[0], values[10], values[20]]).toEqual([0.5, 1, 1.5]);
    for (const [i, value] of values.entries()) {
      // softmax(h, −h) = 1 / (1 + exp(−2h)) with h = tanh((x − 1) / 0.25)
      const expected = 1 / (1 + Math.exp(-2 * Math.tanh((value - 1) / 0.25)));
      expect(shares[i][0]).toBeCloseTo(expected, 12);
      expect(shares[i][0] + shares[i][1]).toBeCloseTo(1, 12);
    }
  });

  it.each([
    [{ strategy: 'mtl' }, 'the strategy mtl has no scheduler that depends on features'],
    [{ saved: false }, 'there is no checkpoint yet: this appears once one is saved'],
    [{ count: 0 }, 'the scheduler has not learned anything yet'],
  ])('is a reason where there is none: %j', async (options, reason) => {
    expect(await new RunReports().scheduler(schedulerRun(options))).toEqual({ reason });
  });
});
