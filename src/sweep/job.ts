import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { InputError } from '../errors.js';
import { builtFile, fileError, makeFolder, readJsonFile, writeFileAtomic } from '../files.js';
import { parseSource } from '../run/config/sources.js';
import { requireSameConfig, runConfigFile } from '../run/folder.js';
import { hasResult, isRun, LogTail, metricsFile, openRun, readMetrics } from '../run/index.js';
import { INTERRUPTED } from '../run/progress.js';
import { strategyNamed } from '../schedule/index.js';

/** One run of a sweep: processes of the tool that end in a finished run folder. */
export interface Job {
  /** Name of the run folder, unique and determined by the grid. */
  readonly name: string;
  /** The run folder. */
  readonly folder: string;
  /** Configuration of the run, complete, as YAML. */
  readonly config: string;
  /**
   * What to run after the training: a command of the tool and its flags, e.g. [['evaluate', '--k', '1,3']]; the run
   * folder is inserted between them. Once a run has ended it may be submitted again with other commands: it is not trained
   * a second time, and commands that have been run are not run again.
   */
  readonly after: readonly (readonly string[])[];
  /** Cores it uses: `coresOf` its configuration. */
  readonly cores: number;
  /** Train for this many updates at first; submitted again, the run continues from there. Default: to the end. */
  readonly until?: number;
}

/** Progress of a job. */
export interface JobProgress {
  /** Updates made. */
  readonly step: number;
  /** Updates of the whole run; undefined if not known in advance. */
  readonly steps: number | undefined;
  /** Best validation performance so far, if there was a validation. */
  readonly best?: number;
}

/** Outcome of a job. */
export type Outcome =
  | { readonly state: 'done' }
  /** The reason is one sentence, without secrets. */
  | { readonly state: 'failed'; readonly reason: string }
  /** It was asked to stop and saved its state: submitted again, it continues. */
  | { readonly state: 'stopped' };

/** Where jobs are run: processes on this machine, or workers that listen to a queue. */
export interface Executor {
  /**
   * Runs a job, or resumes it if its folder exists, and settles when it has ended; it accepts any number of jobs.
   * `onProgress` is called when the job begins, and whenever it makes progress.
   */
  submit(job: Job, onProgress: (progress: JobProgress) => void): Promise<Outcome>;
  /** Lets running jobs save their state and stop; jobs that had not started are returned (outcome: stopped). */
  close(): Promise<void>;
}

/** How a job is stopped and watched. */
export interface RunJobOptions extends StopOptions {
  /** Called whenever the run has logged something, about twice a second at most. */
  readonly onProgress?: (progress: JobProgress) => void;
}

/**
 * Does the rest of a job: trains, or resumes an interrupted training, or keeps a finished one, and runs
 * those commands of `after` that have not been run. A folder that holds a run with another configuration is rejected.
 */
export async function runJob(job: Job, options: RunJobOptions = {}): Promise<Outcome> {
  try {
    const trained = isTrained(job) || isPaused(job) ? DONE : await train(job, options);
    if (trained.state !== 'done' || job.until !== undefined) return trained;
    const done = verbsDone(job);
    for (const [verb, ...flags] of verbsLeft(job)) {
      const outcome = await runTool([verb, job.folder, ...flags], options);
      if (outcome.state !== 'done') return outcome;
      done.push([verb, ...flags]);
      writeFileAtomic(journalOf(job), `${JSON.stringify({ done }, null, 2)}\n`);
    }
    return DONE;
  } catch (error) {
    const told = fileError(error, 'write', job.folder);
    if (told instanceof InputError) return { state: 'failed', reason: told.message };
    throw error;
  }
}

/** Whether there is nothing left to do. A folder that holds a run with another configuration is rejected. */
export function isDone(job: Job): boolean {
  return isPaused(job) || (isTrained(job) && verbsLeft(job).length === 0);
}

/** Whether the run has got as far as it should for now. */
function isPaused(job: Job): boolean {
  const { folder, until } = job;
  if (until === undefined || !isRun(folder)) return false;
  if (isTrained(job)) return true;
  return episodesOf(folder).some(({ step }) => step >= until);
}

/** Validation performance of a run where it was best within its first updates; an error if there was no validation yet. */
export function performanceWithin(folder: string, updates: number): number {
  const found = episodesOf(folder).filter(({ step }) => step <= updates);
  if (found.length > 0) return Math.max(...found.map(({ performance }) => performance));
  throw new InputError(`expected a validation within ${updates} updates`, { file: metricsFile(folder) });
}

function episodesOf(folder: string): { readonly step: number; readonly performance: number }[] {
  const file = metricsFile(folder);
  if (!existsSync(file)) return [];
  return readMetrics(file).flatMap(({ step, performance }) =>
    typeof step === 'number' && typeof performance === 'number' ? [{ step, performance }] : [],
  );
}

function isTrained({ folder, config }: Job): boolean {
  if (!isRun(folder)) return false;
  const run = openRun(folder);
  requireSameConfig(run.config, parseSource(config, folder).values, runConfigFile(folder));
  // The result is written last, after the state.
  return run.info.state === 'finished' && hasResult(folder);
}

async function train(job: Job, options: RunJobOptions): Promise<Outcome> {
  const { onProgress } = options;
  const advance = followed(job.folder, updatesOf(job.config));
  const report = () => {
    const progress = advance();
    if (progress !== undefined) onProgress?.(progress);
  };
  const timer = onProgress && setInterval(report, POLL_MILLISECONDS);
  try {
    const pause = job.until === undefined ? [] : ['--until', String(job.until)];
    // A run that consists of others keeps to the cores of the job.
    return await runTool([...trainArguments(job), ...pause, '--cores', String(job.cores), '--quiet'], options);
  } finally {
    clearInterval(timer);
    if (onProgress) report();
  }
}

/**
 * Follows a run that another process trains: its progress, if it has logged something since the last call. It only
 * informs: a log that cannot be read now, and lines that are not records, are skipped.
 */
export function followed(run: string, steps: number | undefined): () => JobProgress | undefined {
  const tail = new LogTail(metricsFile(run));
  let [step, best] = [0, Number.NEGATIVE_INFINITY];
  const restart = () => {
    [step, best] = [0, Number.NEGATIVE_INFINITY];
  };
  return () => {
    let isNew = false;
    try {
      for (const { record } of tail.read(restart)) {
        if (record === undefined) continue;
        isNew = true;
        if (typeof record.step === 'number') step = record.step;
        if (typeof record.performance === 'number') best = Math.max(best, record.performance);
      }
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
    }
    if (!isNew) return undefined;
    return best === Number.NEGATIVE_INFINITY ? { step, steps } : { step, steps, best };
  };
}

function trainArguments({ folder, config }: Job): string[] {
  if (isRun(folder)) return ['train', folder, '--resume'];
  const file = runConfigFile(folder);
  makeFolder(folder);
  writeFileAtomic(file, config);
  return ['train', file, '--set', `out=${JSON.stringify(dirname(folder))}`, '--set', `name=${basename(folder)}`];
}

/** E·S; undefined for a strategy that trains several models in sequence. */
function updatesOf(config: string): number | undefined {
  const { training, strategy } = parseSource(config, 'config.yaml').values as {
    training: { episodes: number; steps: number };
    strategy: { name: string };
  };
  return strategyNamed(strategy.name)?.severalModels ? undefined : training.episodes * training.steps;
}

function verbsLeft(job: Job): (readonly string[])[] {
  const done = verbsDone(job);
  return job.after.filter((verb) => !done.some((other) => isDeepStrictEqual(other, verb)));
}

function verbsDone(job: Job): string[][] {
  const path = journalOf(job);
  return existsSync(path) ? readJsonFile(path, journalSchema).done : [];
}

const journalSchema = z.object({ done: z.array(z.array(z.string())) });

/** Where a run folder records which commands have been run. */
function journalOf({ folder }: Job): string {
  return join(folder, 'job.json');
}

const DONE: Outcome = { state: 'done' };

const POLL_MILLISECONDS = 500;

export interface StopOptions {
  /** Fires to let the process save its state and stop. */
  readonly signal?: AbortSignal;
  /** Fires when it must be gone, saved or not. */
  readonly kill?: AbortSignal;
}

/**
 * Runs the tool as a separate process. When `signal` fires, or when this process dies, it is asked to save its state and
 * stop. It does not receive the Ctrl-C that a terminal sends to all.
 */
async function runTool(args: readonly string[], { signal, kill }: StopOptions = {}): Promise<Outcome> {
  if (signal?.aborted) return { state: 'stopped' };
  const tether = pathToFileURL(builtFile('sweep/tether.js')).href;
  const child = spawn(process.execPath, ['--import', tether, builtFile('cli/main.js'), ...args], {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    detached: true,
    windowsHide: true,
  });
  const release = pauseWithUs(child);
  const stop = () => child.kill('SIGTERM');
  const end = () => child.kill('SIGKILL');
  signal?.addEventListener('abort', stop, { once: true });
  kill?.addEventListener('abort', end, { once: true });
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-KEPT);
  });
  try {
    const [code, by] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
    if (code === 0) return { state: 'done' };
    if (kill?.aborted && by === 'SIGKILL') return { state: 'stopped' };
    if (signal?.aborted && (code === INTERRUPTED || by === 'SIGTERM')) return { state: 'stopped' };
    return { state: 'failed', reason: reasonOf(args[0], errors, code, by) };
  } catch (error) {
    return { state: 'failed', reason: `tcts ${args[0]} cannot be started: ${(error as Error).message}` };
  } finally {
    release();
    signal?.removeEventListener('abort', stop);
    kill?.removeEventListener('abort', end);
  }
}

const children = new Set<ChildProcess>();

/**
 * Ctrl-Z stops this process and also its children, which the terminal does not reach; `fg` and `bg` continue all. The
 * children get SIGSTOP: they are in their own sessions without a terminal, where SIGTSTP has no effect.
 */
function pauseWithUs(child: ChildProcess): () => void {
  if (children.size === 0) {
    process.on('SIGTSTP', pause);
    process.on('SIGCONT', goOn);
  }
  children.add(child);
  return () => {
    children.delete(child);
    if (children.size > 0) return;
    process.off('SIGTSTP', pause);
    process.off('SIGCONT', goOn);
  };
}

function pause(): void {
  for (const child of children) child.kill('SIGSTOP');
  process.kill(process.pid, 'SIGSTOP');
}

function goOn(): void {
  for (const child of children) child.kill('SIGCONT');
}

/** The tool's last message, or else how it ended. */
function reasonOf(verb: string, errors: string, code: number | null, signal: NodeJS.Signals | null): string {
  const said = errors.slice(errors.lastIndexOf(SPEAKER) + SPEAKER.length);
  if (errors.includes(SPEAKER)) return said.trim().replaceAll('\n', '; ');
  const end = signal === null ? `with code ${code}` : `by ${signal}`;
  const lines = errors.trim().split('\n');
  const told = lines.findLast((line) => /^\w*Error\b/.test(line)) ?? lines.at(-1);
  return `tcts ${verb} was ended ${end}${told ? `: ${told}` : ''}`;
}

/** How error messages of the tool begin. */
const SPEAKER = 'tcts: ';

/** Characters of the error output that are kept. */
const KEPT = 10_000;
