import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { fileError } from '../files.js';
import { ProtoWriter } from '../protobuf.js';

export interface EventWriterOptions {
  /** The step the run is resumed at: TensorBoard then forgets what earlier files say of later steps. Default none. */
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

  scalars(step: number, values: Readonly<Record<string, number>>): void {
    this.write((event) =>
      event.varint(STEP, step).message(SUMMARY, (summary) => {
        for (const [tag, value] of Object.entries(values)) {
          summary.message(1, (entry) => entry.string(1, tag).float(2, value));
        }
      }),
    );
  }

  sync(): void {
    this.attempt(() => fsyncSync(this.file));
  }

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

/** Two containers may agree in host, process number and second: the file is new all the same. */
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
