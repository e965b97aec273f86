import { z } from 'zod';
import { InputError } from '../errors.js';
import { readJsonFile } from '../json-file.js';
import { readingWithin } from '../regular-file.js';
import { dataName, isRunning, openRun } from '../run/index.js';
import { type Evaluations, runEvaluations } from './run-evaluations.js';
import { runFile } from './run-folders.js';
import type { MetricsReader, RunMetrics } from './run-metrics.js';

/** A line of the list of runs. */
export interface RunSummary {
  readonly id: string;
  /** `killed`: it says that it is running, but no process is at work. `unreadable`: see `message`. */
  readonly state: 'running' | 'finished' | 'interrupted' | 'failed' | 'killed' | 'unreadable';
  readonly message?: string;
  readonly kind?: string;
  /** What the run's own data are called. */
  readonly data?: string;
  readonly strategy?: string;
  /** ISO 8601. */
  readonly created?: string;
  readonly seed?: number;
  readonly step?: number;
  /** Best validation performance so far. */
  readonly best?: number | null;
}

/** All that the page shows of a run. */
export interface RunReport extends Omit<RunSummary, 'step' | 'best'>, RunMetrics, Evaluations {
  /** Figures of the best model on test data, once training is over. */
  readonly test: Readonly<Record<string, number>> | null;
}

/** A run in a line. A folder that is being written, or is damaged, gives a message instead of figures. */
export function runSummary(id: string, path: string, reader: MetricsReader): Promise<RunSummary> {
  return readingWithin(path, () => summaryOf(id, path, reader));
}

export function runReport(id: string, path: string, reader: MetricsReader): Promise<RunReport> {
  return readingWithin(path, () => reportOf(id, path, reader));
}

async function summaryOf(id: string, path: string, reader: MetricsReader): Promise<RunSummary> {
  try {
    const { info, config } = openRun(path);
    const { problem, strategy } = names.parse(config);
    const { step, best } = await reader.read(path);
    return {
      id,
      state: info.state === 'running' && !isRunning(path) ? 'killed' : info.state,
      kind: problem.kind,
      data: dataName(problem.data),
      strategy: strategy.name,
      created: info.created,
      seed: info.seed,
      step,
      best,
    };
  } catch (error) {
    return { id, state: 'unreadable', message: reasonOf(error) };
  }
}

async function reportOf(id: string, path: string, reader: MetricsReader): Promise<RunReport> {
  const summary = await summaryOf(id, path, reader);
  if (summary.state === 'unreadable') return { ...summary, ...nothing };
  const problems: string[] = [];
  const attempt = async <T>(read: () => T | Promise<T>, otherwise: T): Promise<T> => {
    try {
      return await read();
    } catch (error) {
      problems.push(reasonOf(error));
      return otherwise;
    }
  };
  const metrics = await attempt<RunMetrics>(() => reader.read(path), nothing);
  const evaluations = await attempt<Evaluations>(() => runEvaluations(path), nothing);
  const test = await attempt(() => testFigures(path), null);
  const { badLines } = metrics;
  if (badLines > 0) {
    const lines = badLines === 1 ? 'line holds no record and is' : 'lines hold no record and are';
    problems.push(`metrics.jsonl: ${badLines} ${lines} left out`);
  }
  return { ...summary, ...metrics, ...evaluations, test, problems: [...problems, ...evaluations.problems] };
}

const nothing = {
  step: 0,
  best: null,
  badLines: 0,
  losses: [],
  episodes: [],
  tasks: [],
  translation: [],
  forecast: [],
  problems: [],
  test: null,
};

const names = z
  .looseObject({
    problem: z.looseObject({ kind: z.string().default('unknown') }).default({ kind: 'unknown' }),
    strategy: z.looseObject({ name: z.string().default('unknown') }).default({ name: 'unknown' }),
  })
  .catch({ problem: { kind: 'unknown' }, strategy: { name: 'unknown' } });

const resultSchema = z.looseObject({ test: z.record(z.string(), z.number().nullable()).nullable() });

function testFigures(path: string): Record<string, number> | null {
  const file = runFile(path, 'result.json');
  if (file === undefined) return null;
  const { test } = readJsonFile(file, resultSchema);
  return (
    test && Object.fromEntries(Object.entries(test).filter((entry): entry is [string, number] => entry[1] !== null))
  );
}

/** A run can vanish between being listed and being read; what else can happen to a folder is an InputError too. */
function reasonOf(error: unknown): string {
  if (error instanceof InputError) return error.message;
  const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
  if (code === 'ENOENT') return 'the folder has just been deleted';
  if (code !== undefined) return `the operating system answers ${code}`;
  throw error;
}
