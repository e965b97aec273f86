import { runtimeVersions, toolVersion } from '../run/versions.js';
import type { JobProgress, Outcome } from './job.js';
import type { Plan, PlannedRun } from './plan.js';
import { type ChoiceRecord, FORMAT, type RunRecord, readSweep, type SweepRecord, writeSweep } from './record.js';

/** A choice as it is made, with the runs that it was made by. */
export interface Choice extends Omit<ChoiceRecord, 'candidates'> {
  readonly candidates: readonly {
    readonly labels: ChoiceRecord['for'];
    readonly score: number | null;
    readonly runs: readonly { readonly run: PlannedRun }[];
  }[];
}

/** Keeps the record of a sweep up to date, in its folder and for those who watch. */
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

  /** A run that waits. One that was a candidate is none any more once it is entered as a result. */
  enter({ name, group, labels, seed }: PlannedRun, candidate: boolean): void {
    const { seconds } = this.runs.get(name) ?? {};
    const state = 'waiting';
    this.change({ name, group, labels, seed, candidate, state, ...(seconds !== undefined && { seconds }) });
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

  /** A run that was done turns out to be of no use. */
  fail(name: string, reason: string): void {
    this.end(name, { state: 'failed', reason });
  }

  choose({ candidates, ...choice }: Choice): void {
    this.choices.push({
      ...choice,
      candidates: candidates.map(({ labels, score, runs }) => ({
        labels,
        score,
        runs: runs.map(({ run }) => run.name),
      })),
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
