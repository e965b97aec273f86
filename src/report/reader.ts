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
import { type Episodes, readEpisodes, trainingSpeed, updateSeconds } from './course.js';
import type { ForecastFigures, TranslationFigures } from './evaluations.js';
import type { ReportedRun } from './runs.js';
import { readSeries, type Series } from './series.js';

/** A file of a run that could not be read, and so was left out. */
export interface Unreadable {
  readonly name: string;
  readonly reason: string;
}

/**
 * Reads the long files of runs when a table or figure asks for them, each once. What cannot be read is undefined, and
 * noted: it never breaks a report.
 */
export class SeriesReader {
  private readonly unreadable = new Map<string, Unreadable>();
  private readonly known = new Map<string, unknown>();

  get problems(): readonly Unreadable[] {
    return [...this.unreadable.values()];
  }

  episodes(run: ReportedRun): Episodes | undefined {
    return this.once(run, 'episodes', () => readEpisodes(run));
  }

  /** Updates per second. */
  speed(run: ReportedRun): number | undefined {
    return this.once(run, 'speed', () => trainingSpeed(run));
  }

  /** Seconds an update takes, validations included. */
  updateSeconds(run: ReportedRun): number | undefined {
    return this.once(run, 'update', () => updateSeconds(run));
  }

  /** `daily`: scores of each day; `backtest`: returns of the portfolio and the market. */
  series(run: ReportedRun, { folder }: ForecastFigures, name: 'daily' | 'backtest'): Series | undefined {
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

/** The metric that a signature of sacreBLEU stands for. */
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
