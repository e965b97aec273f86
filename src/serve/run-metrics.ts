import { closeSync, fstatSync, readSync, type Stats } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { openFileLines } from '../file-lines.js';
import { fileError } from '../files.js';
import { openRegular } from '../regular-file.js';
import { type LogRecord, parseLogLine } from '../run/index.js';
import { runFile } from './run-folders.js';
import { SampledSeries } from './sampled-series.js';

/** The course of a training, as its log has it. */
export interface RunMetrics {
  /** Updates logged so far. */
  readonly step: number;
  /** Best validation performance so far. */
  readonly best: number | null;
  /** [update, training loss]; thinned out where there are many, as the episodes are. */
  readonly losses: readonly (readonly [number, number])[];
  readonly episodes: readonly Episode[];
  readonly tasks: readonly string[];
  /** Lines of the log that hold no record. */
  readonly badLines: number;
}

export interface Episode {
  readonly step: number;
  readonly episode: number;
  /** Null where a figure was not finite. */
  readonly performance: number | null;
  readonly reward: number | null;
  readonly loss: number | null;
  readonly entropy: number | null;
  /** Share of each task, in the order of `tasks`. */
  readonly distribution: readonly number[];
}

/** Reads the logs of runs again and again, each time what is new. */
export class MetricsReader {
  private readonly logs = new Map<string, FollowedLog>();

  read(run: string): Promise<RunMetrics> {
    const log = this.logs.get(run) ?? new FollowedLog();
    this.logs.set(run, log);
    return log.read(runFile(run, 'metrics.jsonl'));
  }

  /** Forgets the runs that are not among these. */
  keep(runs: ReadonlySet<string>): void {
    for (const run of this.logs.keys()) if (!runs.has(run)) this.logs.delete(run);
  }
}

/** A log that grows, and what it came to so far. */
class FollowedLog {
  private course = new Course();
  private metrics: RunMetrics | undefined;
  /** Identity of the file, bytes of it that have been read, and the last of them. */
  private file = '';
  private offset = 0;
  private tail: Buffer = Buffer.alloc(0);
  /** The reading under way: a second request must not read the same lines again. */
  private reading: Promise<RunMetrics> | undefined;

  read(path: string | undefined): Promise<RunMetrics> {
    this.reading ??= this.advance(path).finally(() => {
      this.reading = undefined;
    });
    return this.reading;
  }

  private async advance(path: string | undefined): Promise<RunMetrics> {
    if (path === undefined) this.begin('');
    else {
      try {
        const file = openRegular(path);
        try {
          await this.readNew(file, path);
        } finally {
          closeSync(file);
        }
      } catch (error) {
        throw fileError(error, 'read', path);
      }
    }
    this.metrics ??= this.course.metrics();
    return this.metrics;
  }

  private async readNew(file: number, path: string): Promise<void> {
    const stat = fstatSync(file);
    if (!this.isSame(file, stat)) this.begin(identityOf(stat));
    let paused = this.offset;
    for (const { bytes, end } of openFileLines(file, this.offset, path)) {
      this.course.take(bytes?.toString('utf8'));
      this.metrics = undefined;
      this.offset = end;
      // Sentences under way are not kept waiting by a long log.
      if (end - paused < BREATH) continue;
      paused = end;
      await setImmediate();
    }
    this.tail = bytesBefore(file, this.offset);
  }

  /** Whether the file goes on from what was read of it. A run that is resumed drops what came after its checkpoint. */
  private isSame(file: number, stat: Stats): boolean {
    if (identityOf(stat) !== this.file || stat.size < this.offset) return false;
    return this.tail.equals(bytesBefore(file, this.offset));
  }

  private begin(file: string): void {
    this.course = new Course();
    this.metrics = undefined;
    this.file = file;
    this.offset = 0;
    this.tail = Buffer.alloc(0);
  }
}

/** What is kept of the lines of a log. */
class Course {
  private step = 0;
  private best: number | null = null;
  private badLines = 0;
  private readonly losses = new SampledSeries<readonly [number, number]>(LOSSES, ([, loss]) => loss);
  /** As they were logged: most of them are never shown. */
  private readonly episodes = new SampledSeries<LogRecord>(EPISODES, ({ performance }) => numberOf(performance));
  private readonly tasks = new Set<string>();

  take(line: string | undefined): void {
    const record = line === undefined ? undefined : parseLogLine(line);
    if (record === undefined) this.badLines++;
    const step = numberOf(record?.step);
    if (record === undefined || step === null) return;
    this.step = Math.max(this.step, step);
    const loss = numberOf(record.loss);
    if (numberOf(record.episode) !== null) this.takeEpisode(record);
    else if (loss !== null) this.losses.add([step, loss]);
  }

  metrics(): RunMetrics {
    const { step, best, badLines } = this;
    const tasks = [...this.tasks];
    const episodes = this.episodes.items().map((record) => episodeOf(record, tasks));
    return { step, best, losses: this.losses.items(), episodes, tasks, badLines };
  }

  private takeEpisode(record: LogRecord): void {
    this.episodes.add(record);
    const performance = numberOf(record.performance);
    if (performance !== null && (this.best === null || performance > this.best)) this.best = performance;
    const { distribution } = record;
    if (typeof distribution !== 'object' || distribution === null) return;
    for (const name of Object.keys(distribution)) if (this.tasks.size < TASKS) this.tasks.add(name);
  }
}

function episodeOf(record: LogRecord, tasks: readonly string[]): Episode {
  const figure = (name: string): number | null => numberOf(record[name]);
  const shares = new Map(Object.entries(record.distribution ?? {}));
  return {
    step: figure('step')!,
    episode: figure('episode')!,
    loss: figure('loss'),
    performance: figure('performance'),
    reward: figure('reward'),
    entropy: figure('entropy'),
    distribution: tasks.map((name) => numberOf(shares.get(name)) ?? 0),
  };
}

function identityOf({ dev, ino }: Stats): string {
  return `${dev} ${ino}`;
}

/** A few bytes that end at an offset: those of a file that was cut and has grown again are others. */
function bytesBefore(file: number, offset: number): Buffer {
  const bytes = Buffer.alloc(Math.min(offset, TAIL));
  return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, offset - bytes.length));
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}

/** Stretches of the curves, with up to two points each: more than a chart has pixels for. */
const LOSSES = 1000;
const EPISODES = 500;

/** Tasks that are told apart: more than any problem has. */
const TASKS = 1000;

/** Bytes of the log between two looks at what else there is to do, and that tell whether it is still the same. */
const BREATH = 2 ** 20;
const TAIL = 256;
