import { join } from 'node:path';
import { InputError } from '../errors.js';
import { readText } from '../files.js';
import {
  bleuMetric,
  measureSegments,
  type SegmentMetric,
  type SegmentStatistics,
  TOKENIZER_NAMES,
  type TokenizerName,
} from '../metrics/index.js';
import {
  type LoggedEpisodes,
  type LoggedTime,
  readEpisodes,
  readTimes,
  type SavedForecastFigures,
  type TranslationFigures,
} from '../run/index.js';
import type { ReportedRun } from './runs.js';

/** A file of a run that could not be read and is left out. */
export interface Unreadable {
  readonly name: string;
  readonly reason: string;
}

/**
 * Reads the long files of runs on demand, each once. What cannot be read is undefined and
 * noted: it never breaks a report.
 */
export class SeriesReader {
  private readonly unreadable = new Map<string, Unreadable>();
  private readonly known = new Map<string, unknown>();

  get problems(): readonly Unreadable[] {
    return [...this.unreadable.values()];
  }

  episodes(run: ReportedRun): LoggedEpisodes | undefined {
    if (run.members !== undefined) return undefined;
    return this.once(run, 'episodes', () => readEpisodes(run.folder, run.result?.best?.update));
  }

  /**
   * Updates per second, without validations unless episodes are all that was logged. NaN if there are fewer than two
   * lines.
   */
  speed(run: ReportedRun): number | undefined {
    const times = this.times(run);
    if (times === undefined) return undefined;
    const { steps, seconds } = times.training.seconds > 0 ? times.training : times.all;
    return steps / seconds;
  }

  /** Seconds an update takes with its share of validations. NaN if there are fewer than two lines. */
  updateSeconds(run: ReportedRun): number | undefined {
    const times = this.times(run);
    return times && times.all.seconds / times.all.steps;
  }

  private times(run: ReportedRun): { readonly training: LoggedTime; readonly all: LoggedTime } | undefined {
    if (run.members !== undefined) return undefined;
    return this.once(run, 'times', () => readTimes(run.folder));
  }

  /** `daily`: scores of each day; `backtest`: returns of the portfolio and the market. */
  series(run: ReportedRun, { folder }: SavedForecastFigures, name: 'daily' | 'backtest'): Series | undefined {
    const file = join(folder, `${name}.csv`);
    return this.once(run, file, () => readSeries(file, SERIES_COLUMNS[name]));
  }

  /** The statistics of sacreBLEU for every sentence of an evaluation. */
  segments(run: ReportedRun, { folder, signature }: TranslationFigures): SegmentStatistics | undefined {
    return this.once(run, folder, () => {
      const [outputs, references] = ['output.txt', 'reference.txt'].map((name) => linesOf(join(folder, name)));
      return measureSegments(metricOf(signature, folder), outputs, [references]);
    });
  }

  private once<T>(run: ReportedRun, what: string, read: () => T): T | undefined {
    const key = `${run.folder}\n${what}`;
    if (this.known.has(key)) return this.known.get(key) as T | undefined;
    let value: T | undefined;
    try {
      value = read();
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      this.unreadable.set(error.message, { name: run.name, reason: error.message });
    }
    this.known.set(key, value);
    return value;
  }
}

/** The metric of a sacreBLEU signature. */
export function metricOf(signature: string, file: string): SegmentMetric {
  const tokenize = /\btok:([^|]+)/.exec(signature)?.[1] as TokenizerName;
  const lowercase = /\bcase:lc\b/.test(signature);
  if (TOKENIZER_NAMES.includes(tokenize)) return bleuMetric({ tokenize, lowercase });
  throw new InputError(`expected a signature with a known tokeniser, found ${signature}`, { file });
}

const SERIES_COLUMNS = { daily: ['RankIC'], backtest: ['return', 'cost', 'benchmark'] } as const;

function linesOf(file: string): string[] {
  return readText(file).split('\n').slice(0, -1);
}

/** A table of figures by date, as `tcts evaluate` writes them. */
export interface Series {
  readonly dates: readonly string[];
  /** The other columns by name; NaN if a cell is empty. */
  readonly columns: Readonly<Record<string, Float64Array>>;
}

/** Reads a CSV file with a column `date` first and numbers in all others. */
function readSeries(file: string, columns: readonly string[]): Series {
  const [head, ...lines] = readText(file).trimEnd().split('\n');
  const names = head.split(',');
  const missing = ['date', ...columns].filter((name) => !names.includes(name));
  if (missing.length > 0) {
    throw new InputError(`expected a column ${missing[0]}, found ${head}`, { file, line: 1 });
  }
  const values = names.map(() => new Float64Array(lines.length));
  const dates = lines.map((line, i) => {
    const cells = line.split(',');
    if (cells.length !== names.length) {
      throw new InputError(`expected ${names.length} cells, found ${cells.length}`, { file, line: i + 2 });
    }
    for (let c = 1; c < cells.length; c++) values[c][i] = cells[c] === '' ? Number.NaN : Number(cells[c]);
    return cells[0];
  });
  return { dates, columns: Object.fromEntries(names.slice(1).map((name, c) => [name, values[c + 1]])) };
}

/** The mean of several series, on the dates that they all have, in order; a NaN in one of them is left out. */
export function meanSeries(all: readonly Series[], column: string): { dates: string[]; values: number[] } {
  const sums = new Map<string, { sum: number; count: number; seen: number }>();
  for (const { dates, columns } of all) {
    for (const [i, date] of dates.entries()) {
      const entry = sums.get(date) ?? { sum: 0, count: 0, seen: 0 };
      const value = columns[column][i];
      entry.seen++;
      if (!Number.isNaN(value)) {
        entry.sum += value;
        entry.count++;
      }
      sums.set(date, entry);
    }
  }
  const common = [...sums].filter(([, { seen }]) => seen === all.length).sort(([a], [b]) => (a < b ? -1 : 1));
  return { dates: common.map(([date]) => date), values: common.map(([, { sum, count }]) => sum / count) };
}
