import { randomUUID } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { InputError } from '../../errors.js';
import { makeFolder, readText, writeFileAtomic } from '../../files.js';
import { acquireLock, isElsewhere, type Lock, type LockHolder, LostLockError, lockHolder } from '../../run/index.js';
import type { Outcome } from '../job.js';

/** The folder shared by all machines, with the queue's files in `.queue/`. */
export interface SharedFolder {
  readonly path: string;
  /** Folder with the history of each job. */
  readonly attempts: string;
}

export function sharedFolder(path: string): SharedFolder {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) {
    throw new InputError('there is no such folder; expected the one shared by all machines', { file: path });
  }
  return { path: resolve(path), attempts: join(resolve(path), '.queue', 'attempts') };
}

/**
 * The identity of the folder, which every job carries, so that a worker that was given another folder, or whose
 * network folder is not mounted, notices before it trains into nowhere. Made by the first sweep.
 */
export function identify(shared: SharedFolder): string {
  const known = identity(shared);
  if (known !== undefined) return known;
  makeFolder(shared.attempts);
  writeFileAtomic(identityFile(shared), `${JSON.stringify({ id: randomUUID() })}\n`);
  return identify(shared);
}

/** Rejects a folder that is not the one with this identity. */
export function requireSame(shared: SharedFolder, id: string): void {
  const found = identity(shared);
  if (found === id) return;
  const instead = found === undefined ? 'no sweep has ever used it' : 'it is that of other sweeps';
  throw new InputError(`this is not the shared folder of the sweep (${instead}); is --runs right, and is it mounted?`, {
    file: shared.path,
  });
}

function identity(shared: SharedFolder): string | undefined {
  const file = identityFile(shared);
  if (!existsSync(file)) return undefined;
  try {
    const { id } = JSON.parse(readText(file)) as { id: unknown };
    if (typeof id === 'string') return id;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new InputError('expected the identity of a shared folder in JSON', { file });
}

function identityFile({ path }: SharedFolder): string {
  return join(path, '.queue', 'folder.json');
}

/** One attempt of a worker at a job. */
export interface Attempt {
  readonly host: string;
  readonly pid: number;
  /** The token by which the worker held the job in the queue. */
  readonly token: string;
  /** How long after its last heartbeat the worker may still be running. */
  readonly leaseSeconds: number;
  /** ISO 8601, by the clock of that host. */
  readonly began: string;
  readonly ended?: string;
  /** How it ended; absent while it runs, and if the worker died. */
  readonly outcome?: Outcome;
}

/** The attempts at a job, oldest first. */
export function attemptsAt(shared: SharedFolder, id: string): Attempt[] {
  const file = historyOf(shared, id);
  return existsSync(file) ? (JSON.parse(readText(file)) as Attempt[]) : [];
}

export interface AttemptOptions {
  readonly token: string;
  readonly leaseSeconds: number;
  /** The run folder. */
  readonly folder: string;
  /** Fires when the job is cancelled. */
  readonly signal: AbortSignal;
}

/** A started attempt. End it with its outcome, or without one if another worker may have started. */
export interface RunningAttempt {
  end(outcome?: Outcome): void;
}

/**
 * Begins a job that this process holds in the queue, once the previous worker is certain to be gone, and records it.
 * Undefined if the signal came first.
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
  // A worker that was frozen must not overwrite what others have recorded since.
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
  /** Milliseconds after which a process elsewhere counts as gone. */
  readonly patience: number;
  readonly folder: string;
  readonly signal: AbortSignal;
}

/**
 * Holding the job does not prove that the previous worker is gone: Redis may have lost its data. We can see
 * whether a process on this host lives. A worker elsewhere stops within a lease after it has lost the job (see `Lease`),
 * and it lost it before we got it.
 */
async function lockWhenFree(path: string, { patience, folder, signal }: LockOptions): Promise<Lock | undefined> {
  const runLock = join(folder, 'run.lock');
  for (const began = performance.now(); !signal.aborted; await sleep(POLL_MILLISECONDS)) {
    const over = performance.now() - began > patience;
    const [worker, training] = [lockHolder(path), lockHolder(runLock)];
    if (worker !== undefined && !(over && isElsewhere(worker))) continue;
    // Processes left behind by a worker end on their own. Any other training is not ours to stop: our run is rejected.
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
