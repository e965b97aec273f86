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

/** Mean over the runs that are done; null if there is none. */
export function meanScore(runs: readonly FinishedRun[], scoreOf: (run: PlannedRun) => number): number | null {
  const scores = runs.filter(({ outcome }) => outcome.state === 'done').map(({ run }) => scoreOf(run));
  return scores.length === 0 ? null : scores.reduce((sum, score) => sum + score, 0) / scores.length;
}
