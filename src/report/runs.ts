import { existsSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { z } from 'zod';
import { InputError } from '../errors.js';
import { readJsonFile } from '../json-file.js';
import { type ConfigValues, isRun, isRunning, openRun, type RunInfo } from '../run/index.js';
import { type Evaluations, figure, readEvaluations } from './evaluations.js';
import type { Unreadable } from './reader.js';
import { type FoundSweep, type SweepPlace, SweepReader } from './sweeps.js';

const resultSchema = z.object({
  updates: z.number(),
  best: z.object({ performance: figure, update: z.number() }).nullable(),
  test: z.record(z.string(), figure).nullable(),
});

/** A finished run. Its series are read when a table or figure asks for them. */
export interface ReportedRun {
  readonly folder: string;
  /** Path of the folder within the reported one. */
  readonly name: string;
  readonly info: RunInfo;
  readonly config: ConfigValues;
  /** Undefined if the run ended before its last validation was written down. */
  readonly result: z.output<typeof resultSchema> | undefined;
  readonly evaluations: Evaluations;
  /** Undefined if no sweep has made it. */
  readonly sweep: SweepPlace | undefined;
}

/** A run that is in no table and no figure, and why. */
export interface RunSetAside {
  readonly name: string;
  readonly state: 'running' | 'stopped' | 'interrupted' | 'failed' | 'broken';
  readonly reason: string;
}

export interface FoundRuns {
  readonly runs: readonly ReportedRun[];
  /** Finished runs that settings were only chosen by: in no table of results. */
  readonly candidates: readonly ReportedRun[];
  readonly setAside: readonly RunSetAside[];
  readonly sweeps: readonly FoundSweep[];
  /** Records of sweeps that could not be read. */
  readonly problems: readonly Unreadable[];
}

/** All runs in a folder, at any depth, by name. A run that cannot be used is set aside and never an error. */
export function findRuns(folder: string): FoundRuns {
  if (!existsSync(folder)) throw new InputError('no such folder, expected one that holds runs', { file: folder });
  if (!statSync(folder).isDirectory()) {
    throw new InputError('it is a file, expected a folder that holds runs', { file: folder });
  }
  const runs: ReportedRun[] = [];
  const candidates: ReportedRun[] = [];
  const setAside: RunSetAside[] = [];
  const sweeps = new SweepReader();
  for (const path of foldersHolding(folder, holdsRun)) {
    const name = relative(folder, path) || basename(realpathSync(path));
    try {
      const found = readRun(path, name, sweeps);
      if ('reason' in found) setAside.push(found);
      else if (found.sweep?.candidate) candidates.push(found);
      else runs.push(found);
    } catch (error) {
      setAside.push({ name, state: 'broken', reason: (error as Error).message });
    }
  }
  return { runs, candidates, setAside, sweeps: sweeps.sweeps, problems: sweeps.problems };
}

function readRun(folder: string, name: string, sweeps: SweepReader): ReportedRun | RunSetAside {
  if (!isRun(folder)) return { name, state: 'broken', reason: 'it has no run.json: it was being made or copied' };
  const { info, config } = openRun(folder);
  if (info.state === 'interrupted') {
    return { name, state: 'interrupted', reason: `stopped by a signal; to go on: tcts train --resume ${folder}` };
  }
  if (info.state === 'failed') return { name, state: 'failed', reason: 'stopped by an error' };
  if (info.state === 'running') {
    if (isRunning(folder)) return { name, state: 'running', reason: 'a process is at work on it' };
    return { name, state: 'stopped', reason: 'killed without notice; it can be resumed' };
  }
  if (info.state !== 'finished') return { name, state: 'broken', reason: `its state is ${String(info.state)}` };
  const file = join(folder, 'result.json');
  const result = existsSync(file) ? readJsonFile(file, resultSchema) : undefined;
  const sweep = sweeps.place(dirname(folder), basename(folder));
  return { folder, name, info, config, result, evaluations: readEvaluations(folder), sweep };
}

/** Whether a folder with these names in it holds a run, or looks like one being made. */
function holdsRun(names: readonly string[]): boolean {
  return names.includes('run.json') || (names.includes('config.yaml') && names.includes('checkpoints'));
}

/**
 * Folders at any depth whose names say that they hold what is looked for, without those inside them. Links are followed,
 * but no folder is visited twice.
 */
export function foldersHolding(
  folder: string,
  holds: (names: readonly string[]) => boolean,
  seen = new Set<string>(),
): string[] {
  const real = realpathSync(folder);
  if (seen.has(real)) return [];
  seen.add(real);
  const names = listing(folder);
  if (holds(names)) return [folder];
  return names
    .filter((name) => !name.startsWith('.'))
    .map((name) => join(folder, name))
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isDirectory())
    .flatMap((path) => foldersHolding(path, holds, seen));
}

/** Empty for a folder that may not be read: whatever is in it, it is not ours. */
function listing(folder: string): string[] {
  try {
    return readdirSync(folder).sort(byNumberAndName);
  } catch {
    return [];
  }
}

const byNumberAndName = new Intl.Collator('en', { numeric: true }).compare;
