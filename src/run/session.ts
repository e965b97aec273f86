import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import type { z } from 'zod';
import { copySnapshot, type Snapshot } from './checkpoint.js';
import type { commonKeys } from './config/load.js';
import { type ConfigValues, createRun, type OwnedRunFolder, recordState, resumeRun } from './folder.js';
import { FolderSession } from './folder-session.js';
import { writeAsOwner } from './lock.js';
import type { LogRecord } from './metrics-log.js';
import type { ProgressFields, ProgressStream } from './progress.js';
import type { Validation } from './results.js';

/** What is trained: anything whose whole state can be captured and restored. */
export interface Resumable {
  /** Copies what `capture` reads into this process's memory, if it is elsewhere; awaited before each `capture`. */
  settle?(): Promise<void>;
  /** The state, without changing it: parameters, optimiser, generators of random numbers, position in the data. */
  capture(): Snapshot;
  /** Restores what `capture` returned; everything after it must proceed as it would have then. */
  restore(snapshot: Snapshot): void;
}

/** A run in progress, as its loop sees it. Steps count from 1. */
export interface RunSession {
  /** Number of the last completed step, including those before a resume; 0 at the start. */
  readonly step: number;
  /** A signal asks to stop. */
  readonly stopRequested: boolean;
  /** The loop should end, because of a signal or early stopping. */
  readonly shouldStop: boolean;
  /** The best score so far, and its step. */
  readonly bestSoFar: EarlyStoppingState['best'];
  /** A line of `metrics.jsonl`; its numbers go to TensorBoard as well. Nothing in it may depend on the clock. */
  log(step: number, record: LogRecord): void;
  /** Costs nothing unless a redraw is due; pass a function if the fields are expensive to make. */
  progress(step: number, fields?: ProgressFields | (() => ProgressFields)): void;
  /** Shows the user a line, above the progress. */
  note(text: string): void;
  /**
   * Adds a score on the main task; true if it is the best so far, which is then saved as `best`. Without `counts` a score
   * without improvement does not count towards early stopping. Default: it does.
   */
  best(step: number, score: number, counts?: boolean): boolean;
  /** The safe point that ends a step: saves if due, and lets signals arrive. Call it after every step. */
  maybeSave(step: number): Promise<void>;
}

/** The keys of the configuration that a session itself obeys. */
export type SessionConfig = {
  [Key in 'seed' | 'saving' | 'earlyStopping' | 'logging']: z.output<(typeof commonKeys)[Key]>;
};

/** Where and how a session runs. */
export interface RunSessionOptions {
  /** The run folder. */
  readonly folder: string;
  /** The resolved configuration. */
  readonly config: SessionConfig & ConfigValues;
  /** Continue the run in the folder instead of creating one. Default false. */
  readonly resume?: boolean;
  /** Steps of the whole run, if known. */
  readonly total?: number;
  /**
   * Pause after this many steps: everything is saved, and the run can be resumed, even if these are all of its
   * steps, before anything that follows a training. Default: never.
   */
  readonly until?: number;
  /** Whether a lower or a higher score given to `best` is better. Default `max`. */
  readonly mode?: 'min' | 'max';
  /** Show no progress. Default false. */
  readonly quiet?: boolean;
  /** Where progress is written. Default standard error. */
  readonly stream?: ProgressStream;
  /** The command line to record. Default that of this process. */
  readonly command?: readonly string[];
  /** The command that resumes this run, for the message at an interruption. Default `tcts train --resume FOLDER`. */
  readonly resumeCommand?: string;
  /** Processes that share each batch; only this one has the folder. Default 1. */
  readonly processes?: number;
  /** What validation measures, for a problem from a module. Default: from the configuration. */
  readonly measure?: Validation;
  /** Resume even if a process on another host holds the lock; for callers that know it is dead. Default false. */
  readonly takeOver?: boolean;
}

/** Outcome of a session. */
export interface SessionOutcome {
  readonly state: 'finished' | 'interrupted';
  /** Steps done. */
  readonly step: number;
  /** The best score and its step, if any was given. */
  readonly best: EarlyStoppingState['best'];
  /** Whether it ended because it no longer improved. */
  readonly stoppedEarly: boolean;
  /** The signal that interrupted the run. */
  readonly signal: NodeJS.Signals | undefined;
  readonly resumeCommand: string;
}

/** Writes a file of the run folder. */
export type WriteFile = (name: string, content: string) => void;

/** Runs at the end of a run that did not fail, while the folder is still locked. */
export type Conclude = (outcome: SessionOutcome, write: WriteFile) => Promise<void>;

/**
 * Runs `loop` as a run with a folder: made or resumed, locked, logged, saved at safe points and at the end.
 *
 * ```ts
 * await runSession({ folder, config, resume, total }, trainee, async (session) => {
 *   for (let step = session.step + 1; step <= total && !session.shouldStop; step++) {
 *     const loss = train();
 *     session.log(step, { loss });
 *     session.progress(step, { loss });
 *     if (step % 100 === 0) session.best(step, validate());
 *     await session.maybeSave(step);
 *   }
 * });
 * ```
 *
 * `maybeSave` is the safe point that ends a step. A killed run continues from the last checkpoint, and everything
 * it logged since is logged again, so `metrics.jsonl` is that of a run that was never stopped. What the loop does
 * after its last safe point must therefore not change the trainee.
 *
 * A process that loses the folder because another one considers it dead ends with a `LostLockError` and writes nothing
 * more.
 */
export async function runSession(
  options: RunSessionOptions,
  subject: Resumable,
  loop: (session: RunSession) => Promise<void>,
  conclude?: Conclude,
): Promise<SessionOutcome> {
  const { folder, config, resume = false } = options;
  const run = resume ? resumeRun(folder, options) : createRun(folder, { ...options, seed: config.seed });
  try {
    const outcome = await runInFolder(run, options, subject, loop);
    const write: WriteFile = (name, content) => writeAsOwner(run.lock, join(run.path, name), content);
    await conclude?.(outcome, write);
    return outcome;
  } finally {
    run.lock.release();
  }
}

async function runInFolder(
  run: OwnedRunFolder,
  options: RunSessionOptions,
  subject: Resumable,
  loop: (session: RunSession) => Promise<void>,
): Promise<SessionOutcome> {
  let session: FolderSession | undefined;
  try {
    session = new FolderSession(run, options, subject);
    await loop(session);
    await subject.settle?.();
    return session.end();
  } catch (error) {
    const unchanged = session === undefined || (session.abandon().unchanged && run.before === 'finished');
    recordFailure(run, unchanged);
    throw error;
  }
}

/**
 * A run that could not be opened, or was finished and unchanged, keeps its state; a killed one has now failed.
 * Writing this may fail too, on a full disk or in a lost folder: the user must see the original failure.
 */
function recordFailure(run: OwnedRunFolder, unchanged: boolean): void {
  const { before } = run;
  const keeps = unchanged && before !== undefined && before !== 'running';
  try {
    recordState(run, keeps ? before : 'failed');
  } catch {
    // See above.
  }
}

/** A session that keeps everything in memory instead of a run folder. */
export interface TransientSession extends RunSession {
  /** What was logged. */
  readonly records: readonly LogRecord[];
  /** The state at the best score. */
  readonly bestSnapshot: Snapshot | undefined;
}

/** A session without a folder, for library calls and tests: it writes no files and cannot be resumed. */
export function transientSession(subject: Resumable, options: EarlyStoppingOptions): TransientSession {
  const stopping = new EarlyStopping(options);
  const records: LogRecord[] = [];
  let done = 0;
  let bestSnapshot: Snapshot | undefined;
  return {
    records,
    stopRequested: false,
    get step() {
      return done;
    },
    get shouldStop() {
      return stopping.stop;
    },
    get bestSoFar() {
      return stopping.best;
    },
    get bestSnapshot() {
      return bestSnapshot;
    },
    log: (step, record) => {
      records.push({ step, ...record });
    },
    progress: () => {},
    note: () => {},
    best: (step, score, counts) => {
      const isBest = stopping.update(step, score, counts);
      if (isBest) bestSnapshot = copySnapshot(subject.capture());
      return isBest;
    },
    maybeSave: async (step) => {
      done = step;
      await setImmediate();
    },
  };
}

/** What counts as an improvement, and how long to wait for one. */
export interface EarlyStoppingOptions {
  /** Whether a lower (`min`) or a higher (`max`) score is better. */
  readonly mode: 'min' | 'max';
  /** Scores in a row without improvement after which to stop; null: never. Default null. */
  readonly patience?: number | null;
  /** A score must be better by more than this to count as an improvement. Default 0. */
  readonly minDelta?: number;
}

/** State of early stopping, as plain JSON. */
export interface EarlyStoppingState {
  /** Best score so far and its step; null before the first score. */
  readonly best: { readonly score: number; readonly step: number } | null;
  /** The score that has to be improved on by `minDelta`. */
  readonly mark: number | null;
  /** Counted scores since `mark` was set. */
  readonly waited: number;
}

/** Keeps the best score, and says when there has been no improvement for too long. */
export class EarlyStopping {
  private readonly options: EarlyStoppingOptions;
  private current: EarlyStoppingState;

  constructor(options: EarlyStoppingOptions, state: EarlyStoppingState = { best: null, mark: null, waited: 0 }) {
    this.options = options;
    this.current = state;
  }

  get state(): EarlyStoppingState {
    return this.current;
  }

  get best(): EarlyStoppingState['best'] {
    return this.current.best;
  }

  get stop(): boolean {
    const { patience = null } = this.options;
    return patience !== null && this.current.waited >= patience;
  }

  /**
   * Adds a score; true if it is the best so far, by any margin. NaN never is. Without `counts` it does not add to the
   * scores without improvement.
   */
  update(step: number, score: number, counts = true): boolean {
    const { best, mark, waited } = this.current;
    const isBest = best === null ? !Number.isNaN(score) : this.gain(score, best.score) > 0;
    const advanced = mark === null ? !Number.isNaN(score) : this.gain(score, mark) > (this.options.minDelta ?? 0);
    this.current = {
      best: isBest ? { score, step } : best,
      mark: advanced ? score : mark,
      waited: advanced ? 0 : waited + Number(counts),
    };
    return isBest;
  }

  private gain(score: number, over: number): number {
    return this.options.mode === 'min' ? over - score : score - over;
  }
}
