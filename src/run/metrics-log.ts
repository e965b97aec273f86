import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { InputError } from '../errors.js';
import { fileError, readBytes, syncFolder, temporaryFile } from '../files.js';
import { ANYONE, type Owner, publish } from './lock.js';

/** What one line of a log says. Typed arrays become lists; a number that is not finite becomes null, as JSON has none. */
export type LogRecord = Readonly<Record<string, unknown>>;

/**
 * A file of JSON objects, one a line, that only grows. A checkpoint remembers its `length` at that moment;
 * a resumed run opens the log at that length, so that what came after the checkpoint is written once, not twice.
 */
export class MetricsLog {
  readonly path: string;
  private readonly owner: Owner;
  private readonly file: number;
  private bytes: number;

  /**
   * Opens the log with its first `length` bytes and drops the rest. What is kept is copied to a new file that replaces
   * the old one, to which a former owner of the folder may still be writing: see `Owner`.
   */
  constructor(path: string, length = 0, owner: Owner = ANYONE) {
    this.path = path;
    this.owner = owner;
    this.bytes = length;
    this.file = this.attempt(() => publish(owner, () => openWithStartOf(path, length, owner)));
  }

  append(record: LogRecord): void {
    this.write(`${JSON.stringify(record, typedArrayAsList)}\n`);
  }

  /** Replaces lines that were lost by as many empty records. */
  fill(count: number): void {
    if (count > 0) this.write('{}\n'.repeat(count));
  }

  /** Length of the file in bytes. */
  get length(): number {
    return this.bytes;
  }

  /** Flushes everything to disk: call it before a checkpoint that remembers the length. */
  sync(): void {
    this.attempt(() => {
      this.dropForeign();
      fsyncSync(this.file);
    });
  }

  close(): void {
    this.attempt(() => {
      try {
        this.dropForeign();
      } finally {
        closeSync(this.file);
      }
    });
  }

  /** Writes at its own offset, not at the end of the file: anything another process put there is overwritten. */
  private write(text: string): void {
    this.owner.requireHeld();
    const bytes = Buffer.from(text);
    this.attempt(() => {
      for (let done = 0; done < bytes.length; ) {
        done += writeSync(this.file, bytes, done, bytes.length - done, this.bytes + done);
      }
    });
    this.bytes += bytes.length;
  }

  private dropForeign(): void {
    if (fstatSync(this.file).size > this.bytes) ftruncateSync(this.file, this.bytes);
  }

  private attempt<T>(action: () => T): T {
    try {
      return action();
    } catch (error) {
      throw fileError(error, 'write', this.path);
    }
  }
}

/** A new file under the name of an old one, with its first bytes; open for writing. */
function openWithStartOf(path: string, length: number, owner: Owner): number {
  const start = length === 0 ? new Uint8Array() : readBytes(path);
  if (start.length < length) {
    throw new InputError(
      `the file has ${start.length} bytes, but the checkpoint was written when it had ${length}: it was cut or replaced`,
      { file: path },
    );
  }
  const temporary = temporaryFile(dirname(path));
  const file = openSync(temporary, 'wx');
  try {
    for (let done = 0; done < length; ) done += writeSync(file, start, done, Math.min(length - done, CHUNK));
    fsyncSync(file);
    owner.requireHeld();
    renameSync(temporary, path);
    syncFolder(dirname(path));
    return file;
  } catch (error) {
    closeSync(file);
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** Lines of a log in its first `length` bytes. */
export function countLines(path: string, length: number): number {
  if (length === 0) return 0;
  let lines = 0;
  for (const byte of readBytes(path).subarray(0, length)) if (byte === NEWLINE) lines++;
  return lines;
}

/** Bytes of the first lines of a log, as many as there are of `most`; none if there is no such file. */
export function startOfLines(path: string, most: number): { lines: number; length: number } {
  const bytes = existsSync(path) ? readBytes(path) : new Uint8Array();
  let [lines, length] = [0, 0];
  for (; lines < most; lines++) {
    const end = bytes.indexOf(NEWLINE, length);
    if (end < 0) break;
    length = end + 1;
  }
  return { lines, length };
}

function typedArrayAsList(_key: string, value: unknown): unknown {
  return ArrayBuffer.isView(value) && !(value instanceof DataView) ? Array.from(value as unknown as number[]) : value;
}

const NEWLINE = 10;

/** One write call of Node takes less than 2 GiB. */
const CHUNK = 2 ** 30;
