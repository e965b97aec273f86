import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { InputError } from '../errors.js';
import { readText, writeFileAtomic } from '../files.js';
import { runtimeVersions, toolVersion } from '../run/versions.js';
import type { JobProgress, Outcome } from './job.js';
import type { Plan, PlannedRun } from './plan.js';

/** What a sweep knows of its runs: `sweep.json` in the folder in which the run folders are. */
export interface SweepRecord {
  readonly format: typeof FORMAT;
  readonly name: string;
  /** Version of tcts. */
  readonly version: string;
  readonly node: string;
  readonly onnxruntime: string;
  /** ISO 8601, of the first time that the sweep was run. */
  readonly created: string;
  readonly updated: string;
  /** The grid, as it was read, and the assignments (`--set`) and the folder (`--data`) that went with it, if any. */
  readonly grid: {
    readonly file: string;
    readonly set?: readonly string[];
    readonly data?: string;
    readonly values: unknown;
  };
  readonly runs: readonly RunRecord[];
  readonly choices: readonly ChoiceRecord[];
}

/** A run as `sweep.json` lists it. */
export interface RunRecord {
  /** Of its folder. */
  readonly name: string;
  /** Of the group that it belongs to. */
  readonly group: string;
  /** Where it stands in the grid: `{ strategy: 'mtl', main: '1' }`. Runs of a group with equal labels differ in the seed. */
  readonly labels: Readonly<Record<string, string>>;
  readonly seed: number;
  /** A run that was made to choose settings by; false once it is among the results. */
  readonly candidate: boolean;
  readonly state: 'waiting' | 'running' | 'done' | 'failed' | 'stopped';
  /** Why it failed. */
  readonly reason?: string;
  /** Updates that a search has let it make so far; absent if it is trained to its end. */
  readonly until?: number;
  /** Time it took in this sweep; absent if it had been done before. */
  readonly seconds?: number;
}

/** What was chosen by validation. */
export interface ChoiceRecord {
  /** The group that chose its settings, or `wait-k*`. */
  readonly step: string;
  /** What the choice was made for: `{ main: '3' }`. */
  readonly for: Readonly<Record<string, string>>;
  readonly candidates: readonly {
    readonly labels: Readonly<Record<string, string>>;
    /** Validation performance (of wait-k*: on wait-k), mean over `runs`; null if none of them finished. */
    readonly score: number | null;
    readonly runs: readonly string[];
    /** Of successive halving: the same after each round that it took part in. */
    readonly rungs?: readonly { readonly updates: number; readonly score: number | null }[];
  }[];
  /** How much was looked at; absent in records of earlier versions. */
  readonly looks?: {
    /** Settings that were tried. */
    readonly configurations: number;
    /** Validation scores of runs that were compared, over all rounds. */
    readonly scores: number;
  };
  /** Labels of the chosen candidate; null if there was none. */
  readonly chosen: Readonly<Record<string, string>> | null;
}

/** The record of a folder, if there is one. */
export function readSweep(folder: string): SweepRecord | undefined {
  const file = join(folder, NAME);
  if (!existsSync(file)) return undefined;
  try {
    const record = JSON.parse(readText(file)) as SweepRecord;
    if (record.format === FORMAT) return record;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new InputError('expected the record of a sweep in JSON', { file });
}

export function writeSweep(folder: string, record: SweepRecord): void {
  writeFileAtomic(join(folder, NAME), `${JSON.stringify(record, null, 2)}\n`);
}

/** The step of a choice among models that were each trained on one wait. */
export const WAIT_K_STAR = 'wait-k*';

const NAME = 'sweep.json';
export const FORMAT = 'tcts sweep 1';

/** A choice, with the runs it is based on. */
export interface MadeChoice extends Omit<ChoiceRecord, 'candidates' | 'looks'> {
  readonly candidates: readonly {
    readonly labels: ChoiceRecord['for'];
    readonly score: number | null;
    readonly runs: readonly { readonly run: PlannedRun }[];
    readonly rungs?: ChoiceRecord['candidates'][number]['rungs'];
  }[];
}

/** Keeps the record of a sweep up to date, in its folder and for listeners. */
export class Ledger {
  private readonly folder: string;
  private readonly head: Omit<SweepRecord, 'updated' | 'runs' | 'choices'>;
  private readonly onChange: (run: RunRecord, progress?: JobProgress) => void;
  private readonly runs = new Map<string, RunRecord>();
  private readonly choices: ChoiceRecord[] = [];
  /** When each running job began, in milliseconds. */
  private readonly begun = new Map<string, number>();

  constructor({ grid, set, data, folder }: Plan, onChange: Ledger['onChange'] = () => {}) {
    this.folder = folder;
    this.onChange = onChange;
    this.head = {
      format: FORMAT,
      name: grid.name,
      version: toolVersion,
      ...runtimeVersions(),
      created: readSweep(folder)?.created ?? new Date().toISOString(),
      grid: {
        file: grid.file,
        ...(set.length > 0 && { set }),
        ...(data !== undefined && { data }),
        values: grid.config,
      },
    };
    this.write();
  }

  /** Whether a run was stopped. */
  get stopped(): boolean {
    return [...this.runs.values()].some(({ state }) => state === 'stopped');
  }

  /** Adds a waiting run. A candidate that is entered as a result is no longer a candidate. */
  enter({ name, group, labels, seed }: PlannedRun, candidate: boolean, until?: number): void {
    const { seconds } = this.runs.get(name) ?? {};
    const state = 'waiting';
    const optional = { ...(seconds !== undefined && { seconds }), ...(until !== undefined && { until }) };
    this.change({ name, group, labels, seed, candidate, state, ...optional });
  }

  begin(name: string, progress: JobProgress): void {
    const run = this.runs.get(name)!;
    if (run.state === 'running') {
      this.onChange(run, progress);
      return;
    }
    this.begun.set(name, performance.now());
    this.change({ ...run, state: 'running' }, progress);
  }

  end(name: string, outcome: Outcome): void {
    const { reason: _, ...run } = this.runs.get(name)!;
    const begun = this.begun.get(name);
    const before = run.seconds ?? 0;
    const seconds = begun === undefined ? run.seconds : before + (performance.now() - begun) / 1000;
    this.begun.delete(name);
    this.change({ ...run, ...outcome, ...(seconds !== undefined && { seconds }) });
    this.write();
  }

  /** Marks a finished run as failed. */
  fail(name: string, reason: string): void {
    this.end(name, { state: 'failed', reason });
  }

  choose({ candidates, ...choice }: MadeChoice): void {
    this.choices.push({
      ...choice,
      candidates: candidates.map(({ labels, score, runs, rungs }) => ({
        labels,
        score,
        runs: runs.map(({ run }) => run.name),
        ...(rungs !== undefined && { rungs }),
      })),
      looks: {
        configurations: candidates.length,
        scores: candidates.reduce((sum, { runs, rungs }) => sum + runs.length * (rungs?.length ?? 1), 0),
      },
    });
    this.write();
  }

  /** Writes the record for the last time and returns it. */
  close(): SweepRecord {
    return this.write();
  }

  private change(run: RunRecord, progress?: JobProgress): void {
    this.runs.set(run.name, run);
    this.onChange(run, progress);
  }

  private write(): SweepRecord {
    const record: SweepRecord = {
      ...this.head,
      updated: new Date().toISOString(),
      runs: [...this.runs.values()],
      choices: this.choices,
    };
    writeSweep(this.folder, record);
    return record;
  }
}
