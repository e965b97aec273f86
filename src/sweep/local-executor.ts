import type { Executor, Job, JobProgress, Outcome } from './job.js';
import { runJob } from './run-job.js';

export interface LocalExecutorOptions {
  /** Cores that the running jobs keep busy together; a job that needs more than there are runs alone. */
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
  let free = cores;

  function startNext(): void {
    while (waiting.length > 0) {
      const [{ job, onProgress, settle }] = waiting;
      const needed = Math.min(job.cores, cores);
      if (needed > free) return;
      waiting.shift();
      free -= needed;
      onProgress({ step: 0, steps: undefined });
      const outcome = run(job, { onProgress, signal: closing.signal });
      running.add(outcome);
      settle(outcome);
      const end = () => {
        free += needed;
        running.delete(outcome);
        // The end of one job is told before the beginning of the next.
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
