import { join } from 'node:path';
import { makeFolder } from '../files.js';
import { acquireLock, type Lock, readBestPerformance } from '../run/index.js';
import {
  type BestWaits,
  type Candidate,
  type FinishedRun,
  findBestWaits,
  halvingSearch,
  meanScore,
  type Submit,
  wasStopped,
  winnerOf,
} from './choices.js';
import type { Executor, Job, JobProgress, Outcome } from './job.js';
import { isDone } from './job.js';
import {
  canStart,
  type Plan,
  type PlannedGroup,
  type PlannedRun,
  type PlannedSetting,
  type PlannedVariant,
  plannedRuns,
  WARM_START,
} from './plan.js';
import type { RunRecord, SweepRecord } from './record.js';
import { Ledger } from './record.js';

/** Where the runs of a sweep are done, and how it is stopped and watched. */
export interface SweepOptions {
  /** Where the runs are done. It is closed at the end. */
  readonly executor: Executor;
  /** Fires to stop: running jobs save their state, and no further ones begin. */
  readonly signal?: AbortSignal;
  /** Called whenever the state of a run changes, or it has got further. */
  readonly onChange?: (run: RunRecord, progress?: JobProgress) => void;
}

/**
 * Does what is left of a plan and returns what became of every run; a run that fails does not stop the others. Steps
 * that depend on other runs begin when those have ended. One sweep at a time may work in a folder.
 */
export async function runSweep(plan: Plan, { executor, signal, onChange }: SweepOptions): Promise<SweepRecord> {
  let closed: Promise<void> | undefined;
  const close = () => {
    closed ??= executor.close();
    return closed;
  };
  let lock: Lock | undefined;
  try {
    lock = lockFolder(plan.folder);
    signal?.addEventListener('abort', close, { once: true });
    const ledger = new Ledger(plan, onChange);
    for (const { run, candidate } of plannedRuns(plan)) ledger.enter(run, candidate);
    await runGroups(plan, ledger, async (run, { candidate = false, after = run.job.after, until } = {}) => {
      ledger.enter(run, candidate, until);
      const onProgress = (progress: JobProgress) => ledger.begin(run.name, progress);
      const job = { ...run.job, after, ...(until !== undefined && { until }) };
      const outcome = await settle(job, executor, signal, onProgress);
      ledger.end(run.name, outcome);
      return outcome;
    });
    return ledger.close();
  } finally {
    signal?.removeEventListener('abort', close);
    // Nothing may continue in a folder that this sweep no longer holds.
    await close();
    lock?.release();
  }
}

function lockFolder(folder: string): Lock {
  makeFolder(folder);
  return acquireLock(join(folder, 'sweep.lock'));
}

async function runGroups(plan: Plan, ledger: Ledger, submit: Submit): Promise<void> {
  const groups = new Map<string, Promise<FinishedRun[]>>();
  let bestWaits: Promise<BestWaits> = Promise.resolve(new Map());
  const { waitKStar } = plan;
  const all = plan.groups.map((group) => {
    const ready = Promise.all([
      group.atBestWait === undefined ? new Map() : bestWaits,
      group.warmStart === undefined ? [] : groups.get(group.warmStart)!,
    ]);
    const finished = isFree(group)
      ? runGroup(group, submit, ledger, () => undefined)
      : ready.then(([waits, starts]) => runGroup(group, submit, ledger, (run) => fillings(group, run, waits, starts)));
    groups.set(group.name, finished);
    if (waitKStar?.among === group.name) {
      bestWaits = finished.then((runs) => findBestWaits(waitKStar, runs, submit, ledger));
    }
    return finished;
  });
  await Promise.all([...all, bestWaits]);
}

/** Finds a job done, runs it, or rejects it because its folder holds something else. */
export async function settle(
  job: Job,
  executor: Executor,
  signal: AbortSignal | undefined,
  onProgress: (progress: JobProgress) => void,
): Promise<Outcome> {
  try {
    if (isDone(job)) return { state: 'done' };
    return signal?.aborted ? STOPPED : await executor.submit(job, onProgress);
  } catch (error) {
    return { state: 'failed', reason: (error as Error).message };
  }
}

/** Values of keys that were unknown until now, if there are any; or why they are still unknown. */
type Fill = (run: PlannedRun) => Readonly<Record<string, unknown>> | string | undefined;

function fillings(
  { atBestWait, warmStart }: PlannedGroup,
  { seed, config }: PlannedRun,
  waits: BestWaits,
  starts: readonly FinishedRun[],
): ReturnType<Fill> {
  const filled: Record<string, unknown> = {};
  const { main } = config.problem;
  if (atBestWait !== undefined) {
    const wait = main === undefined ? undefined : waits.get(main);
    if (wait === undefined) return `there is no k* for the main task ${main}`;
    filled[atBestWait] = wait;
  }
  if (warmStart !== undefined) {
    const start = starts.find(({ run }) => run.seed === seed && canStart(run.config, config));
    if (start?.outcome.state !== 'done') return `there is no finished run of ${warmStart} to start from`;
    filled[WARM_START] = start.run.job.folder;
  }
  return filled;
}

async function runGroup(group: PlannedGroup, submit: Submit, ledger: Ledger, fill: Fill): Promise<FinishedRun[]> {
  const runs = await Promise.all(group.settings.map((setting) => runSetting(group, setting, submit, ledger, fill)));
  return runs.flat();
}

/** A combination of the grid with all seeds, after its variant has been chosen. */
async function runSetting(
  group: PlannedGroup,
  setting: PlannedSetting,
  submit: Submit,
  ledger: Ledger,
  fill: Fill,
): Promise<FinishedRun[]> {
  const runWith = async (variant: PlannedVariant, seed: number, candidate: boolean, until?: number) => {
    const filled = fill(variant.run(seed));
    const run = variant.run(seed, typeof filled === 'string' ? undefined : filled);
    if (typeof filled !== 'string') {
      // Verbs follow the training of a result, not that of a candidate.
      return { run, outcome: await submit(run, candidate ? { candidate, after: [], until } : {}) };
    }
    const outcome: Outcome = ledger.stopped ? STOPPED : { state: 'failed', reason: filled };
    ledger.enter(run, candidate);
    ledger.end(run.name, outcome);
    return { run, outcome };
  };

  let [chosen] = setting.variants;
  if (setting.variants.length > 1) {
    const fail = ({ name }: PlannedRun, reason: string) => ledger.fail(name, reason);
    const runAll = (variant: PlannedVariant, until?: number) =>
      Promise.all(group.selectSeeds.map((seed) => runWith(variant, seed, true, until)));
    const { training } = chosen.run(group.selectSeeds[0]).config;
    const scored =
      group.halving === undefined
        ? await trainAll(setting.variants, runAll, fail)
        : await halvingSearch(setting.variants, training, group.halving, runAll, fail);
    if (scored === undefined) return [];
    const winner = winnerOf(scored);
    ledger.choose({ step: group.name, for: setting.labels, candidates: scored, chosen: winner?.labels ?? null });
    // Every candidate has been reported as failed already.
    if (winner === undefined) return [];
    chosen = winner.variant;
  }
  return Promise.all(group.seeds.map((seed) => runWith(chosen, seed, false)));
}

/** Trains every variant to its end; undefined if the sweep was stopped. */
async function trainAll(
  variants: readonly PlannedVariant[],
  runAll: (variant: PlannedVariant) => Promise<FinishedRun[]>,
  fail: (run: PlannedRun, reason: string) => void,
): Promise<(Candidate & { readonly variant: PlannedVariant })[] | undefined> {
  const candidates = await Promise.all(variants.map(async (variant) => ({ variant, runs: await runAll(variant) })));
  if (wasStopped(candidates.flatMap(({ runs }) => runs))) return undefined;
  return candidates.map(({ variant, runs }) => ({
    variant,
    labels: variant.labels,
    runs,
    score: meanScore(runs, ({ job }) => readBestPerformance(job.folder), fail),
  }));
}

const STOPPED: Outcome = { state: 'stopped' };

/** Whether a group can begin at once. */
function isFree({ atBestWait, warmStart }: PlannedGroup): boolean {
  return atBestWait === undefined && warmStart === undefined;
}
