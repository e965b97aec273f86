import { join } from 'node:path';
import { InputError } from '../errors.js';
import { fileLines } from '../file-lines.js';
import { parseLogLine } from '../run/index.js';
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

/** The episodes of a run, in order: all of them, or where there are very many the first ones and every n-th after them. */
export interface Episodes {
  readonly count: number;
  /** The episode with this place, from 0, or the last before it that was kept. */
  at(place: number): Episode;
  /** The episode after which the best model was saved. */
  readonly best: Episode | undefined;
}

/** Reads the episodes of a run. Lines that are not wanted are not parsed. */
export function readEpisodes({ folder, result }: ReportedRun): Episodes {
  const file = join(folder, 'metrics.jsonl');
  let count = 0;
  for (const { bytes } of fileLines(file)) if (isEpisode(bytes)) count++;
  const every = Math.ceil(count / MOST);
  const update = result?.best?.update;
  const kept = new Map<number, Episode>();
  let best: Episode | undefined;
  let [place, line] = [0, 0];
  for (const { bytes } of fileLines(file)) {
    line++;
    if (!isEpisode(bytes)) continue;
    const isWanted = place < MOST || place % every === 0 || place === count - 1;
    const isBest = update !== undefined && best === undefined && bytes.includes(`"step":${update}`);
    if (isWanted || isBest) {
      const episode = parseEpisode(bytes.toString('utf8'), file, line);
      if (isWanted) kept.set(place, episode);
      if (episode.step === update) best ??= episode;
    }
    // The log may have grown since its episodes were counted.
    if (++place === count) break;
  }
  return { count: Math.min(count, place), best, at: (index) => kept.get(index) ?? kept.get(index - (index % every))! };
}

/** Episodes up to which all are kept; about as many later ones. */
const MOST = 4096;

/**
 * Updates per second, from the times of the log: between two lines of one session, of which the later is not that of an
 * episode, so that no validation lies between them. Where episodes are all there is, their validations are counted in.
 * NaN if there are fewer than two lines.
 */
export function trainingSpeed(run: ReportedRun): number {
  const { training, all } = timesOf(run);
  return training.seconds > 0 ? training.steps / training.seconds : all.steps / all.seconds;
}

/**
 * Seconds an update takes with its share of validations and of what a strategy learns from them, by the same log. NaN if
 * there are fewer than two lines.
 */
export function updateSeconds(run: ReportedRun): number {
  const { all } = timesOf(run);
  return all.seconds / all.steps;
}

/** Updates and their seconds, without the validations and with them. */
function timesOf({ folder }: ReportedRun) {
  const file = join(folder, 'timings.jsonl');
  const timings = fileLines(file);
  const training = { steps: 0, seconds: 0 };
  const all = { steps: 0, seconds: 0 };
  let before = { step: Number.NaN, seconds: Number.NaN };
  let line = 0;
  for (const { bytes } of fileLines(join(folder, 'metrics.jsonl'))) {
    line++;
    const { value } = timings.next();
    if (value === undefined) break;
    const now = timeOf(value.bytes?.toString('utf8') ?? '', file, line);
    const [steps, seconds] = [now.step - before.step, now.seconds - before.seconds];
    before = now;
    // The clock of a session that was resumed starts again from 0.
    if (!(seconds > 0) || !(steps >= 0)) continue;
    for (const sum of isEpisode(bytes) ? [all] : [training, all]) {
      sum.steps += steps;
      sum.seconds += seconds;
    }
  }
  timings.return(undefined);
  return { training, all };
}

function isEpisode(line: Buffer | undefined): line is Buffer {
  return line?.includes('"episode":') ?? false;
}

function timeOf(text: string, file: string, line: number): { step: number; seconds: number } {
  const { step, seconds } = recordOf(text, file, line);
  return { step: Number(step), seconds: Number(seconds) };
}

function parseEpisode(text: string, file: string, line: number): Episode {
  const record = recordOf(text, file, line);
  const { distribution } = record;
  if (typeof distribution !== 'object' || distribution === null) {
    throw new InputError('expected the shares of the tasks', { file, line, key: 'distribution' });
  }
  const [episode, step, performance, reward, loss] = ['episode', 'step', 'performance', 'reward', 'loss'].map((key) =>
    typeof record[key] === 'number' ? record[key] : Number.NaN,
  );
  return { episode, step, performance, reward, loss, distribution: distribution as Record<string, number> };
}

function recordOf(text: string, file: string, line: number): Record<string, unknown> {
  const record = parseLogLine(text);
  if (record === undefined) throw new InputError('the line is not valid JSON', { file, line });
  return record;
}
