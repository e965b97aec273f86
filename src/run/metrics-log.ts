import { closeSync, existsSync, fstatSync, fsyncSync, ftruncateSync, openSync, writeSync } from 'node:fs';
import { InputError } from '../errors.js';
import { fileError, readBytes, writeFileAtomic } from '../files.js';

/** What one line of a log says. Typed arrays become lists; a number that is not finite becomes null, as JSON has none. */
export type LogRecord = Readonly<Record<string, unknown>>;

/**
 * A file of JSON objects, one a line, that only grows. A checkpoint remembers its `length` at that moment;
 * a resumed run opens the log at that length, so that what came after the checkpoint is written once, not twice.
 */
export class MetricsLog {
  readonly path: string;
  private readonly file: number;
  private bytes: number;

  /** Opens the log and drops whatever is beyond its first `length` bytes. */
  constructor(path: string, length = 0) {
    this.path = path;
    this.bytes = length;
    // The atomic write also makes the name of a new file durable.
    if (!existsSync(path)) writeFileAtomic(path, '');
    this.file = this.attempt(() => openSync(path, 'a'));
    const found = fstatSync(this.file).size;
    if (found < length) {
      closeSync(this.file);
      throw new InputError(
        `the file has ${found} bytes, but the checkpoint was written when it had ${length}: it was cut or replaced`,
        { file: path },
      );
    }
    this.attempt(() => ftruncateSync(this.file, length));
  }

  append(record: LogRecord): void {
    const line = Buffer.from(`${JSON.stringify(record, typedArrayAsList)}\n`);
    this.attempt(() => {
      for (let done = 0; done < line.length; ) done += writeSync(this.file, line, done);
    });
    this.bytes += line.length;
  }

  /** Length of the file in bytes. */
  get length(): number {
    return this.bytes;
  }

  /** Brings everything to the disk: to be called before a checkpoint that remembers the length. */
  sync(): void {
    this.attempt(() => fsyncSync(this.file));
  }

  close(): void {
    closeSync(this.file);
  }

  private attempt<T>(action: () => T): T {
    try {
      return action();
    } catch (error) {
      throw fileError(error, 'write', this.path);
    }
  }
}

/**
 * The record in a line of a log, without its newline; undefined if it holds none, because it was cut off or is not what
 * a run has written. For readers of logs that others are writing to: where a log must be right, use `readMetrics`.
 */
export function parseLogLine(line: string): Record<string, unknown> | undefined {
  try {
    const record: unknown = JSON.parse(line);
    return isRecord(record) ? record : undefined;
  } catch {
    return undefined;
  }
}

/** The records of a log. A last line without its newline is one whose writing was cut off: it is left out. */
export function readMetrics(path: string): Record<string, unknown>[] {
  const bytes = readBytes(path);
  const whole = Buffer.from(bytes.buffer, 0, bytes.lastIndexOf(NEWLINE) + 1).toString('utf8');
  return whole
    .split('\n')
    .slice(0, -1)
    .map((text, i) => parseLine(text, path, i + 1));
}

function parseLine(text: string, file: string, line: number): Record<string, unknown> {
  let record: unknown;
  try {
    record = JSON.parse(text);
  } catch {
    throw new InputError('the line is not valid JSON', { file, line });
  }
  if (isRecord(record)) return record;
  throw new InputError(`expected a JSON object, found ${text.slice(0, 40)}`, { file, line });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function typedArrayAsList(_key: string, value: unknown): unknown {
  return ArrayBuffer.isView(value) && !(value instanceof DataView) ? Array.from(value as unknown as number[]) : value;
}

const NEWLINE = 10;
