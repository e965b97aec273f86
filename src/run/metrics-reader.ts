import { closeSync, existsSync, fstatSync, readSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import { InputError } from '../errors.js';
import { fileError, fileLines, openFileLines, openRegular } from '../files.js';
import type { LogRecord } from './metrics-log.js';

/** The log of a run folder. */
export function metricsFile(run: string): string {
  return join(run, 'metrics.jsonl');
}

/** The times of the lines of the log, one for one. */
export function timingsFile(run: string): string {
  return join(run, 'timings.jsonl');
}

/**
 * The record in a line of a log, without its newline; undefined if it holds none, because it was cut off or is not what
 * a run writes. For logs that others are still writing; to require a valid log, use `readMetrics`.
 */
export function parseLogLine(line: string): Record<string, unknown> | undefined {
  try {
    const record: unknown = JSON.parse(line);
    const isRecord = typeof record === 'object' && record !== null && !Array.isArray(record);
    return isRecord ? (record as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** The records of a log. A last line without a newline was cut off and is skipped. */
export function readMetrics(path: string): Record<string, unknown>[] {
  const records: Record<string, unknown>[] = [];
  for (const { bytes } of fileLines(path)) records.push(recordIn(bytes, path, records.length + 1));
  return records;
}

function recordIn(bytes: Buffer | undefined, file: string, line: number): Record<string, unknown> {
  const text = bytes?.toString('utf8') ?? '';
  const record = parseLogLine(text);
  if (record !== undefined) return record;
  const isJson = isValidJson(text);
  const what = isJson ? `expected a JSON object, found ${text.slice(0, 40)}` : 'the line is not valid JSON';
  throw new InputError(what, { file, line });
}

function isValidJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * Follows a log while a run writes it, in any process. A line counts once its newline is there. A run that is resumed
 * drops what it logged after its last checkpoint, and may have grown past it since: then the log is read from the
 * start.
 */
export class LogTail {
  /** Identity of the file, bytes of it that have been read, and the last of them. */
  private file = '';
  private offset = 0;
  private last: Buffer = Buffer.alloc(0);

  constructor(private readonly path: string) {}

  /**
   * The records since the last call; undefined for a line that holds none.
   *
   * @param restart called first if the log does not continue what was read before: the records are those of all its lines
   */
  *read(restart: () => void): Generator<{ record: LogRecord | undefined; end: number }> {
    if (!existsSync(this.path)) {
      if (this.file !== '') this.begin('', restart);
      return;
    }
    const file = this.attempt(() => openRegular(this.path));
    try {
      const stat = this.attempt(() => fstatSync(file));
      if (!this.continues(file, stat)) this.begin(identityOf(stat), restart);
      for (const { bytes, end } of openFileLines(file, this.offset, this.path)) {
        this.offset = end;
        yield { record: bytes && parseLogLine(bytes.toString('utf8')), end };
      }
    } finally {
      // Also if the caller stopped early: the rest is read next time.
      this.last = bytesBefore(file, this.offset);
      closeSync(file);
    }
  }

  private continues(file: number, stat: Stats): boolean {
    if (identityOf(stat) !== this.file || stat.size < this.offset) return false;
    return this.last.equals(bytesBefore(file, this.offset));
  }

  private begin(file: string, restart: () => void): void {
    this.file = file;
    this.offset = 0;
    this.last = Buffer.alloc(0);
    restart();
  }

  private attempt<T>(action: () => T): T {
    try {
      return action();
    } catch (error) {
      throw fileError(error, 'read', this.path);
    }
  }
}

function identityOf({ dev, ino }: Stats): string {
  return `${dev} ${ino}`;
}

/** A few bytes that end at an offset: they differ if the file was cut and has grown again. */
function bytesBefore(file: number, offset: number): Buffer {
  const bytes = Buffer.alloc(Math.min(offset, REMEMBERED));
  return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, offset - bytes.length));
}

/** Bytes by which a log is recognised. */
const REMEMBERED = 4096;

/** An episode as recorded in `metrics.jsonl`; NaN if a figure is undefined. */
export interface LoggedEpisode {
  readonly episode: number;
  /** Updates made when it ended. */
  readonly step: number;
  readonly performance: number;
  readonly reward: number;
  readonly loss: number;
  /** Share of each task, by its name. */
  readonly distribution: Readonly<Record<string, number>>;
}

/** The episodes of a run, in order: all or, if there are very many, the first ones and every n-th after them. */
export interface LoggedEpisodes {
  readonly count: number;
  /** The episode with this index, from 0, or the last one kept before it. */
  at(place: number): LoggedEpisode;
  /** The episode after which the best model was saved. */
  readonly best: LoggedEpisode | undefined;
}

/** Reads the episodes of a run, whose best model is that of `bestUpdate`. Lines that are not wanted are not parsed. */
export function readEpisodes(run: string, bestUpdate: number | undefined): LoggedEpisodes {
  const file = metricsFile(run);
  let count = 0;
  for (const { bytes } of fileLines(file)) if (isEpisode(bytes)) count++;
  const every = Math.ceil(count / MOST);
  const kept = new Map<number, LoggedEpisode>();
  let best: LoggedEpisode | undefined;
  let [place, line] = [0, 0];
  for (const { bytes } of fileLines(file)) {
    line++;
    if (!isEpisode(bytes)) continue;
    const isWanted = place < MOST || place % every === 0 || place === count - 1;
    const isBest = bestUpdate !== undefined && best === undefined && bytes.includes(`"step":${bestUpdate}`);
    if (isWanted || isBest) {
      const episode = episodeIn(bytes, file, line);
      if (isWanted) kept.set(place, episode);
      if (episode.step === bestUpdate) best ??= episode;
    }
    // The log may have grown since its episodes were counted.
    if (++place === count) break;
  }
  return { count: Math.min(count, place), best, at: (index) => kept.get(index) ?? kept.get(index - (index % every))! };
}

/** Episodes up to which all are kept; about as many later ones. */
const MOST = 4096;

/** Updates and their seconds. */
export interface LoggedTime {
  readonly steps: number;
  readonly seconds: number;
}

/**
 * Updates and their seconds by the times of the log. `all` has the time between any two lines of one session, `training`
 * only the time up to a line that is not an episode's, so that no validation lies in between.
 */
export function readTimes(run: string): { readonly training: LoggedTime; readonly all: LoggedTime } {
  const file = timingsFile(run);
  const timings = fileLines(file);
  const training = { steps: 0, seconds: 0 };
  const all = { steps: 0, seconds: 0 };
  let before = { step: Number.NaN, seconds: Number.NaN };
  let line = 0;
  for (const { bytes } of fileLines(metricsFile(run))) {
    line++;
    const { value } = timings.next();
    if (value === undefined) break;
    const record = recordIn(value.bytes, file, line);
    const now = { step: Number(record.step), seconds: Number(record.seconds) };
    const [steps, seconds] = [now.step - before.step, now.seconds - before.seconds];
    before = now;
    // The clock of a session that was resumed starts again from 0.
    if (!(seconds > 0) || !(steps >= 0)) continue;
    for (const sum of isEpisode(bytes) ? [all] : [training, all]) {
      sum.steps += steps;
      sum.seconds += seconds;
    }
  }
  timings.return(undefined);
  return { training, all };
}

function isEpisode(line: Buffer | undefined): line is Buffer {
  return line?.includes('"episode":') ?? false;
}

function episodeIn(bytes: Buffer, file: string, line: number): LoggedEpisode {
  const record = recordIn(bytes, file, line);
  const { distribution } = record;
  if (typeof distribution !== 'object' || distribution === null) {
    throw new InputError('expected the shares of the tasks', { file, line, key: 'distribution' });
  }
  const [episode, step, performance, reward, loss] = ['episode', 'step', 'performance', 'reward', 'loss'].map((key) =>
    typeof record[key] === 'number' ? record[key] : Number.NaN,
  );
  return { episode, step, performance, reward, loss, distribution: distribution as Record<string, number> };
}
