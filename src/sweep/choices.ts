import { InputError } from '../errors.js';
import { groupBy } from '../metrics/statistics.js';
import { readWaitLoss } from '../run/index.js';
import type { GridConfig } from './grid.js';
import type { Job, Outcome } from './job.js';
import { performanceWithin } from './job.js';
import type { PlannedRun, RunConfig } from './plan.js';
import { type Ledger, WAIT_K_STAR } from './record.js';

export interface SubmitOptions {
  /** The run is a candidate in a choice of settings. Default false. */
  readonly candidate?: boolean;
  /** Verbs after the training. Default those of the job. */
  readonly after?: Job['after'];
  /** Updates after which the run pauses. Default: none. */
  readonly until?: number;
}

/** Executes a run, now or in its turn. */
export type Submit = (run: PlannedRun, options?: SubmitOptions) => Promise<Outcome>;

/** A run and its outcome. */
export interface FinishedRun {
  readonly run: PlannedRun;
  readonly outcome: Outcome;
}

export function wasStopped(runs: readonly FinishedRun[]): boolean {
  return runs.some(({ outcome }) => outcome.state === 'stopped');
}

/**
 * Mean over the finished runs; null if there are none. A run whose score cannot be read has failed and is reported to
 * `fail`; the others count.
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

/** The candidate with the highest score, the first of equals; one without a score, or with NaN, is not chosen. */
export function best<C extends { readonly score: number | null }>(candidates: readonly C[]): C | undefined {
  return candidates.reduce<C | undefined>((leader, candidate) => {
    if (candidate.score === null || Number.isNaN(candidate.score)) return leader;
    return leader === undefined || candidate.score > leader.score! ? candidate : leader;
  }, undefined);
}

/** A round of successive halving. */
export interface Rung {
  /** Episodes that each candidate has been trained for when they are compared. */
  readonly episodes: number;
  /** Candidates that continue. */
  readonly keep: number;
}

/**
 * The rounds of successive halving (Jamieson and Talwalkar, 2016): each lets one in `factor` continue, for `factor` times as
 * long, until one is left or the training is over. That one is then trained to the end.
 *
 * @param first episodes of the first round. Default: such that the last round is at most the whole training
 */
export function rungsOf(candidates: number, episodes: number, factor: number, first?: number): Rung[] {
  let rounds = 0;
  while (factor ** rounds < candidates) rounds++;
  const rungs: Rung[] = [];
  let length = Math.min(episodes, first ?? Math.max(1, Math.floor(episodes / factor ** rounds)));
  for (let left = candidates; left > 1; length = Math.min(episodes, length * factor)) {
    const keep = length === episodes ? 1 : Math.ceil(left / factor);
    rungs.push({ episodes: length, keep });
    left = keep;
  }
  return rungs;
}

/** A candidate of a choice. */
export interface Candidate {
  readonly labels: PlannedRun['labels'];
  readonly runs: readonly FinishedRun[];
  readonly score: number | null;
  /** Its score after each round that it took part in; absent if there are no rounds. */
  readonly rungs?: readonly RungScore[];
}

interface RungScore {
  readonly updates: number;
  readonly score: number | null;
}

/**
 * Successive halving over variants of a setting, by validation only: runs pause before anything that follows a
 * training, and those that continue are resumed. Undefined if the sweep was stopped.
 *
 * @param runUntil runs a variant with all seeds of the choice until it has made this many updates
 * @param fail told about a run whose score cannot be read
 */
export async function halvingSearch<V extends { readonly labels: PlannedRun['labels'] }>(
  variants: readonly V[],
  { episodes, steps }: RunConfig['training'],
  { factor, episodes: first }: { readonly factor: number; readonly episodes?: number },
  runUntil: (variant: V, updates: number) => Promise<FinishedRun[]>,
  fail: (run: PlannedRun, reason: string) => void,
): Promise<(Candidate & { readonly variant: V })[] | undefined> {
  const all = variants.map((variant) => ({ variant, runs: [] as FinishedRun[], rungs: [] as RungScore[] }));
  let left = all;
  for (const { episodes: length, keep } of rungsOf(variants.length, episodes, factor, first)) {
    const updates = length * steps;
    await Promise.all(
      left.map(async (candidate) => {
        candidate.runs = await runUntil(candidate.variant, updates);
      }),
    );
    if (wasStopped(left.flatMap(({ runs }) => runs))) return undefined;
    for (const { runs, rungs } of left) {
      rungs.push({ updates, score: meanScore(runs, ({ job }) => performanceWithin(job.folder, updates), fail) });
    }
    const scored = left.filter(({ rungs }) => !Number.isNaN(lastScore(rungs) ?? Number.NaN));
    // Sorting keeps the order of equals: the first of them continues.
    left = scored.sort((a, b) => lastScore(b.rungs)! - lastScore(a.rungs)!).slice(0, keep);
  }
  return all.map(({ variant, runs, rungs }) => ({
    variant,
    labels: variant.labels,
    runs,
    score: lastScore(rungs),
    rungs,
  }));
}

function lastScore(rungs: readonly RungScore[]): number | null {
  return rungs.at(-1)?.score ?? null;
}

/** The best candidate of the last round or, without rounds, of all. */
export function winnerOf<C extends Candidate>(candidates: readonly C[]): C | undefined {
  const rounds = Math.max(...candidates.map(({ rungs }) => rungs?.length ?? 0));
  return best(candidates.filter(({ rungs }) => (rungs?.length ?? 0) === rounds));
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
  /** Runs that differ only in their seed. */
  const candidates = [...groupBy(measured, ({ run }) => JSON.stringify(run.labels)).values()];
  /** Waits to test each winner with. */
  const tests = new Map<readonly FinishedRun[], number[]>();
  const fail = ({ name }: FinishedRun['run'], reason: string) => ledger.fail(name, reason);
  for (const k of waits) {
    const scored = candidates.map((runs) => ({
      runs,
      labels: runs[0].run.labels,
      score: meanScore(runs, ({ job }) => readWaitLoss({ run: job.folder, split, k }).performance, fail),
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
