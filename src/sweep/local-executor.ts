import type { Executor, Job, JobProgress, Outcome } from './job.js';
import { runJob } from './job.js';

/** How many jobs run at a time on this machine, and how. */
export interface LocalExecutorOptions {
  /** Cores used by all running jobs together; a job that needs more than there are runs alone. */
  readonly cores: number;
  /** What runs a job. Default `runJob`. */
  readonly run?: typeof runJob;
}

interface Waiting {
  readonly job: Job;
  readonly onProgress: (progress: JobProgress) => void;
  readonly settle: (outcome: Outcome | Promise<Outcome>) => void;
}

/** Runs jobs as processes on this machine, in the order in which they are submitted, within a budget of cores. */
export function localExecutor({ cores, run = runJob }: LocalExecutorOptions): Executor {
  const waiting: Waiting[] = [];
  const running = new Set<Promise<Outcome>>();
  const closing = new AbortController();
  const budget = new CoreBudget(cores);

  function startNext(): void {
    while (waiting.length > 0) {
      const [{ job, onProgress, settle }] = waiting;
      if (!budget.fits(job.cores)) return;
      waiting.shift();
      const giveCoresBack = budget.lend(job.cores);
      onProgress({ step: 0, steps: undefined });
      const outcome = run(job, { onProgress, signal: closing.signal });
      running.add(outcome);
      settle(outcome);
      const end = () => {
        giveCoresBack();
        running.delete(outcome);
        // The end of one job is reported before the next begins.
        setImmediate(startNext);
      };
      outcome.then(end, end);
    }
  }

  return {
    submit(job, onProgress) {
      if (closing.signal.aborted) return Promise.resolve({ state: 'stopped' });
      return new Promise((settle) => {
        waiting.push({ job, onProgress, settle });
        startNext();
      });
    },
    async close() {
      closing.abort();
      for (const { settle } of waiting.splice(0)) settle({ state: 'stopped' });
      await Promise.allSettled(running);
    },
  };
}

/** The cores of a machine, lent to jobs. */
export class CoreBudget {
  private readonly lent = new Map<symbol, number>();
  private readonly waiting: (() => void)[] = [];

  constructor(
    private readonly cores: number,
    /** The maximum number of concurrent jobs. */
    private readonly jobs = Number.POSITIVE_INFINITY,
  ) {}

  /** Whether a job may begin. One that needs more cores than there are may, once it is alone. */
  fits(cores: number): boolean {
    return this.lent.size === 0 || (this.lent.size < this.jobs && cores <= this.free);
  }

  /** Lends cores until the returned function is called. */
  lend(cores: number): () => void {
    const key = Symbol();
    this.lent.set(key, cores);
    return () => {
      this.lent.delete(key);
      for (const wake of this.waiting.splice(0)) wake();
    };
  }

  /** Resolves when cores are returned. */
  change(): Promise<void> {
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  private get free(): number {
    return this.cores - [...this.lent.values()].reduce((sum, cores) => sum + cores, 0);
  }
}
