import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { InputError } from '../errors.js';
import { fileError, makeFolder, readJsonFile, writeFileAtomic } from '../files.js';
import { parseSource } from '../run/config/sources.js';
import { requireSameConfig } from '../run/folder.js';
import { hasResult, isRun, LogTail, metricsFile, openRun, readMetrics } from '../run/index.js';
import { strategyNamed } from '../schedule/index.js';
import type { Job, JobProgress, Outcome } from './job.js';
import { runTool, type StopOptions } from './tool-process.js';

/** How a job is stopped and watched. */
export interface RunJobOptions extends StopOptions {
  /** Called whenever the run has logged something, about twice a second at most. */
  readonly onProgress?: (progress: JobProgress) => void;
}

/**
 * Does what is left of a job: trains, or resumes what was interrupted, or leaves a finished training alone, and runs
 * those verbs of `after` that have not been run. A folder that holds a run with another configuration is refused.
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

/** Whether there is nothing left to do. A folder that holds a run with another configuration is refused. */
export function isDone(job: Job): boolean {
  return isPaused(job) || (isTrained(job) && verbsLeft(job).length === 0);
}

/** Whether the run has come as far as it is to come for now. */
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
  requireSameConfig(run.config, parseSource(config, folder).values, join(folder, 'config.yaml'));
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
 * Follows a run that another process trains: how far it is, if it has logged something since the last call. It only
 * informs: a log that cannot be read now, and lines that are none of a log, are passed over.
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
  const file = join(folder, 'config.yaml');
  makeFolder(folder);
  writeFileAtomic(file, config);
  return ['train', file, '--set', `out=${JSON.stringify(dirname(folder))}`, '--set', `name=${basename(folder)}`];
}

/** E·S; undefined for a strategy that trains several models in turn. */
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

/** Where a run folder remembers which verbs have been run. */
function journalOf({ folder }: Job): string {
  return join(folder, 'job.json');
}

const DONE: Outcome = { state: 'done' };

const POLL_MILLISECONDS = 500;
