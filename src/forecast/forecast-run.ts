import { join } from 'node:path';
import { InputError } from '../errors.js';
import {
  bestCheckpoint,
  checkpointFolder,
  latestCheckpoint,
  openRun,
  parseConfig,
  type Snapshot,
} from '../run/index.js';
import { partOf } from '../schedule/index.js';
import { type ForecastConfig, forecastSchema } from './config.js';

/** A run of a forecast: what it was asked to do, and the state of its problem where it was best. */
export interface ForecastRun {
  readonly config: ForecastConfig;
  readonly problem: Snapshot;
  /** File of the checkpoint. */
  readonly file: string;
}

/** Reads the best checkpoint of a run, or the latest one before the first validation. */
export function openForecastRun(run: string): ForecastRun {
  const { config } = openRun(run);
  const file = join(run, 'config.yaml');
  const { problem } = config as { problem?: Record<string, unknown> };
  if (problem?.kind !== 'forecast') {
    throw new InputError(`it is ${problem?.kind}, expected a run of a forecast`, { file, key: 'problem.kind' });
  }
  const folder = checkpointFolder(run);
  const saved = bestCheckpoint(folder) ?? latestCheckpoint(folder, () => {});
  if (saved === undefined) throw new InputError('the run has no checkpoint yet', { file: folder });
  const { subject } = saved.state as { subject: unknown };
  return {
    config: parseConfig(forecastSchema, problem, file),
    problem: partOf({ tensors: saved.tensors, state: subject }, 'problem'),
    file: saved.path,
  };
}
