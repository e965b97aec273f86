import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { InputError } from '../errors.js';
import { readText, writeFileAtomic } from '../files.js';

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
  /** Time it took in this sweep; absent where it had been done before. */
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
  }[];
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
