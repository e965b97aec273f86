import { closeSync, existsSync, lstatSync, readSync, statSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { z } from 'zod';
import { InputError } from '../errors.js';
import { openRegular, readingWithin } from '../files.js';
import { kindOf } from '../problems/index.js';
import {
  dataName,
  type EvaluatedData,
  evaluationFolders,
  isRunning,
  MEMBERS_FILE,
  memberFolder,
  metricsFile,
  parseLogLine,
  readMembers,
  readResult,
  readScores,
  scoresFile,
  timingsFile,
  type ValidationMeasure,
  validationMeasure,
} from '../run/index.js';
import { strategyNamed } from '../schedule/index.js';
import { checkpointStamp, RunDescriptions, refuseLarge, runFile, withoutPaths } from './run-folders.js';
import { MetricsReader, type RunMetrics } from './run-metrics.js';
import { type SchedulerView, schedulerView } from './scheduler-view.js';

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
  /** Whether `api/runs/…/scheduler` shows what its scheduler prefers. */
  readonly hasScheduler?: boolean;
  /** ISO 8601. */
  readonly created?: string;
  readonly seed?: number;
  readonly step?: number;
  /** Updates that it is to have, and seconds until then at its present speed; left out where they are not known. */
  readonly updates?: number;
  readonly secondsLeft?: number;
  /** Best validation performance so far. */
  readonly best?: number | null;
  /** What the validation measures: a loss is minus the performance. */
  readonly validation?: Pick<ValidationMeasure, 'name' | 'better'>;
}

/** All that the page shows of a run. */
export interface RunReport extends Omit<RunSummary, 'step' | 'best'>, RunMetrics, ShownEvaluations {
  /** Figures of the best model on test data, once training is over. */
  readonly test: Readonly<Record<string, number>> | null;
}

/** Reads runs again and again, each time what is new. */
export class RunReports {
  private readonly metrics = new MetricsReader();
  private readonly schedulers = new Map<string, { stamp: string; view: SchedulerView | { readonly reason: string } }>();

  constructor(private readonly descriptions: RunDescriptions = new RunDescriptions()) {}

  /** A run in a line. A folder that is being written, or is damaged, gives a message instead of figures. */
  summary(id: string, path: string): Promise<RunSummary> {
    return readingWithin(path, () => this.summaryOf(id, path));
  }

  report(id: string, path: string): Promise<RunReport> {
    return readingWithin(path, () => this.reportOf(id, path));
  }

  /** What the scheduler of a run prefers; read when a checkpoint has been saved and not before. */
  scheduler(path: string): SchedulerView | { readonly reason: string } {
    const stamp = checkpointStamp(path, { checkpoint: 'latest' });
    const known = this.schedulers.get(path);
    if (known?.stamp === stamp) return known.view;
    const view = readingWithin(path, () => {
      try {
        return schedulerView(path, this.descriptions.open(path).config, lastTasks(path));
      } catch (error) {
        return { reason: reasonOf(error, path) };
      }
    });
    this.schedulers.set(path, { stamp, view });
    if (this.schedulers.size > KNOWN_SCHEDULERS) this.schedulers.delete([...this.schedulers.keys()][0]);
    return view;
  }

  /** Forgets the runs that are not among these. */
  keep(paths: ReadonlySet<string>): void {
    this.metrics.keep(paths);
    this.descriptions.keep(paths);
  }

  /** Of a run that consists of others: their updates together, and the mean of their best performances. */
  private async courseOf(path: string): Promise<RunMetrics> {
    const members = membersOf(path);
    if (members === undefined) return this.metrics.read(path);
    const courses = await Promise.all(members.map((member) => this.metrics.read(member)));
    const best = courses.flatMap((course) => course.best ?? []);
    return {
      ...nothing,
      step: sum(courses.map(({ step }) => step)),
      best: best.length === 0 ? null : sum(best) / best.length,
      badLines: sum(courses.map(({ badLines }) => badLines)),
    };
  }

  private async summaryOf(id: string, path: string): Promise<RunSummary> {
    try {
      const { info, config } = this.descriptions.open(path);
      const { problem, strategy, training } = names.parse(config);
      const { step, best } = await this.courseOf(path);
      const state = info.state === 'running' && !isRunning(path) ? 'killed' : info.state;
      const updates = training.episodes * training.steps * (membersOf(path)?.length ?? 1);
      return {
        id,
        state,
        ...(updates > 0 && { updates }),
        ...(state === 'running' && updates > 0 && secondsLeft(path, updates)),
        kind: typeof problem.module === 'string' ? basename(problem.module, extname(problem.module)) : problem.kind,
        data: withoutPaths(dataName(problem.data, kindOf(problem)?.madeUpData)),
        strategy: strategy.name,
        ...(strategyNamed(strategy.name)?.showsScheduler && { hasScheduler: true }),
        created: info.created,
        seed: info.seed,
        validation: pickMeasure(validationMeasure(config, info)),
        step,
        best,
      };
    } catch (error) {
      return { id, state: 'unreadable', message: reasonOf(error, path) };
    }
  }

  private async reportOf(id: string, path: string): Promise<RunReport> {
    const summary = await this.summaryOf(id, path);
    if (summary.state === 'unreadable') return { ...summary, ...nothing };
    const problems: string[] = [];
    const attempt = async <T>(read: () => T | Promise<T>, otherwise: T): Promise<T> => {
      try {
        return await read();
      } catch (error) {
        problems.push(reasonOf(error, path));
        return otherwise;
      }
    };
    const metrics = await attempt<RunMetrics>(() => this.courseOf(path), nothing);
    const evaluations = await attempt<ShownEvaluations>(() => runEvaluations(path), nothing);
    const test = await attempt(() => testFigures(path), null);
    const { badLines } = metrics;
    if (badLines > 0) {
      const lines = badLines === 1 ? 'line holds no record and is' : 'lines hold no record and are';
      problems.push(`metrics.jsonl: ${badLines} ${lines} left out`);
    }
    return { ...summary, ...metrics, ...evaluations, test, problems: [...problems, ...evaluations.problems] };
  }
}

/** Folders of the runs that a run consists of; undefined if it was trained by itself. */
function membersOf(run: string): string[] | undefined {
  if (runFile(run, MEMBERS_FILE) === undefined) return undefined;
  return readMembers(run)?.map(({ name }) => memberFolder(run, name));
}

function pickMeasure({ name, better }: ValidationMeasure): Pick<ValidationMeasure, 'name' | 'better'> {
  return { name, better };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

const KNOWN_SCHEDULERS = 50;

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
    training: z.looseObject({ episodes: z.number(), steps: z.number() }).catch({ episodes: 0, steps: 0 }),
  })
  .catch({ problem: { kind: 'unknown' }, strategy: { name: 'unknown' }, training: { episodes: 0, steps: 0 } });

/** At the speed of the last lines of the log of times. */
function secondsLeft(run: string, updates: number): { secondsLeft: number } | undefined {
  const lines = lastLines(timingsFile(run), 4000);
  const times = lines.flatMap((line) => timeSchema.safeParse(parseLogLine(line)).data ?? []);
  const [first, last] = [times[0], times.at(-1)];
  if (first === undefined || last === undefined || last.step <= first.step) return undefined;
  const left = ((updates - last.step) * (last.seconds - first.seconds)) / (last.step - first.step);
  return left >= 0 && Number.isFinite(left) ? { secondsLeft: Math.round(left) } : undefined;
}

const timeSchema = z.looseObject({ step: z.number(), seconds: z.number() });

/** Names of the tasks in the last episode of the log. */
function lastTasks(run: string): string[] {
  const records = lastLines(metricsFile(run), 100_000).map((line) => episodeSchema.safeParse(parseLogLine(line)));
  return Object.keys(records.findLast(({ success }) => success)?.data?.distribution ?? {});
}

const episodeSchema = z.looseObject({ distribution: z.record(z.string(), z.unknown()) });

/** Whole lines of the last bytes of a file; none if there is no such file. */
function lastLines(path: string, most: number): string[] {
  if (!existsSync(path)) return [];
  const size = statSync(path).size;
  const file = openRegular(path);
  try {
    const bytes = Buffer.alloc(Math.min(size, most));
    const text = bytes.toString('utf8', 0, readSync(file, bytes, 0, bytes.length, size - bytes.length));
    // What precedes the first newline may be half a line, what follows the last one is being written.
    return text.split('\n').slice(size > most ? 1 : 0, -1);
  } finally {
    closeSync(file);
  }
}

function testFigures(path: string): Record<string, number> | null {
  const test = runFile(path, 'result.json') && readResult(path)?.test;
  return test ? Object.fromEntries(Object.entries(test).filter(([, value]) => !Number.isNaN(value))) : null;
}

/** A run can vanish between being listed and being read; what else can happen to a folder is an InputError too. */
function reasonOf(error: unknown, run: string): string {
  if (error instanceof InputError) return withoutPaths(error.message, run);
  const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
  if (code === 'ENOENT') return 'the folder has just been deleted';
  if (code !== undefined) return `the operating system answers ${code}`;
  throw error;
}

/** One point of a latency–quality curve. */
export interface TranslationPoint {
  /** The policy; the folder of the evaluation where it does not say. */
  readonly name: string;
  readonly split: string;
  /** Null in evaluations of earlier versions. */
  readonly data: EvaluatedData | null;
  /** BLEU of the tokenised text. */
  readonly bleu: number;
  /** In tokens, against the length of the output. */
  readonly AL: number;
  readonly AP: number;
}

/** Figures of a forecast on one part of the data. */
export interface ShownForecast {
  readonly split: string;
  readonly data: EvaluatedData | null;
  /** Null in JSON where one is undefined, as a correlation without a spread. */
  readonly figures: Readonly<Record<string, number | null>>;
}

export interface ShownEvaluations {
  readonly translation: readonly TranslationPoint[];
  readonly forecast: readonly ShownForecast[];
  /** What could not be read. */
  readonly problems: readonly string[];
}

/** What `tcts evaluate` has left in a run folder. */
function runEvaluations(run: string): ShownEvaluations {
  const translation: TranslationPoint[] = [];
  const forecast: ShownForecast[] = [];
  const problems: string[] = [];
  const isLink = lstatSync(join(run, 'evaluation'), { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  if (isLink) problems.push('evaluation: it is a link, so it is not followed');
  for (const folder of isLink ? [] : evaluationFolders(run)) {
    try {
      refuseLarge(scoresFile(folder));
      const scores = readScores(folder);
      const { split, data = null } = scores;
      if ('k' in scores) {
        const { bleu, latency, policy = basename(folder) } = scores;
        const { AL, AP } = latency.stacl ?? { AL: Number.NaN, AP: Number.NaN };
        // Of a system that has written nothing there is no point to draw.
        if (![bleu, AL, AP].some(Number.isNaN)) translation.push({ name: policy, split, data, bleu, AL, AP });
      } else {
        const { annualReturn, informationRatio } = scores.backtest.excessAfterCosts;
        const annual = { 'excess return': annualReturn, 'information ratio': informationRatio };
        forecast.push({ split, data, figures: { ...scores.scores, ...annual } });
      }
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      problems.push(withoutPaths(error.message, run));
    }
  }
  return { translation, forecast, problems };
}
