import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeFolder, readText, writeFileAtomic } from '../../files.js';
import { acquireLock, isElsewhere, type Lock, type LockHolder, LostLockError, lockHolder } from '../../run/index.js';
import type { Outcome } from '../job.js';
import type { SharedFolder } from './shared-folder.js';

/** One time that a worker was at a job. */
export interface Attempt {
  readonly host: string;
  readonly pid: number;
  /** Under which the worker held the job in the queue. */
  readonly token: string;
  /** For so long after its last sign of life, the worker may still be at it. */
  readonly leaseSeconds: number;
  /** ISO 8601, by the clock of that host. */
  readonly began: string;
  readonly ended?: string;
  /** How it ended; absent while it goes on, and for ever if the worker died at it. */
  readonly outcome?: Outcome;
}

/** What workers have done for a job, from the first attempt to the last. */
export function attemptsAt(shared: SharedFolder, id: string): Attempt[] {
  const file = historyOf(shared, id);
  return existsSync(file) ? (JSON.parse(readText(file)) as Attempt[]) : [];
}

export interface AttemptOptions {
  readonly token: string;
  readonly leaseSeconds: number;
  /** The run folder. */
  readonly folder: string;
  /** Fires when it is not wanted any more. */
  readonly signal: AbortSignal;
}

/** An attempt that has begun; to be ended with its outcome, or without one if another worker may have begun. */
export interface RunningAttempt {
  end(outcome?: Outcome): void;
}

/**
 * Begins with a job that this process holds in the queue, as soon as the worker before it is gone for certain, and
 * records it. Undefined if the signal came first.
 */
export async function beginAttempt(
  shared: SharedFolder,
  id: string,
  { token, leaseSeconds, folder, signal }: AttemptOptions,
): Promise<RunningAttempt | undefined> {
  makeFolder(shared.attempts);
  const lock = await lockWhenFree(join(shared.attempts, `${id}.lock`), {
    patience: 1000 * (attemptsAt(shared, id).at(-1)?.leaseSeconds ?? leaseSeconds),
    folder,
    signal,
  });
  if (lock === undefined) return undefined;
  const before = attemptsAt(shared, id);
  // A worker that was frozen meanwhile has not the last word on what others have done since.
  const beforeRename = () => lock.requireHeld();
  const record = (attempt: Attempt) =>
    writeFileAtomic(historyOf(shared, id), `${JSON.stringify([...before, attempt], null, 2)}\n`, { beforeRename });
  const attempt = { host: hostname(), pid: process.pid, token, leaseSeconds, began: new Date().toISOString() };
  try {
    record(attempt);
  } catch (error) {
    lock.release();
    throw error;
  }
  return {
    end(outcome) {
      try {
        if (outcome !== undefined) record({ ...attempt, ended: new Date().toISOString(), outcome });
      } catch (error) {
        if (!(error instanceof LostLockError)) throw error;
      } finally {
        lock.release();
      }
    },
  };
}

interface LockOptions {
  /** Milliseconds after which a process elsewhere, held to be alive until then, is gone. */
  readonly patience: number;
  readonly folder: string;
  readonly signal: AbortSignal;
}

/**
 * That the queue has given us the job does not mean that the worker before is gone: Redis may have lost its memory a
 * moment ago. Of a process on this host it can be seen whether it lives; of a worker elsewhere it is known that it stops
 * its work within a lease after it has lost the job (see `Lease`), and it lost it before we got it.
 */
async function lockWhenFree(path: string, { patience, folder, signal }: LockOptions): Promise<Lock | undefined> {
  const runLock = join(folder, 'run.lock');
  for (const began = performance.now(); !signal.aborted; await sleep(POLL_MILLISECONDS)) {
    const over = performance.now() - began > patience;
    const [worker, training] = [lockHolder(path), lockHolder(runLock)];
    if (worker !== undefined && !(over && isElsewhere(worker))) continue;
    // What a worker has left behind ends by itself. Who else trains there is not ours to stop: the run will be refused.
    if (training !== undefined && !over) continue;
    const lock = acquireLock(path, { takeOver: over });
    if (worker !== undefined && training !== undefined && areTogether(worker, training)) {
      acquireLock(runLock, { takeOver: true }).release();
    }
    return lock;
  }
  return undefined;
}

function areTogether(a: LockHolder, b: LockHolder): boolean {
  return a.host === b.host && a.space === b.space;
}

function historyOf({ attempts }: SharedFolder, id: string): string {
  return join(attempts, `${id}.json`);
}

const POLL_MILLISECONDS = 200;
