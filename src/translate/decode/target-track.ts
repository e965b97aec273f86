import { special } from '../text/vocabulary.js';
import { Cache } from './cache.js';
import { type Answers, answerRow, type StepwiseModel } from './token-model.js';

/** The decoder of one sentence after some target tokens. */
export interface Track {
  /** What was taken in, the start token first. */
  inputs: readonly number[];
  readonly cache: Cache;
  /** Source tokens that the last position saw. */
  visible: number;
  /** What comes next; there once something was taken in. */
  answer: Answers | undefined;
}

/** Tracks by what they see of the source: as many as there are hypotheses. */
export type Tracks = Map<string, readonly Track[]>;

/**
 * Where caches of several sentences lie side by side for one run of the model. It is used again for the next, and what
 * has not changed is not copied again.
 */
export class Desk {
  private readonly targets: Float32Array[] = [];
  private readonly memories: Float32Array[] = [];
  private last:
    | { readonly caches: readonly Cache[]; readonly lengths: readonly number[]; readonly joined: Cache }
    | undefined;

  target(caches: readonly Cache[]): Cache {
    return Cache.join(caches, 'end', this.targets);
  }

  memory(caches: readonly Cache[]): Cache {
    const { last } = this;
    const same = (cache: Cache, i: number): boolean => cache === last?.caches[i] && cache.length === last.lengths[i];
    if (last?.caches.length === caches.length && caches.every(same)) return last.joined;
    const joined = Cache.join(caches, 'start', this.memories);
    this.last = { caches, lengths: caches.map(({ length }) => length), joined };
    return joined;
  }
}

/** The next token after some inputs. */
export interface TargetQuestion {
  readonly tracks: Tracks;
  /** The start token and what is written. */
  readonly inputs: readonly number[];
  readonly memory: Cache;
  /** The end of the source is among what is seen at last. */
  readonly ended: boolean;
  /** The key of tracks that see of the source what this question does. */
  readonly key: string;
  /** Nothing is kept under other keys of this group than those that are asked for. */
  readonly group?: string;
  /** Source tokens that a target position, from 0, sees. */
  readonly visible: (position: number) => number;
}

/** What comes next for each question, after taking in what its track lacks, of all questions together. */
export async function answersTo(
  model: StepwiseModel,
  questions: readonly TargetQuestion[],
  desk: Desk,
): Promise<readonly Answers[]> {
  const rows = assigned(model, questions);
  const lacking = ({ track, inputs }: Row): boolean => track.inputs.length < inputs.length;
  for (let left = rows.filter(lacking); left.length > 0; left = left.filter(lacking)) {
    for (const alike of runningTogether(left)) await takeIn(model, alike, desk);
  }
  return rows.map(({ track }) => track.answer!);
}

interface Row extends TargetQuestion {
  readonly track: Track;
}

/** For each question a track of its own that holds a beginning of its inputs; it takes the place of the earlier ones. */
function assigned(model: StepwiseModel, questions: readonly TargetQuestion[]): Row[] {
  const now = new Map<Tracks, Map<string, Track[]>>();
  const taken = new Set<Track>();
  const rows = questions.map((question): Row => {
    const { tracks, key } = question;
    const track = continued(model, question, taken);
    const own = now.get(tracks) ?? new Map<string, Track[]>();
    now.set(tracks, own.set(key, [...(own.get(key) ?? []), track]));
    return { ...question, track };
  });
  for (const { tracks, group } of questions) {
    if (group === undefined) continue;
    for (const key of tracks.keys()) if (key.startsWith(group)) tracks.delete(key);
  }
  for (const [tracks, own] of now) for (const [key, list] of own) tracks.set(key, list);
  return rows;
}

/** The longest track that the inputs continue, a copy of it if it is taken, or an empty one. */
function continued(model: StepwiseModel, { tracks, key, inputs, visible }: TargetQuestion, taken: Set<Track>): Track {
  const fitting = (tracks.get(key) ?? []).filter((track) => track.inputs.every((token, i) => token === inputs[i]));
  if (fitting.length === 0) return { inputs: [], cache: model.target(1), visible: 0, answer: undefined };
  const longest = fitting.reduce((a, b) => (b.inputs.length > a.inputs.length ? b : a));
  const track = taken.has(longest) ? { ...longest, cache: longest.cache.select([0]) } : longest;
  taken.add(track);
  const last = inputs.length - 1;
  if (track.inputs.length === inputs.length && track.visible !== visible(last)) {
    // The same was asked before with another part of the source.
    track.inputs = track.inputs.slice(0, last);
    track.cache.truncate(last);
  }
  return track;
}

/** Rows that can run together: those that begin, and of the others those that take in as many tokens. */
function runningTogether(rows: readonly Row[]): Row[][] {
  const groups = new Map<number, Row[]>();
  for (const row of rows) {
    const key = row.track.inputs.length === 0 ? 0 : nextInputs(row).length;
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  return [...groups.values()];
}

/** What is taken in at once: all next positions that see the same of the source. */
function nextInputs({ track, inputs, visible }: Row): readonly number[] {
  const first = track.inputs.length;
  let end = first + 1;
  while (end < inputs.length && visible(end) === visible(first)) end++;
  return inputs.slice(first, end);
}

async function takeIn(model: StepwiseModel, rows: readonly Row[], desk: Desk): Promise<void> {
  const added = rows.map(nextInputs);
  const most = Math.max(...added.map(({ length }) => length));
  const caches = rows.map(({ track }) => track.cache);
  const memories = rows.map(({ memory }) => memory);
  const alone = rows.length === 1;
  const target = alone ? caches[0] : desk.target(caches);
  const seen = rows.map(({ track, visible }) => visible(track.inputs.length));
  const answers = await model.write(target, alone ? memories[0] : desk.memory(memories), {
    // Rows without a past may be shorter. They begin later, and what stands before their position 0 is not seen.
    tokens: added.map((tokens) => [...new Array<number>(most - tokens.length).fill(special.pad), ...tokens]),
    lengths: caches.map(({ length }, i) => length - (most - added[i].length)),
    visible: seen,
    ended: rows.map(({ ended }) => ended),
  });
  for (const [column, { track }] of rows.entries()) {
    const { length } = added[column];
    if (!alone) track.cache.appendColumn(target, column, target.length - length, length);
    track.inputs = [...track.inputs, ...added[column]];
    track.visible = seen[column];
    track.answer = answerRow(answers, column);
  }
}
