import { z } from 'zod';
import type { Snapshot } from '../../run/index.js';
import { type Problem, type Status, taskIndex } from '../problem.js';
import { copySnapshot, joinSnapshots, partOf, stateOnly } from '../snapshots.js';
import { describeStrategy, type Strategy, taskKey } from '../strategy.js';
import { oneHotDistribution, repeated } from './distribution.js';

/**
 * Wait-k*: several models in sequence, each trained on one task from the same start and on the same batches. The
 * state of the model that validated best on the main task is the result.
 */
class BestFixed<Batch> implements Strategy<Batch> {
  readonly name = 'best-fixed';
  readonly passes: number;
  private readonly candidates: readonly number[];
  private pass = 0;
  private start: Snapshot | undefined;
  private best: { performance: number; task: number; model: Snapshot } | undefined;

  constructor(
    private readonly problem: Problem<Batch>,
    tasks: readonly (string | number)[] | null,
  ) {
    const wanted = tasks?.map((task) => taskIndex(problem.tasks, task, 'strategy.tasks'));
    this.candidates = wanted ?? problem.tasks.map((_, i) => i);
    this.passes = this.candidates.length;
  }

  async probabilities(batch: Batch): Promise<Float32Array> {
    return repeated(
      oneHotDistribution(this.candidates[this.pass], this.problem.tasks.length),
      this.problem.sizeOf(batch),
    );
  }

  async beginEpisode({ update, updates }: Status): Promise<void> {
    if (this.start === undefined) {
      await this.problem.settle?.();
      this.start = copySnapshot(this.problem.capture());
    }
    const pass = Math.floor(((update - 1) * this.passes) / updates);
    if (pass !== this.pass) this.problem.restore(copySnapshot(this.start));
    this.pass = pass;
  }

  async choose(batch: Batch) {
    const size = this.problem.sizeOf(batch);
    return {
      kind: 'sampled',
      tasks: new Int32Array(size).fill(this.candidates[this.pass]),
      weights: new Float32Array(size).fill(1),
      entropy: 0,
    } as const;
  }

  async endEpisode(performance: number, { update, updates }: Status) {
    if (this.best === undefined || performance > this.best.performance) {
      await this.problem.settle?.();
      this.best = { performance, task: this.candidates[this.pass], model: copySnapshot(this.problem.capture()) };
    }
    if (update === updates) this.problem.restore(copySnapshot(this.best.model));
    return {};
  }

  capture(): Snapshot {
    const none = stateOnly(null);
    const best = this.best && { performance: this.best.performance, task: this.best.task };
    return joinSnapshots({
      own: stateOnly({ pass: this.pass, best }),
      start: this.start ?? none,
      best: this.best?.model ?? none,
    });
  }

  restore(snapshot: Snapshot): void {
    const { pass, best } = partOf(snapshot, 'own').state as {
      pass: number;
      best?: { performance: number; task: number };
    };
    const start = partOf(snapshot, 'start');
    this.pass = pass;
    this.start = start.state === null ? undefined : copySnapshot(start);
    this.best = best && { ...best, model: copySnapshot(partOf(snapshot, 'best')) };
  }
}

export const bestFixed = describeStrategy({
  name: 'best-fixed',
  summary: 'One model for each task; the best on the main task wins.',
  title: 'best single task',
  titles: { translation: 'wait-k*' },
  role: 'baseline',
  extraCost: 'K trainings',
  singleTask: true,
  severalModels: true,
  options: z.strictObject({
    tasks: z.array(taskKey).min(1).nullable().default(null).describe('Names or numbers of the candidates; null: all.'),
  }),
  create: ({ tasks }, problem) => new BestFixed(problem, tasks),
});
