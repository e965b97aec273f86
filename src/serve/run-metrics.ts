import { setImmediate } from 'node:timers/promises';
import { type LogRecord, LogTail, metricsFile, wholeRun } from '../run/index.js';

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
  /** Null if a figure was not finite. */
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
    const log = this.logs.get(run) ?? new FollowedLog(metricsFile(run));
    this.logs.set(run, log);
    return log.read();
  }

  /** Forgets the runs that are not among these, nor members of one of them. */
  keep(runs: ReadonlySet<string>): void {
    for (const run of this.logs.keys()) if (!runs.has(run) && !runs.has(wholeRun(run))) this.logs.delete(run);
  }
}

/** A log that grows, and what it came to so far. */
class FollowedLog {
  private course = new Course();
  private metrics: RunMetrics | undefined;
  private readonly tail: LogTail;
  /** The reading under way: a second request must not read the same lines again. */
  private reading: Promise<RunMetrics> | undefined;

  constructor(path: string) {
    this.tail = new LogTail(path);
  }

  read(): Promise<RunMetrics> {
    this.reading ??= this.advance().finally(() => {
      this.reading = undefined;
    });
    return this.reading;
  }

  private async advance(): Promise<RunMetrics> {
    let paused: number | undefined;
    const restart = (): void => {
      this.course = new Course();
      this.metrics = undefined;
    };
    for (const { record, end } of this.tail.read(restart)) {
      this.course.take(record);
      this.metrics = undefined;
      // Other questions are not kept waiting by a long log.
      paused ??= end;
      if (end - paused < BREATH) continue;
      paused = end;
      await setImmediate();
    }
    this.metrics ??= this.course.metrics();
    return this.metrics;
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

  take(record: LogRecord | undefined): void {
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

function numberOf(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}

/** Stretches of the curves, with up to two points each: more than a chart has pixels for. */
const LOSSES = 1000;
const EPISODES = 500;

/** Tasks that are told apart: more than any problem has. */
const TASKS = 100;

/** Bytes of the log between two looks at what else there is to do. */
const BREATH = 2 ** 20;

/**
 * A series of any length that gives a chart a bounded number of items: all of them while there are few, later the
 * lowest and the highest of each stretch, so that no peak is lost, and always the last.
 */
export class SampledSeries<T> {
  private stretches: Stretch<T>[] = [];
  /** Items of a stretch. */
  private width = 1;
  private count = 0;
  private last: Placed<T> | undefined;

  /**
   * @param most stretches that are kept; twice as many items at most
   * @param height what the chart shows of an item; null: nothing
   */
  constructor(
    private readonly most: number,
    private readonly height: (item: T) => number | null,
  ) {}

  add(item: T): void {
    const placed = { item, place: this.count++, height: this.height(item) };
    this.last = placed;
    const stretch = this.stretches.at(-1);
    if (stretch !== undefined && stretch.size < this.width) {
      this.stretches[this.stretches.length - 1] = joined(stretch, { low: placed, high: placed, size: 1 });
      return;
    }
    this.stretches.push({ low: placed, high: placed, size: 1 });
    if (this.stretches.length > this.most) this.halve();
  }

  /** In the order in which they came. */
  items(): T[] {
    const all = new Set(
      this.stretches.flatMap(({ low, high }) => (low.place < high.place ? [low, high] : [high, low])),
    );
    if (this.last !== undefined) all.add(this.last);
    return [...all].map(({ item }) => item);
  }

  private halve(): void {
    const { stretches } = this;
    const pairs = stretches.filter((_, i) => i % 2 === 0);
    this.stretches = pairs.map((first, i) => {
      const second = stretches[2 * i + 1];
      return second === undefined ? first : joined(first, second);
    });
    this.width *= 2;
  }
}

interface Placed<T> {
  readonly item: T;
  readonly place: number;
  readonly height: number | null;
}

interface Stretch<T> {
  readonly low: Placed<T>;
  readonly high: Placed<T>;
  readonly size: number;
}

function joined<T>(a: Stretch<T>, b: Stretch<T>): Stretch<T> {
  return {
    low: isBeyond(b.low, a.low, -1) ? b.low : a.low,
    high: isBeyond(b.high, a.high, 1) ? b.high : a.high,
    size: a.size + b.size,
  };
}

/** An item without a height gives way to any that has one. */
function isBeyond(b: Placed<unknown>, a: Placed<unknown>, sign: 1 | -1): boolean {
  return b.height !== null && (a.height === null || sign * (b.height - a.height) > 0);
}
