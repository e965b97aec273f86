import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { parseLogLine } from '../run/index.js';
import type { JobProgress } from './job.js';

/**
 * Follows the `metrics.jsonl` of a run while it grows, in whichever process that is. It only informs: what cannot be
 * read, a line that is not one of a log among it, is passed over.
 */
export class MetricsTail {
  private readonly path: string;
  private readonly steps: number | undefined;
  private offset = 0;
  /** The last bytes before `offset`. */
  private seen: Buffer<ArrayBufferLike> = Buffer.alloc(0);
  private rest: Buffer<ArrayBufferLike> = Buffer.alloc(0);
  private step = 0;
  private best: number | undefined;

  constructor(path: string, steps: number | undefined) {
    this.path = path;
    this.steps = steps;
  }

  /** How far the run is, if it has logged something since the last call. */
  advance(): JobProgress | undefined {
    const records = this.newLines()
      .map(parseLogLine)
      .filter((record) => record !== undefined);
    for (const record of records) this.take(record);
    if (records.length === 0) return undefined;
    const { step, steps, best } = this;
    return best === undefined ? { step, steps } : { step, steps, best };
  }

  private newLines(): string[] {
    let file: number | undefined;
    try {
      file = openSync(this.path, 'r');
      const { size } = fstatSync(file);
      if (size < this.offset || !this.isWhatWasSeen(file)) this.beginAnew();
      const bytes = Buffer.alloc(size - this.offset);
      const added = bytes.subarray(0, readSync(file, bytes, 0, bytes.length, this.offset));
      this.offset += added.length;
      this.seen = Buffer.concat([this.seen, added]).subarray(-REMEMBERED);
      const text = Buffer.concat([this.rest, added]);
      const end = text.lastIndexOf('\n') + 1;
      this.rest = text.subarray(end);
      return text.subarray(0, end).toString('utf8').split('\n').slice(0, -1);
    } catch {
      // Not there yet, or unreadable at the moment.
      return [];
    } finally {
      if (file !== undefined) closeSync(file);
    }
  }

  /** A run that is resumed drops what it logged after its last checkpoint, and may have grown beyond it by now. */
  private isWhatWasSeen(file: number): boolean {
    const found = Buffer.alloc(this.seen.length);
    readSync(file, found, 0, found.length, this.offset - found.length);
    return found.equals(this.seen);
  }

  private beginAnew(): void {
    const nothing = Buffer.alloc(0);
    Object.assign(this, { offset: 0, seen: nothing, rest: nothing, step: 0, best: undefined });
  }

  private take({ step, performance }: Record<string, unknown>): void {
    if (typeof step === 'number') this.step = step;
    if (typeof performance === 'number') this.best = Math.max(this.best ?? Number.NEGATIVE_INFINITY, performance);
  }
}

/** Bytes by which a log is known again. A resumed run logs the same lines again, so that this is enough to notice others. */
const REMEMBERED = 4096;
