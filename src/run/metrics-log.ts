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
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { InputError } from '../errors.js';
import { fileError, readBytes, syncFolder, temporaryFile } from '../files.js';
import { ProtoWriter } from '../protobuf.js';
import { ANYONE, type Owner, publish } from './lock.js';

/** One line of a log. Typed arrays become lists; a number that is not finite becomes null, since JSON has none. */
export type LogRecord = Readonly<Record<string, unknown>>;

/**
 * A file of JSON objects, one per line, that only grows. A checkpoint remembers its `length` at that moment;
 * a resumed run opens the log at that length, so that what came after the checkpoint is written once, not twice.
 */
export class MetricsLog {
  readonly path: string;
  private readonly owner: Owner;
  private readonly file: number;
  private bytes: number;

  /**
   * Opens the log with its first `length` bytes and drops the rest. These bytes are copied to a new file that replaces
   * the old one, to which a former owner of the folder may still be writing: see `Owner`.
   */
  constructor(path: string, length = 0, owner: Owner = ANYONE) {
    this.path = path;
    this.owner = owner;
    this.bytes = length;
    this.file = this.attempt(() => publish(owner, () => openWithStartOf(path, length, owner)));
  }

  /** Writes a record as a line. */
  append(record: LogRecord): void {
    this.write(`${JSON.stringify(record, typedArrayAsList)}\n`);
  }

  /** Replaces lost lines with as many empty records. */
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

  /** Flushes the file to the disk and closes it. */
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

/** Bytes of the first lines of a log, at most `most`; none if there is no such file. */
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

export interface EventWriterOptions {
  /** The step the run resumes at: TensorBoard then discards later steps of earlier files. Default none. */
  readonly resumedAt?: number;
  /** Seconds since 1970. Default the clock. */
  readonly now?: () => number;
}

/**
 * A TensorBoard event file in a run folder: TFRecords of `tensorflow.Event` messages
 * (tensorflow/core/util/event.proto and tensorflow/core/framework/summary.proto).
 */
export class EventWriter {
  readonly path: string;
  private readonly file: number;
  private readonly now: () => number;

  constructor(folder: string, { resumedAt, now = () => Date.now() / 1000 }: EventWriterOptions = {}) {
    this.now = now;
    const started = String(Math.floor(now())).padStart(10, '0');
    const name = `events.out.tfevents.${started}.${hostname()}.${process.pid}`;
    [this.path, this.file] = openNew((count) => join(folder, `${name}.${count}`));
    this.write((event) => event.string(FILE_VERSION, 'brain.Event:2'));
    if (resumedAt !== undefined) {
      this.write((event) => event.varint(STEP, resumedAt + 1).message(SESSION_LOG, (log) => log.varint(1, START)));
    }
  }

  /** Writes the values of a step, each under its tag. */
  scalars(step: number, values: Readonly<Record<string, number>>): void {
    this.write((event) =>
      event.varint(STEP, step).message(SUMMARY, (summary) => {
        for (const [tag, value] of Object.entries(values)) {
          summary.message(1, (entry) => entry.string(1, tag).float(2, value));
        }
      }),
    );
  }

  /** Flushes what was written to the disk. */
  sync(): void {
    this.attempt(() => fsyncSync(this.file));
  }

  /** Closes the file. */
  close(): void {
    this.attempt(() => closeSync(this.file));
  }

  private write(fill: (event: ProtoWriter) => void): void {
    const event = new ProtoWriter().double(WALL_TIME, this.now());
    fill(event);
    this.attempt(() => writeSync(this.file, tfRecord(event.finish())));
  }

  private attempt(action: () => unknown): void {
    try {
      action();
    } catch (error) {
      throw fileError(error, 'write', this.path);
    }
  }
}

/** Two containers may agree in host, process id and second: the file must still be new. */
function openNew(pathOf: (count: number) => string): [path: string, file: number] {
  for (let count = 0; ; count++) {
    const path = pathOf(count);
    try {
      return [path, openSync(path, 'ax')];
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw fileError(error, 'write', path);
    }
  }
}

/** Every number of a record under its name, nested ones under `outer/inner`. */
export function numbersOf(record: object, prefix = ''): Record<string, number> {
  const found: Record<string, number> = {};
  for (const [key, value] of Object.entries(record)) {
    if (typeof value === 'number') found[prefix + key] = value;
    else if (typeof value === 'object' && value !== null) Object.assign(found, numbersOf(value, `${prefix}${key}/`));
  }
  return found;
}

/** u64 length, masked CRC of it, the data, masked CRC of them (tensorflow/core/lib/io/record_writer.h). */
export function tfRecord(data: Uint8Array): Uint8Array {
  const record = new Uint8Array(8 + 4 + data.length + 4);
  const view = new DataView(record.buffer);
  view.setBigUint64(0, BigInt(data.length), true);
  view.setUint32(8, maskedCrc32c(record.subarray(0, 8)), true);
  record.set(data, 12);
  view.setUint32(12 + data.length, maskedCrc32c(data), true);
  return record;
}

// Field numbers of tensorflow.Event, and of SessionLog.status.
const WALL_TIME = 1;
const STEP = 2;
const FILE_VERSION = 3;
const SUMMARY = 5;
const SESSION_LOG = 7;
const START = 1;

/** CRC-32C (Castagnoli; reflected polynomial 0x82F63B78), the checksum of TFRecord files. */
export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (let i = 0; i < bytes.length; i++) crc = TABLE[(crc ^ bytes[i]) & 0xff] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

/** TFRecord stores checksums rotated and offset, since the CRC of data that contain their own CRC is weak. */
export function maskedCrc32c(bytes: Uint8Array): number {
  const crc = crc32c(bytes);
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  return crc;
});
