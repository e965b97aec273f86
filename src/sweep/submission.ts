import { InputError } from '../errors.js';
import type { Job, Outcome } from './job.js';
import type { PlannedRun } from './plan.js';

export interface SubmitOptions {
  /** The run is made to choose settings by. Default false. */
  readonly candidate?: boolean;
  /** Verbs after the training. Default those of the job. */
  readonly after?: Job['after'];
}

/** Has a run done, now or when it is its turn. */
export type Submit = (run: PlannedRun, options?: SubmitOptions) => Promise<Outcome>;

/** A run and what became of it. */
export interface FinishedRun {
  readonly run: PlannedRun;
  readonly outcome: Outcome;
}

export function wasStopped(runs: readonly FinishedRun[]): boolean {
  return runs.some(({ outcome }) => outcome.state === 'stopped');
}

/**
 * Mean over the runs that are done; null if there is none. One whose score cannot be read has failed, which is what
 * `fail` is told; the others go on.
 */
export function meanScore(
  runs: readonly FinishedRun[],
  scoreOf: (run: PlannedRun) => number,
  fail: (run: PlannedRun, reason: string) => void,
): number | null {
  const scores = runs.flatMap(({ run, outcome }) => {
    if (outcome.state !== 'done') return [];
    try {
      return [scoreOf(run)];
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      fail(run, error.message);
      return [];
    }
  });
  return scores.length === 0 ? null : scores.reduce((sum, score) => sum + score, 0) / scores.length;
}
