import { groupBy } from '../groups.js';
import type { GridConfig } from './grid.js';
import type { Ledger } from './ledger.js';
import type { TrainingConfig } from './plan.js';
import { WAIT_K_STAR } from './record.js';
import { best, waitPerformance } from './scores.js';
import { type FinishedRun, meanScore, type Submit, wasStopped } from './submission.js';

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
      score: meanScore(runs, ({ job }) => waitPerformance(job.folder, split, k), fail),
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
function waitOf({ strategy, problem }: TrainingConfig): number {
  return typeof strategy.task === 'number' ? strategy.task : problem.main!;
}
