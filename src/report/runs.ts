import { existsSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { InputError } from '../errors.js';
import {
  type ConfigValues,
  type Evaluations,
  findRunFolders,
  isRun,
  isRunning,
  openRun,
  type RunInfo,
  readEvaluations,
  readMembers,
  readResult,
  type TrainingResult,
} from '../run/index.js';
import { strategyNamed } from '../schedule/index.js';
import { bestFixed } from '../schedule/strategies/best-fixed.js';
import { fixed } from '../schedule/strategies/fixed.js';
import { type ChoiceRecord, readSweep, type SweepRecord, WAIT_K_STAR } from '../sweep/record.js';
import type { Unreadable } from './reader.js';
import { type DataSet, mainsOf, type Setting } from './settings.js';

/** A finished run. Its series are read when a table or figure asks for them. */
export interface ReportedRun {
  readonly folder: string;
  /** Path of the folder within the reported one. */
  readonly name: string;
  readonly info: RunInfo;
  readonly config: ConfigValues;
  /** Undefined if the run ended before its last validation was recorded. */
  readonly result: TrainingResult | undefined;
  readonly evaluations: Evaluations;
  /** Runs that it consists of, which have the logs; undefined for a run that was trained by itself. */
  readonly members?: number;
  /** Undefined if it does not belong to a sweep. */
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
  /** Finished runs that only served to choose settings: in no table of results. */
  readonly candidates: readonly ReportedRun[];
  readonly setAside: readonly RunSetAside[];
  readonly sweeps: readonly FoundSweep[];
  /** Records of sweeps that could not be read. */
  readonly problems: readonly Unreadable[];
}

/** All runs in a folder, at any depth, by name. A run that cannot be used is set aside; it is never an error. */
export function findRuns(folder: string): FoundRuns {
  if (!existsSync(folder)) throw new InputError('no such folder, expected one with runs', { file: folder });
  if (!statSync(folder).isDirectory()) {
    throw new InputError('it is a file, expected a folder with runs', { file: folder });
  }
  const runs: ReportedRun[] = [];
  const candidates: ReportedRun[] = [];
  const setAside: RunSetAside[] = [];
  const sweeps = new SweepReader();
  for (const { path, name } of findRunFolders(folder)) {
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
  if (!isRun(folder)) return { name, state: 'broken', reason: 'it has no run.json: it was being created or copied' };
  const { info, config } = openRun(folder);
  if (info.state === 'interrupted') {
    return { name, state: 'interrupted', reason: `stopped by a signal; to continue: tcts train --resume ${folder}` };
  }
  if (info.state === 'failed') return { name, state: 'failed', reason: 'stopped by an error' };
  if (info.state === 'running') {
    if (isRunning(folder)) return { name, state: 'running', reason: 'a process is working on it' };
    return { name, state: 'stopped', reason: 'killed; it can be resumed' };
  }
  if (info.state !== 'finished') return { name, state: 'broken', reason: `its state is ${String(info.state)}` };
  const sweep = sweeps.place(dirname(folder), basename(folder));
  const [result, evaluations] = [readResult(folder), readEvaluations(folder)];
  return { folder, name, info, config, result, evaluations, members: readMembers(folder)?.length, sweep };
}

/** A sweep with runs in the report. */
export interface FoundSweep {
  /** Where its run folders are. */
  readonly folder: string;
  readonly record: SweepRecord;
}

/** What a sweep records about one of its runs. */
export interface SweepPlace {
  readonly group: string;
  /** It only served to choose settings. */
  readonly candidate: boolean;
  /** Keys whose values were chosen by validation or taken from other runs. */
  readonly chosenKeys: readonly string[];
  /** Number of validation scores its settings were chosen from; 1 if nothing was chosen. */
  readonly looks: number;
}

/**
 * Reads the record of every folder once. If one cannot be read, this is noted, and its runs count as runs without a
 * sweep.
 */
export class SweepReader {
  readonly problems: Unreadable[] = [];
  private readonly known = new Map<string, { found: FoundSweep; places: Map<string, SweepPlace> } | undefined>();

  get sweeps(): FoundSweep[] {
    return [...this.known.values()].flatMap((sweep) => sweep?.found ?? []);
  }

  /** What a run's sweep records about it, if it has one. */
  place(folder: string, name: string): SweepPlace | undefined {
    if (!this.known.has(folder)) this.known.set(folder, this.read(folder));
    return this.known.get(folder)?.places.get(name);
  }

  private read(folder: string): { found: FoundSweep; places: Map<string, SweepPlace> } | undefined {
    try {
      const record = readSweep(folder);
      if (record === undefined) return undefined;
      const chosen = chosenKeys(record, folder);
      const places = record.runs.map(({ name, group, labels, candidate }): [string, SweepPlace] => [
        name,
        { group, candidate, chosenKeys: chosen.get(group) ?? [], looks: looksOf(record, group, labels) },
      ]);
      return { found: { folder, record }, places: new Map(places) };
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      this.problems.push({ name: 'sweep.json', reason: error.message });
      return undefined;
    }
  }
}

/** How many scores were compared before the settings of a run were chosen. */
function looksOf({ choices }: SweepRecord, group: string, labels: ChoiceRecord['for']): number {
  const choice = choices.find(
    ({ step, for: where }) => step === group && Object.entries(where).every(([key, value]) => labels[key] === value),
  );
  return choice?.looks?.scores ?? 1;
}

/**
 * Adds the paper's wait-k* if a sweep has chosen it: for each k the runs with the wait that was best on wait-k in
 * validation, as a separate method. The runs also appear under their own method.
 */
export function withBestWaits(data: DataSet, sweeps: readonly FoundSweep[]): DataSet {
  const added = sweeps.flatMap(({ folder, record }) => {
    const choices = record.choices.filter(({ step }) => step === WAIT_K_STAR);
    return choices.flatMap((choice) => bestWait(data, folder, choice) ?? []).map((setting) => ({ setting, record }));
  });
  const isAlone = ({ main }: Setting): boolean =>
    added.filter(({ setting }) => setting.main === main).length === 1 &&
    data.settings.every(({ label }) => label !== LABEL);
  const alone = added.every(({ setting }) => isAlone(setting));
  const chosen = added.map(({ setting, record }) => ({
    ...setting,
    label: alone ? LABEL : `${LABEL} (${record.name})`,
  }));
  const place = data.settings.findLastIndex(({ strategy }) => strategy === fixed.name) + 1;
  return { ...data, settings: data.settings.toSpliced(place, 0, ...chosen) };
}

/**
 * A translation model that was trained the same for every main task counts for each one whose wait it was decoded with,
 * if that has no runs of its own. Not with its best parameters: those are the best for the main task of the training.
 */
export function withSharedRuns(data: DataSet): DataSet {
  const { settings } = data;
  const added = (setting: Setting): Setting[] => {
    if (!strategyNamed(setting.strategy)?.ignoresMain || setting.main === undefined) return [];
    const isOpen = (main: number | undefined): main is number =>
      main !== undefined && settings.every(({ label, main: own }) => label !== setting.label || own !== main);
    return mainsOf(data)
      .filter(isOpen)
      .flatMap((main) => {
        const runs = setting.runs.flatMap((run) => {
          const translations = run.evaluations.translations.filter(
            ({ k, checkpoint }) => k === main && checkpoint !== 'best',
          );
          const evaluations = { forecasts: [], policies: [], translations };
          return translations.length === 0 ? [] : [{ ...run, evaluations, result: undefined }];
        });
        const keys = new Map([...setting.keys, ['problem.main', main]]);
        return runs.length === 0 ? [] : [{ ...setting, main, trainedFor: setting.main, keys, runs }];
      });
  };
  const all = settings.flatMap((setting) => [setting, ...added(setting)]);
  return { ...data, settings: all };
}

/** Whether a key of the configuration was chosen by validation, or taken from other runs. */
export function isChosen(key: string, chosen: Iterable<string>): boolean {
  return [...chosen].some((name) => key === name || key.startsWith(`${name}.`));
}

const LABEL = bestFixed.titles!.translation;

function bestWait({ settings }: DataSet, folder: string, choice: ChoiceRecord): Setting | undefined {
  const winner = choice.candidates.find(({ labels }) => JSON.stringify(labels) === JSON.stringify(choice.chosen));
  const folders = winner?.runs.map((name) => join(folder, name)) ?? [];
  const trained = settings.find(({ runs }) => runs.some((run) => folders.includes(run.folder)));
  if (winner === undefined || trained === undefined) return undefined;
  const main = Number(choice.for.main);
  const task = trained.keys.get('strategy.task');
  const performance = winner.score ?? Number.NaN;
  return {
    label: LABEL,
    strategy: bestFixed.name,
    main,
    trainedFor: typeof task === 'number' ? task : trained.main,
    keys: new Map([...trained.keys, ['problem.main', main], ['strategy.name', bestFixed.name]]),
    // They were chosen by their validation on wait-k, not by that of their own training.
    runs: trained.runs
      .filter((run) => folders.includes(run.folder))
      .map((run) => ({ ...run, result: run.result && { ...run.result, best: { performance, update: 0 } } })),
  };
}

const gridSchema = z.object({
  groups: z.array(
    z.object({
      name: z.string(),
      select: z.object({ over: z.record(z.string(), z.unknown()) }).optional(),
      atBestWait: z.string().optional(),
      warmStart: z.string().optional(),
    }),
  ),
});

/** By group. */
function chosenKeys({ grid }: SweepRecord, folder: string): Map<string, string[]> {
  const parsed = gridSchema.safeParse(grid.values);
  if (!parsed.success)
    throw new InputError('expected the grid of a sweep', { file: join(folder, 'sweep.json'), key: 'grid' });
  return new Map(
    parsed.data.groups.map(({ name, select, atBestWait, warmStart }) => [
      name,
      [
        ...Object.keys(select?.over ?? {}),
        ...(atBestWait === undefined ? [] : [atBestWait]),
        ...(warmStart === undefined ? [] : ['problem.warmStart']),
      ],
    ]),
  );
}
