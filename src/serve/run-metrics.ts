import { statSync } from 'node:fs';
import { readMetrics } from '../run/index.js';
import { runFile } from './run-folders.js';

/** The course of a training, as its log has it. */
export interface RunMetrics {
  /** Updates logged so far. */
  readonly step: number;
  /** [update, training loss]; thinned out where there are many. */
  readonly losses: readonly (readonly [number, number])[];
  readonly episodes: readonly Episode[];
  readonly tasks: readonly string[];
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

/** Reads the logs of runs again and again, but only when they have grown. */
export class MetricsReader {
  private readonly known = new Map<string, { stamp: string; metrics: RunMetrics }>();

  read(run: string): RunMetrics {
    const file = runFile(run, 'metrics.jsonl');
    if (file === undefined) return { step: 0, losses: [], episodes: [], tasks: [] };
    const { mtimeMs, size } = statSync(file);
    const stamp = `${mtimeMs} ${size}`;
    const before = this.known.get(run);
    if (before?.stamp === stamp) return before.metrics;
    const metrics = summarise(readMetrics(file));
    this.known.set(run, { stamp, metrics });
    return metrics;
  }

  /** Forgets the runs that are not among these. */
  keep(runs: ReadonlySet<string>): void {
    for (const run of this.known.keys()) if (!runs.has(run)) this.known.delete(run);
  }
}

function summarise(records: readonly Record<string, unknown>[]): RunMetrics {
  const losses: [number, number][] = [];
  const episodes: Episode[] = [];
  const tasks = new Set<string>();
  let last = 0;
  for (const record of records) {
    const step = numberOf(record.step);
    if (step === null) continue;
    last = Math.max(last, step);
    const loss = numberOf(record.loss);
    const episode = numberOf(record.episode);
    if (episode === null) {
      if (loss !== null) losses.push([step, loss]);
      continue;
    }
    const shares = sharesOf(record.distribution);
    for (const name of shares.keys()) tasks.add(name);
    episodes.push({
      step,
      episode,
      loss,
      performance: numberOf(record.performance),
      reward: numberOf(record.reward),
      entropy: numberOf(record.entropy),
      distribution: [...tasks].map((name) => shares.get(name) ?? 0),
    });
  }
  return { step: last, losses: thinned(losses), episodes: thinned(episodes), tasks: [...tasks] };
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}

function sharesOf(value: unknown): Map<string, number> {
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  return new Map(entries.filter((entry): entry is [string, number] => typeof entry[1] === 'number'));
}

/** Every n-th, and the last one. */
function thinned<T>(all: readonly T[]): T[] {
  const every = Math.ceil(all.length / MOST_POINTS);
  return all.filter((_, i) => i % every === 0 || i === all.length - 1);
}

/** More than a chart has pixels for. */
const MOST_POINTS = 1000;
