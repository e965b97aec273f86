import { join } from 'node:path';
import { InputError } from '../errors.js';
import { readText } from '../files.js';
import { readMetrics } from '../run/index.js';
import type { ReportedRun } from './runs.js';

/** An episode as `metrics.jsonl` has it; NaN where a figure is undefined. */
export interface Episode {
  readonly episode: number;
  /** Updates made when it ended. */
  readonly step: number;
  readonly performance: number;
  readonly reward: number;
  readonly loss: number;
  /** Share of each task, by its name. */
  readonly distribution: Readonly<Record<string, number>>;
}

/** The episodes of a run, in order. The lines between them are not parsed. */
export function readEpisodes({ folder }: ReportedRun): Episode[] {
  const file = join(folder, 'metrics.jsonl');
  return wholeLines(file).flatMap((line, i) => (isEpisode(line) ? [parseEpisode(line, file, i + 1)] : []));
}

/**
 * Updates per second, from the times of the log: between two lines of one session, of which the later is not that of an
 * episode, so that no validation lies between them. Where episodes are all there is, their validations are counted in.
 * NaN if there are fewer than two lines.
 */
export function trainingSpeed({ folder }: ReportedRun): number {
  const metrics = wholeLines(join(folder, 'metrics.jsonl'));
  const timings = readMetrics(join(folder, 'timings.jsonl'));
  const training = { steps: 0, seconds: 0 };
  const all = { steps: 0, seconds: 0 };
  for (let i = 1; i < Math.min(timings.length, metrics.length); i++) {
    const steps = Number(timings[i].step) - Number(timings[i - 1].step);
    const seconds = Number(timings[i].seconds) - Number(timings[i - 1].seconds);
    // The clock of a session that was resumed starts again from 0.
    if (!(seconds > 0) || steps < 0) continue;
    for (const sum of isEpisode(metrics[i]) ? [all] : [training, all]) {
      sum.steps += steps;
      sum.seconds += seconds;
    }
  }
  return training.seconds > 0 ? training.steps / training.seconds : all.steps / all.seconds;
}

/** A last line without its newline was cut off: it is left out. */
function wholeLines(file: string): string[] {
  return readText(file).split('\n').slice(0, -1);
}

function isEpisode(line: string): boolean {
  return line.includes('"episode":');
}

function parseEpisode(line: string, file: string, number: number): Episode {
  let record: Record<string, unknown>;
  try {
    record = JSON.parse(line) as Record<string, unknown>;
  } catch {
    throw new InputError('the line is not valid JSON', { file, line: number });
  }
  const { distribution } = record;
  if (typeof distribution !== 'object' || distribution === null) {
    throw new InputError('expected the shares of the tasks', { file, line: number, key: 'distribution' });
  }
  const [episode, step, performance, reward, loss] = ['episode', 'step', 'performance', 'reward', 'loss'].map((key) =>
    typeof record[key] === 'number' ? record[key] : Number.NaN,
  );
  return { episode, step, performance, reward, loss, distribution: distribution as Record<string, number> };
}
