import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InputError } from '../errors.js';
import { groupBy } from '../metrics/statistics.js';
import { kindOf } from '../problems/index.js';
import { readMetrics, resolvedYaml, timingsFile } from '../run/index.js';
import { strategyNamed } from '../schedule/index.js';
import { runJob } from './job.js';
import type { PlannedRun } from './plan.js';

/** How an estimate is made. */
export interface EstimateOptions {
  /** Cores used by all runs together. */
  readonly cores: number;
  readonly signal?: AbortSignal;
  /** Called with the run before each trial. */
  readonly onTrial?: (run: PlannedRun) => void;
  /** What runs a job. Default `runJob`. */
  readonly run?: typeof runJob;
}

/** How long the runs of a sweep are expected to take. */
export interface Estimate {
  /**
   * Seconds until all are trained, without evaluations. Undefined if a trial made no update in its time. If runs
   * may stop early it is an upper bound.
   */
  readonly seconds: number | undefined;
  /** Runs that were timed. */
  readonly trials: number;
}

/**
 * Estimates how long the trainings will take: one run of each kind is trained for some seconds in a temporary folder.
 * Runs are of one kind if they have the same problem, model and batches, and a strategy that costs the same.
 */
export async function estimate(runs: readonly PlannedRun[], options: EstimateOptions): Promise<Estimate> {
  const kinds = groupBy(runs, costOf);
  let coreSeconds: number | undefined = 0;
  let longest = 0;
  for (const members of kinds.values()) {
    if (options.signal?.aborted) break;
    options.onTrial?.(members[0]);
    const speed = await tryOut(members[0], options);
    for (const { job, config } of members) {
      const { episodes, steps } = config.training;
      if (speed === undefined || coreSeconds === undefined) {
        coreSeconds = undefined;
        continue;
      }
      const seconds = speed.start + episodes * (steps * speed.update + speed.validation);
      coreSeconds += seconds * Math.min(job.cores, options.cores);
      longest = Math.max(longest, seconds);
    }
  }
  const seconds = coreSeconds === undefined ? undefined : Math.max(longest, coreSeconds / options.cores);
  return { seconds, trials: kinds.size };
}

/** Seconds that parts of a run take. */
interface Speed {
  /** From the start of the process to that of the training. */
  readonly start: number;
  readonly update: number;
  readonly validation: number;
}

async function tryOut(
  { job, config }: PlannedRun,
  { signal: outer, run = runJob }: EstimateOptions,
): Promise<Speed | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'tcts-trial-'));
  const enough = new AbortController();
  const limit = setTimeout(() => enough.abort(), 1000 * MOST_SECONDS);
  const signal = outer === undefined ? enough.signal : AbortSignal.any([enough.signal, outer]);
  try {
    const trial = { ...config, logging: { everySteps: 1, tensorboard: false, progressSeconds: 10 } };
    const began = performance.now();
    let soon: NodeJS.Timeout | undefined;
    const onProgress = () => {
      soon ??= setTimeout(() => enough.abort(), 1000 * TRIAL_SECONDS);
    };
    const tried = { ...job, folder: join(folder, 'run'), config: resolvedYaml(trial), after: [] };
    const outcome = await run(tried, { onProgress, signal });
    clearTimeout(soon);
    // Anything wrong with it is wrong with the runs to come.
    if (outcome.state === 'failed') throw new InputError(`a trial of ${job.name} failed: ${outcome.reason}`);
    return speedOf(
      timingsFile(tried.folder),
      (performance.now() - began) / 1000,
      isTimedByProcessor(job.cores, config),
    );
  } finally {
    clearTimeout(limit);
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Whether a run takes as long as its processor time on its own core, so that a trial can ignore what else the
 * machine does: not with several cores, some of which wait for others, nor on a device.
 */
function isTimedByProcessor(cores: number, { device = 'cpu' }: PlannedRun['config']): boolean {
  return cores === 1 && device === 'cpu';
}

interface Timing {
  readonly step: number;
  readonly seconds: number;
  readonly processor?: number;
}

/** The first line of the log comes after the validation of the untrained model and one update. */
function speedOf(timings: string, total: number, byProcessor: boolean): Speed | undefined {
  const times = (existsSync(timings) ? readMetrics(timings) : []) as unknown as Timing[];
  const timeOf = ({ seconds, processor = seconds }: Timing): number => (byProcessor ? processor : seconds);
  const gaps = times.slice(1).flatMap((one, i) => (one.step > times[i].step ? [timeOf(one) - timeOf(times[i])] : []));
  if (gaps.length === 0) return undefined;
  const update = gaps.sort((a, b) => a - b)[gaps.length >> 1];
  return {
    start: Math.max(0, total - times.at(-1)!.seconds),
    update,
    validation: Math.max(0, timeOf(times[0]) - update),
  };
}

/** The same for runs whose updates take equally long. */
function costOf({ config }: PlannedRun): string {
  const ignored = new Set([...WITHOUT_COST, ...(kindOf(config.problem)?.withoutCost ?? [])]);
  const costs = JSON.stringify(config.problem, (key, value) => (ignored.has(key) ? undefined : value));
  const { name } = config.strategy;
  const strategy = strategyNamed(name)?.extraCost === undefined ? '' : name;
  return JSON.stringify([costs, strategy, config.threads, config.workers]);
}

/** Keys of every problem, at any depth, that do not change how long an update takes. */
const WITHOUT_COST = ['main', 'learning', 'learningRate', 'warmStart'] as const;

/** How long a trial continues after its first update, and how long it may take altogether. */
const TRIAL_SECONDS = 3;
const MOST_SECONDS = 90;
