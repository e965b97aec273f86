import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import type { JobProgress } from './job.js';

/** Follows the `metrics.jsonl` of a run while it grows, in whichever process that is. */
export class MetricsTail {
  private readonly path: string;
  private readonly steps: number | undefined;
  private offset = 0;
  private rest = '';
  private step = 0;
  private best: number | undefined;

  constructor(path: string, steps: number | undefined) {
    this.path = path;
    this.steps = steps;
  }

  /** How far the run is, if it has got further since the last call. */
  advance(): JobProgress | undefined {
    const lines = this.newLines();
    for (const line of lines) this.take(line);
    if (lines.length === 0) return undefined;
    const { step, steps, best } = this;
    return best === undefined ? { step, steps } : { step, steps, best };
  }

  private newLines(): string[] {
    let file: number;
    try {
      file = openSync(this.path, 'r');
    } catch {
      // Not there yet.
      return [];
    }
    try {
      const { size } = fstatSync(file);
      // A run that is resumed drops what it logged after its last checkpoint.
      if (size < this.offset) Object.assign(this, { offset: 0, rest: '', step: 0, best: undefined });
      const bytes = Buffer.alloc(size - this.offset);
      this.offset += readSync(file, bytes, 0, bytes.length, this.offset);
      const lines = (this.rest + bytes.toString('utf8')).split('\n');
      this.rest = lines.pop()!;
      return lines;
    } finally {
      closeSync(file);
    }
  }

  private take(line: string): void {
    const { step, performance } = JSON.parse(line) as { step: number; performance?: number };
    this.step = step;
    if (typeof performance === 'number') this.best = Math.max(this.best ?? Number.NEGATIVE_INFINITY, performance);
  }
}
