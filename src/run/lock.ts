import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  linkSync,
  openSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { InputError } from '../errors.js';
import { type FileData, fileError, isAlive, temporaryFile, writeFileAtomic } from '../files.js';

/** The process that holds a lock, described so that a later process with the same id is not mistaken for it. */
export interface LockHolder {
  readonly pid: number;
  readonly host: string;
  /** Start of the process in clock ticks since boot; null if the system does not provide it. */
  readonly started: string | null;
  /** Identity of this boot of the machine; null if the system does not provide it. */
  readonly boot: string | null;
  /** The process namespace of `pid` (containers have their own); null if the system does not provide it. */
  readonly space: string | null;
  /** Distinguishes two locks of one process. */
  readonly token: string;
}

/** A lock that this process holds. */
export interface Lock extends Owner {
  readonly path: string;
  /** Releases it. */
  release(): void;
}

/** The lock was taken over or removed: what it protects belongs to another process, and nothing more may be written. */
export class LostLockError extends InputError {
  override readonly name: string = 'LostLockError';
}

export interface LockOptions {
  /** Take the lock even from a process elsewhere: for a caller that knows it is dead. Default false. */
  readonly takeOver?: boolean;
}

/**
 * Takes the lock represented by the file at `path`, or fails and names the process that holds it. The lock of a process
 * that is known to be dead is taken over. It is released at the latest when this process exits.
 */
export function acquireLock(path: string, options: LockOptions = {}): Lock {
  const holder: LockHolder = { ...thisProcess(), token: randomBytes(8).toString('hex') };
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if (createLock(path, holder)) return heldLock(path, holder);
    const found = readLock(path);
    if (found === 'gone') continue;
    if (found === 'unreadable') requireFile(path);
    if (!mayTakeOver(found, path, options)) throw heldBy(found, path);
    if (replaceDeadLock(path, found, holder, options)) return heldLock(path, holder);
  }
  throw new InputError('the lock keeps changing hands; try again', { file: path });
}

/** The living process that holds the lock, as far as can be known. */
export function lockHolder(path: string): LockHolder | undefined {
  const found = readLock(path);
  return typeof found === 'string' || isDead(found) ? undefined : found;
}

/** Whether we cannot tell if the holder is alive: it is on another host, or in another container of this one. */
export function isElsewhere(holder: LockHolder): boolean {
  const here = thisProcess();
  return holder.host !== here.host || (holder.boot === here.boot && holder.space !== here.space);
}

/**
 * Between judging a lock dead and replacing it, another process may have done both. So only the holder of a second
 * lock may replace the first, after checking again; if it dies meanwhile, its lock is dead too and handled the same way.
 */
function replaceDeadLock(
  path: string,
  dead: LockHolder | 'unreadable',
  holder: LockHolder,
  options: LockOptions,
): boolean {
  const guard = acquireLock(`${path}.takeover`, options);
  try {
    const found = readLock(path);
    const same = typeof found === 'string' || typeof dead === 'string' ? found === dead : found.token === dead.token;
    if (!same) return false;
    renameSync(writeFresh(path, holder), path);
    return true;
  } catch (error) {
    if (hasVanished(error)) return false;
    throw fileError(error, 'write', path);
  } finally {
    guard.release();
  }
}

/** False if the lock already exists. It appears complete, as a new name of a finished file. */
function createLock(path: string, holder: LockHolder): boolean {
  const fresh = writeFresh(path, holder);
  try {
    linkSync(fresh, path);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' || hasVanished(error)) return false;
    if (code !== undefined && NO_LINKS.has(code)) return createWithoutLink(path, holder);
    throw fileError(error, 'write', path);
  } finally {
    rmSync(fresh, { force: true });
  }
}

/** A process that gets the lock removes all temporary files, including the one we were about to rename. */
function hasVanished(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}

/** Some file systems (FAT, some network ones) have no hard links: there, the lock is empty for a moment. */
function createWithoutLink(path: string, holder: LockHolder): boolean {
  try {
    writeFileSync(path, content(holder), { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw fileError(error, 'write', path);
  }
}

function writeFresh(path: string, holder: LockHolder): string {
  const fresh = temporaryFile(dirname(path));
  try {
    writeFileSync(fresh, content(holder));
  } catch (error) {
    rmSync(fresh, { force: true });
    throw fileError(error, 'write', path);
  }
  return fresh;
}

function content(holder: LockHolder): string {
  return `${JSON.stringify(holder)}\n`;
}

function heldLock(path: string, holder: LockHolder): Lock {
  const isOurs = (found: ReturnType<typeof readLock>) => typeof found !== 'string' && found.token === holder.token;
  const release = () => {
    process.off('exit', release);
    if (isOurs(readLock(path))) removeLock(path, isOurs);
  };
  const requireHeld = () => {
    let found = readLock(path);
    // A former holder that releases it late may have moved it aside for a moment: see `removeLock`.
    for (let look = 0; found === 'gone' && look < LOOKS; look++) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOOK_MILLISECONDS);
      found = readLock(path);
    }
    if (!isOurs(found)) throw lostTo(found, path);
  };
  process.on('exit', release);
  return { path, requireHeld, release };
}

/**
 * Another process may have taken the lock since we checked. So it is moved aside, checked again, and put back if it is no
 * longer ours.
 */
function removeLock(path: string, isOurs: (found: ReturnType<typeof readLock>) => boolean): void {
  const aside = temporaryFile(dirname(path));
  try {
    renameSync(path, aside);
    if (!isOurs(readLock(aside))) linkSync(aside, path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    if (NO_LINKS.has(code)) renameSync(aside, path);
    else if (code !== 'ENOENT' && code !== 'EEXIST') throw fileError(error, 'write', path);
  } finally {
    rmSync(aside, { force: true });
  }
}

function lostTo(found: ReturnType<typeof readLock>, file: string): Error {
  if (found === 'unreadable') {
    return new InputError('the lock can no longer be read: this process ends and writes nothing more', { file });
  }
  const what =
    found === 'gone'
      ? 'the lock is gone, so another process may have used this folder since, or may do so now'
      : `process ${found.pid} on host ${found.host} has taken this folder over`;
  return new LostLockError(`${what}: this process ends and writes nothing more`, { file });
}

function readLock(path: string): LockHolder | 'gone' | 'unreadable' {
  try {
    // Not a pipe: reading it might never end.
    if (!statSync(path).isFile()) return 'unreadable';
    const holder = JSON.parse(lockText(path)) as LockHolder;
    return Number.isInteger(holder?.pid) && typeof holder.host === 'string' ? holder : 'unreadable';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'gone' : 'unreadable';
  }
}

/** A lock without content may just be being created, but anything else is in the way. */
function requireFile(path: string): void {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined || stat.isFile()) return;
  const what = stat.isDirectory() ? 'a folder' : 'not a file';
  throw new InputError(`it is ${what}, but its name is that of the lock: remove it`, { file: path });
}

function lockText(path: string): string {
  const file = openSync(path, LOCK_FLAGS);
  try {
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}

function mayTakeOver(found: LockHolder | 'unreadable', path: string, options: LockOptions): boolean {
  // Made without a link: its process was stopped before it could write to it, unless it is doing so right now.
  if (found === 'unreadable') return Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) > WRITING;
  return isDead(found) || (options.takeOver === true && isElsewhere(found));
}

function isDead(holder: LockHolder): boolean {
  if (isElsewhere(holder)) return false;
  if (holder.boot !== thisProcess().boot) return true;
  return !isAlive(holder.pid) || (holder.started !== null && holder.started !== startOf(holder.pid));
}

function heldBy(found: LockHolder | 'unreadable', path: string): InputError {
  if (found === 'unreadable') return new InputError('the folder is being locked by another process', { file: path });
  const elsewhere = !isElsewhere(found) ? '' : ' (if that process is gone for good, delete this file)';
  return new InputError(`process ${found.pid} on host ${found.host} is using this folder${elsewhere}`, { file: path });
}

function thisProcess(): Omit<LockHolder, 'token'> {
  return {
    pid: process.pid,
    host: hostname(),
    started: startOf(process.pid),
    boot: whereKnown(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    space: whereKnown(() => readlinkSync('/proc/self/ns/pid')),
  };
}

/**
 * Field 22 of /proc/PID/stat, where the second field is a name in parentheses that may itself hold spaces and
 * parentheses. A process that has ended but is still listed (state Z) has no start any more.
 */
function startOf(pid: number): string | null {
  const stat = whereKnown(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields === undefined || fields[0] === 'Z' ? null : fields[19];
}

/** Only Linux has these files; elsewhere the process id alone has to suffice. */
function whereKnown(read: () => string): string | null {
  try {
    return read();
  } catch {
    return null;
  }
}

/**
 * Who may write to a folder, as long as `requireHeld` does not throw: the holder of its lock.
 *
 * A process that was frozen, or whose machine was asleep, may have lost the lock without noticing. Checking the lock
 * before each write is not enough, since the process may freeze between check and write. These rules keep such a late write
 * from affecting what the next owner writes:
 *
 * - A file is written under a temporary name, then the lock is checked, then the file is renamed. A new owner takes the
 *   lock, then removes all temporary files, and only then reads the folder: a late rename finds nothing to rename.
 * - Each owner writes its logs to its own files, which replace those of the previous owner: late lines go to a file
 *   that no longer has a name.
 * - Only what is older than a published checkpoint is removed: the next owner continues from that one.
 */
export interface Owner {
  /** Throws a `LostLockError` if the folder belongs to another process now. */
  requireHeld(): void;
}

/** Writes a file as the owner of its folder. */
export function writeAsOwner(owner: Owner, path: string, data: FileData): void {
  publish(owner, () => writeFileAtomic(path, data, { beforeRename: () => owner.requireHeld() }));
}

/**
 * Makes a file appear by a rename. A former owner that was frozen while it removed temporary files may remove ours: then
 * it is written again. If the lock is lost, that is the reason for any failure.
 */
export function publish<T>(owner: Owner, make: () => T): T {
  for (let attempt = 1; ; attempt++) {
    try {
      return make();
    } catch (error) {
      owner.requireHeld();
      if (attempt === WRITE_ATTEMPTS || (error as { code?: unknown }).code !== 'ENOENT') throw error;
    }
  }
}

/** For files in folders without a lock. */
export const ANYONE: Owner = { requireHeld: () => {} };

const WRITE_ATTEMPTS = 3;

const ATTEMPTS = 10;

/** How often, and after how long, a missing lock is looked for again. */
const LOOKS = 5;
const LOOK_MILLISECONDS = 20;
/** A lock is neither a link nor a pipe, which could block a reader forever. Windows has neither flag. */
const LOCK_FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0);

/** Errors of file systems without hard links. */
const NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/** Milliseconds after which an empty lock file is no longer one that is being written. */
const WRITING = 5000;
