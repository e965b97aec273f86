import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash, randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { z } from 'zod';
import { InputError } from './errors.js';

export type FileData = string | Uint8Array;

export interface AtomicWriteOptions {
  /** Called when the temporary file is complete, right before it gets its name; what it throws stops the writing. */
  readonly beforeRename?: () => void;
}

/**
 * Writes a file so that at every moment, a crash or a power cut included, `path` holds either its old content or
 * all of the new: a temporary file in the same folder is written, flushed to the disk and renamed. A failure
 * leaves nothing behind. Pieces are written one after the other without being joined in memory.
 */
export function writeFileAtomic(
  path: string,
  data: FileData | Iterable<FileData>,
  { beforeRename }: AtomicWriteOptions = {},
): void {
  const folder = dirname(path);
  const temporary = temporaryFile(folder);
  try {
    const file = openSync(temporary, 'wx');
    try {
      try {
        for (const piece of typeof data === 'string' || data instanceof Uint8Array ? [data] : data) {
          writeAll(file, typeof piece === 'string' ? Buffer.from(piece) : piece);
        }
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
      beforeRename?.();
      renameSync(temporary, path);
    } catch (error) {
      rmSync(temporary, { force: true });
      throw error;
    }
    syncFolder(folder);
  } catch (error) {
    throw fileError(error, 'write', path);
  }
}

/**
 * A new name in a folder that identifies its owner. It is short: one derived from a long file name could exceed what the
 * file system allows.
 */
export function temporaryFile(folder: string): string {
  return join(folder, `.${randomBytes(8).toString('hex')}.${machine()}.${process.pid}.tmp`);
}

/** Whether this is a name that `temporaryFile` gives. */
export function isTemporary(name: string): boolean {
  return TEMPORARY.test(name);
}

/** Removes the temporary files, in a folder and those within it, of processes of this machine that were killed. */
export function removeAbandoned(folder: string): void {
  if (!existsSync(folder)) return;
  const here = machine();
  try {
    for (const path of readdirSync(folder, { recursive: true }) as string[]) {
      const [, where, pid] = TEMPORARY.exec(basename(path)) ?? [];
      if (where === here && !isAlive(Number(pid))) rmSync(join(folder, path), { force: true });
    }
  } catch (error) {
    throw fileError(error, 'read', folder);
  }
}

/** Those of earlier versions had no owner. */
const TEMPORARY = /^\.[0-9a-f]{16}(?:\.([0-9a-f]{8})\.(\d+))?\.tmp$/;

/** The scope of process ids: a host, or a container on it. */
function machine(): string {
  let space = '';
  try {
    space = readlinkSync('/proc/self/ns/pid');
  } catch {
    // Only Linux has it.
  }
  return createHash('sha256').update(`${hostname()} ${space}`).digest('hex').slice(0, 8);
}

/** Whether there is a process with this id on this machine. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Makes a folder and its missing parents. */
export function makeFolder(path: string): void {
  try {
    makeWithParents(resolve(path));
  } catch (error) {
    throw fileError(error, 'write', path);
  }
}

/** Not `mkdirSync` with `recursive`: Node 20 never returns from that where a file system such as /proc refuses. */
function makeWithParents(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  if (dirname(path) !== path) makeWithParents(dirname(path));
  try {
    mkdirSync(path);
  } catch (error) {
    // Another process may have created it in the meantime.
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}

/** The content of a file of any size, or, unless `readingWithin` is in force, of a pipe. */
export function readBytes(path: string): Uint8Array<ArrayBuffer> {
  try {
    const file = isConfined() ? openRegular(path) : openSync(path, 'r');
    try {
      const stat = fstatSync(file);
      // Pipes and the kernel's virtual files do not know their size.
      if (!stat.isFile() || stat.size === 0) return new Uint8Array(readFileSync(file));
      const bytes = new Uint8Array(stat.size);
      let done = 0;
      while (done < bytes.length) {
        const count = readSync(file, bytes, done, Math.min(bytes.length - done, CHUNK), done);
        if (count === 0) throw new InputError(`the file shrank to ${done} bytes while it was read`, { file: path });
        done += count;
      }
      return bytes;
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw fileError(error, 'read', path);
  }
}

/** The content of a UTF-8 file; bytes that are not UTF-8 are an `InputError`, a byte order mark is dropped. */
export function readText(path: string): string {
  const bytes = readBytes(path);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new InputError('the file is not UTF-8 text', { file: path });
  }
}

/** An operating system error as a sentence with the path and its `code`; any other error is returned unchanged. */
export function fileError(error: unknown, verb: 'read' | 'write', path: string): unknown {
  if (!(error instanceof Error) || !('code' in error) || !('syscall' in error)) return error;
  const code = String(error.code);
  const reason = REASONS[code] ?? `the operating system answered ${code} to ${String(error.syscall)}`;
  return Object.assign(new InputError(`cannot ${verb} it: ${reason}`, { file: path }), { code });
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EBUSY: 'it is in use',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'it is larger than the file system allows',
  EIO: 'the device reports an input/output error',
  EISDIR: 'it is a folder',
  EMFILE: 'this process has too many open files',
  ENAMETOOLONG: 'the name is too long',
  ENOENT: 'no such file or folder',
  ENOSPC: 'the disk is full',
  ELOOP: 'it is a link',
  ENOTDIR: 'a part of the path is a file, not a folder',
  EPERM: 'the operation is not permitted',
  EROFS: 'the file system is read-only',
};

/** One read or write call of Node takes less than 2 GiB. */
const CHUNK = 2 ** 30;

function writeAll(file: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done, Math.min(bytes.length - done, CHUNK));
}

/** Makes the new name itself durable. Windows has no such call, and some network file systems refuse it. */
export function syncFolder(folder: string): void {
  if (process.platform === 'win32') return;
  const handle = openSync(folder, 'r');
  try {
    fsyncSync(handle);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== 'EINVAL' && code !== 'ENOTSUP') throw error;
  } finally {
    closeSync(handle);
  }
}

/**
 * Opens a regular file for reading. Anything else is an `InputError`: a pipe could keep its reader waiting forever, a
 * device could have no end. The opened file itself is checked, so it cannot be swapped in the meantime.
 */
export function openRegular(path: string): number {
  const folder = confinement.getStore();
  const real = folder === undefined ? path : realPathWithin(folder, path);
  // Without O_NONBLOCK, opening a pipe without a writer does not return. Windows has neither flag.
  const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);
  const file = openSync(real, folder === undefined ? flags : flags | (constants.O_NOFOLLOW ?? 0));
  try {
    const stat = fstatSync(file);
    if (!stat.isFile()) throw new InputError(`expected a regular file, found ${kindOf(stat)}`, { file: path });
    // A parent folder may have become a link since.
    if (folder !== undefined && realPathWithin(folder, path) !== real) throw leadsOut(path);
    return file;
  } catch (error) {
    closeSync(file);
    throw error;
  }
}

/**
 * While the action is in progress, what it reads through `files.ts` must be regular files inside the folder: links that
 * lead out of it are rejected. For folders that others can write to.
 */
export function readingWithin<T>(folder: string, action: () => T): T {
  return confinement.run(folder, action);
}

/** Whether `readingWithin` is in force. */
function isConfined(): boolean {
  return confinement.getStore() !== undefined;
}

const confinement = new AsyncLocalStorage<string>();

function realPathWithin(folder: string, path: string): string {
  const real = realpathSync(path);
  if (real.startsWith(realpathSync(folder) + sep)) return real;
  throw leadsOut(path);
}

function leadsOut(path: string): InputError {
  return new InputError('it is a link that leads out of the run folder, so it is not followed', { file: path });
}

function kindOf(stat: Stats): string {
  if (stat.isDirectory()) return 'a folder';
  if (stat.isFIFO()) return 'a pipe';
  return stat.isSocket() ? 'a socket' : 'a device';
}

/** The content of a JSON file that must fit a schema; an error names the file and the key. */
export function readJsonFile<S extends z.ZodType>(file: string, schema: S): z.output<S> {
  let content: unknown;
  try {
    content = JSON.parse(readText(file));
  } catch (error) {
    if (error instanceof InputError) throw error;
    throw new InputError(`not JSON: ${(error as Error).message}`, { file });
  }
  return fitting(content, schema, file);
}

/** What was read from a JSON file, if it fits a schema; an error names the file and the key. */
export function fitting<S extends z.ZodType>(content: unknown, schema: S, file: string): z.output<S> {
  const parsed = schema.safeParse(content);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new InputError(issue.message, { file, key: issue.path.join('.') });
}

/** Path of a file that the build makes, given relative to `dist/`: also when the sources run directly, as in tests. */
export function builtFile(path: string): string {
  const places = [`./${path}`, `../dist/${path}`].map((place) => fileURLToPath(new URL(place, import.meta.url)));
  const found = places.find((place) => existsSync(place));
  if (found === undefined) {
    throw new InputError('a compiled part is missing; build it with "npm run build"', { file: places[0] });
  }
  return found;
}

/** A line of a file. */
export interface FileLine {
  /** Without its newline; valid until the next line is read. Undefined if it is longer than any of ours. */
  readonly bytes: Buffer | undefined;
  /** Offset of the byte after its newline. */
  readonly end: number;
}

/**
 * The lines of a file from an offset on, read in pieces: the file may be larger than memory. A last line without its
 * newline is still being written or was cut off: it is skipped.
 */
export function* fileLines(path: string, from = 0): Generator<FileLine> {
  const file = attempt(path, () => openRegular(path));
  try {
    yield* openFileLines(file, from, path);
  } finally {
    closeSync(file);
  }
}

/** As `fileLines`, for an open file. */
export function* openFileLines(file: number, from: number, path: string): Generator<FileLine> {
  let buffer = Buffer.allocUnsafe(PIECE);
  /** The filled part of the buffer, and its offset in the file. */
  let [filled, start] = [0, from];
  let isSkipping = false;
  for (;;) {
    const count = attempt(path, () => readSync(file, buffer, filled, buffer.length - filled, start + filled));
    if (count === 0) return;
    const searched = filled;
    filled += count;
    let line = 0;
    for (let end = find(buffer, searched, filled); end >= 0; end = find(buffer, end + 1, filled)) {
      yield { bytes: isSkipping ? undefined : buffer.subarray(line, end), end: start + end + 1 };
      isSkipping = false;
      line = end + 1;
    }
    // The rest is the start of a line and moves to the front.
    if (line === 0 && filled >= LONGEST) isSkipping = true;
    if (isSkipping) line = filled;
    buffer.copyWithin(0, line, filled);
    start += line;
    filled -= line;
    if (filled === buffer.length) buffer = Buffer.concat([buffer], 2 * buffer.length);
  }
}

function find(buffer: Buffer, from: number, to: number): number {
  const at = buffer.indexOf(NEWLINE, from);
  return at < to ? at : -1;
}

function attempt<T>(path: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw fileError(error, 'read', path);
  }
}

const NEWLINE = 10;

/** Bytes read at a time, and maximum length of a line. */
const PIECE = 2 ** 20;
const LONGEST = 2 ** 24;
