import { InputError } from '../errors.js';
import { groupBy } from '../groups.js';
import { readWaitPerformance } from '../run/index.js';
import type { GridConfig } from './grid.js';
import type { Job, Outcome } from './job.js';
import type { PlannedRun, RunConfig } from './plan.js';
import { type Ledger, WAIT_K_STAR } from './record.js';

export interface SubmitOptions {
  /** The run is made to choose settings by. Default false. */
  readonly candidate?: boolean;
  /** Verbs after the training. Default those of the job. */
  readonly after?: Job['after'];
}

/** Runs a run, now or when it is its turn. */
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
 * `fail` is told; the others count.
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

/** The candidate with the highest score, the first of equals; one that has no score, or NaN, is not chosen. */
export function best<C extends { readonly score: number | null }>(candidates: readonly C[]): C | undefined {
  return candidates.reduce<C | undefined>((leader, candidate) => {
    if (candidate.score === null || Number.isNaN(candidate.score)) return leader;
    return leader === undefined || candidate.score > leader.score! ? candidate : leader;
  }, undefined);
}

/** k* by k. */
export type BestWaits = ReadonlyMap<number, number>;

/**
 * The paper's wait-k* (section 3.4): of models that were each trained on a wait m, the one with the best
 * validation performance on wait-k, which is minus the loss (section 3.3), is tested under wait-k. The mean over seeds
 * decides.
 */
export async function findBestWaits(
  { for: waits, split, beam }: NonNullable<GridConfig['waitKStar']>,
  runs: readonly FinishedRun[],
  submit: Submit,
  ledger: Ledger,
): Promise<BestWaits> {
  const chosen = new Map<number, number>();
  if (wasStopped(runs)) return chosen;
  const trained = runs.filter(({ outcome }) => outcome.state === 'done').map(({ run }) => run);
  const evaluate = (run: FinishedRun['run'], ks: readonly number[], ...flags: string[]) => {
    const verb = ['evaluate', '--k', ks.join(','), ...flags, '--threads', String(run.job.cores)];
    return submit(run, { after: [...run.job.after, verb] });
  };

  const measured: FinishedRun[] = await Promise.all(
    trained.map(async (run) => ({ run, outcome: await evaluate(run, waits, '--loss', '--split', split) })),
  );
  if (wasStopped(measured)) return chosen;
  /** Runs that differ in their seed alone, together. */
  const candidates = [...groupBy(measured, ({ run }) => JSON.stringify(run.labels)).values()];
  /** Waits to test each winner with. */
  const tests = new Map<readonly FinishedRun[], number[]>();
  const fail = ({ name }: FinishedRun['run'], reason: string) => ledger.fail(name, reason);
  for (const k of waits) {
    const scored = candidates.map((runs) => ({
      runs,
      labels: runs[0].run.labels,
      score: meanScore(runs, ({ job }) => readWaitPerformance(job.folder, split, k), fail),
    }));
    const winner = best(scored);
    ledger.choose({ step: WAIT_K_STAR, for: { main: String(k) }, candidates: scored, chosen: winner?.labels ?? null });
    if (winner === undefined) continue;
    chosen.set(k, waitOf(winner.runs[0].run.config));
    tests.set(winner.runs, [...(tests.get(winner.runs) ?? []), k]);
  }
  await Promise.all(
    [...tests].flatMap(([winners, ks]) => winners.map(({ run }) => evaluate(run, ks, '--beam', String(beam)))),
  );
  return chosen;
}

/** The wait that a model was trained on. */
function waitOf({ strategy, problem }: RunConfig): number {
  return typeof strategy.task === 'number' ? strategy.task : problem.main!;
}
