import { z } from 'zod';
import { InputError } from '../errors.js';
import {
  DURATION,
  type Resumable,
  type RunSession,
  type Snapshot,
  section,
  type ValidationMeasure,
} from '../run/index.js';
import { type Problem, requireAbilities, type Status } from './problem.js';
import { joinSnapshots, partOf, stateOnly } from './snapshots.js';
import type { Choice, EpisodeReport, Strategy } from './strategy.js';

/** The `training` of a configuration: the input of the algorithm. η₁ and B belong to the problem, η₂ to the strategy. */
export const trainingSchema = section({
  episodes: z
    .int()
    .min(1)
    .default(100)
    .describe('E: number of episodes; each ends with a validation and an update of the scheduler.'),
  steps: z.int().min(1).default(100).describe('S: model updates per episode.'),
  budget: z
    .string()
    .regex(DURATION)
    .optional()
    .describe(
      'Time budget for the training, such as 90s, 30m or 1h30m: episodes and steps are then chosen by timing a few ' +
        'updates, and the run folder records them. Default: episodes and steps decide.',
    ),
}).describe('The length of Algorithm 1.');

/** How long Algorithm 1 runs: the `training` of a configuration. */
export type Extent = Readonly<z.output<typeof trainingSchema>>;

/** How long a problem is trained: as configured, or in one episode until its model is complete. */
export function extentFor({ updates }: Pick<Problem, 'updates'>, extent: Extent): Extent {
  return updates === undefined ? extent : { episodes: 1, steps: updates };
}

/** An update that has been made. */
export interface Update {
  /** t, from 1. */
  readonly update: number;
  /** Training loss. */
  readonly loss: number;
  /** The record of the episode, if this update was its last. */
  readonly episode?: EpisodeRecord;
}

/** Updates of a whole training: E·S times the number of models that the strategy trains in sequence. */
export function totalUpdates({ episodes, steps }: Extent, { passes = 1 }: Strategy<never>): number {
  return passes * episodes * steps;
}

/**
 * Algorithm 1 of the paper, with its line numbers. Yields after every update, when the state of problem, strategy and
 * course is complete: with the three restored, it continues from there.
 */
export async function* algorithm1<Batch>(
  problem: Problem<Batch>,
  strategy: Strategy<Batch>,
  /* 1 */ extent: Extent,
  course: Course,
): AsyncGenerator<Update, void, void> {
  const total = totalUpdates(extent, strategy);
  const S = extent.steps;
  const E = total / S;
  if (course.updates === 0) course.begin(await problem.validate()); // R₀, that of the untrained model

  /* 2 */ for (let e = Math.floor(course.updates / S) + 1; e <= E; e++) {
    let status = course.status(total);
    let s = course.updates - (e - 1) * S + 1;
    /* 3 */ if (s === 1) await strategy.beginEpisode?.(status);
    let loss = Number.NaN;
    /* 4 */ for (; s <= S; s++) {
      /* 5 */ const batch = await problem.nextBatch();
      status = course.status(total);
      /* 6, 7 */ const choice = await strategy.choose(batch, status);
      /* 8 */ loss = await trainOn(problem, batch, choice, strategy.name);
      course.advance(choice, loss);
      if (s < S) yield { update: course.updates, loss };
      /* 9 */
    }
    /* 10 */ const performance = await problem.validate();
    problem.observe?.(performance);
    /* 11 */ const report = await strategy.endEpisode(performance, status);
    yield { update: course.updates, loss, episode: course.endEpisode(e, performance, report) };
    /* 12 */
  }
}

function trainOn<Batch>(problem: Problem<Batch>, batch: Batch, choice: Choice, strategy: string): Promise<number> {
  if (choice.kind === 'sampled') return problem.train(batch, choice);
  return requireAbilities(problem, strategy, 'trainBlend').trainBlend(batch, choice.weights);
}

/** The record of an episode, from which the paper's figure of strategies is drawn. */
export interface EpisodeRecord {
  /** e, from 1. */
  readonly episode: number;
  /** R_e. */
  readonly performance: number;
  /** R_e − R_{e−1}. */
  readonly reward: number;
  /** Mean training loss of the updates. */
  readonly loss: number;
  /** Share of each task in the weight of all samples. */
  readonly distribution: readonly number[];
  /** Mean entropy of the scheduler's probabilities, in nats. */
  readonly entropy: number;
  /** ‖∇ω‖; null if nothing was learned. */
  readonly gradNorm: number | null;
}

/** Progress of a training, and the sums of its current episode. */
export class Course implements Resumable {
  private current: CourseState;

  constructor(private readonly tasks: number) {
    this.current = { updates: 0, performances: { last: 0, sum: 0, count: 0 }, tally: emptyTally(tasks) };
  }

  /** Updates done. */
  get updates(): number {
    return this.current.updates;
  }

  /** R_{e−1}. */
  get performance(): number {
    return this.current.performances.last;
  }

  /** The status while the next update of `total` is prepared. */
  status(total: number): Status {
    const { updates, performances } = this.current;
    return {
      update: updates + 1,
      updates: total,
      performance: performances.last,
      meanPerformance: performances.sum / performances.count,
    };
  }

  /** Records the performance of the untrained model. */
  begin(performance: number): void {
    this.validated(performance);
  }

  /** Records an update. */
  advance(choice: Choice, loss: number): void {
    const { tally } = this.current;
    const { weights } = choice;
    if (choice.kind === 'sampled') {
      for (let i = 0; i < weights.length; i++) tally.weights[choice.tasks[i]] += weights[i];
    } else {
      for (let i = 0; i < weights.length; i++) tally.weights[i % this.tasks] += weights[i];
    }
    tally.entropy += choice.entropy;
    tally.loss += loss;
    tally.updates++;
    this.current.updates++;
  }

  /** Records the validation that ends an episode, and begins the next one. */
  endEpisode(episode: number, performance: number, report: EpisodeReport): EpisodeRecord {
    const { tally } = this.current;
    const total = tally.weights.reduce((sum, weight) => sum + weight, 0);
    const record = {
      episode,
      performance,
      reward: performance - this.performance,
      loss: tally.loss / tally.updates,
      distribution: tally.weights.map((weight) => weight / total),
      entropy: tally.entropy / tally.updates,
      gradNorm: report.gradNorm ?? null,
    };
    this.current.tally = emptyTally(this.tasks);
    this.validated(performance);
    return record;
  }

  capture(): Snapshot {
    return stateOnly(structuredClone(this.current));
  }

  restore({ state }: Snapshot): void {
    this.current = structuredClone(state as CourseState);
  }

  private validated(performance: number): void {
    if (!Number.isFinite(performance)) {
      const { updates } = this.current;
      throw new InputError(
        `the validation performance after update ${updates} is ${performance}: training has diverged; a lower learning rate may help`,
      );
    }
    const { performances } = this.current;
    performances.last = performance;
    performances.sum += performance;
    performances.count++;
  }
}

interface CourseState {
  updates: number;
  performances: { last: number; sum: number; count: number };
  /** Sums over the updates of the current episode. */
  tally: { weights: number[]; entropy: number; loss: number; updates: number };
}

function emptyTally(tasks: number): CourseState['tally'] {
  return { weights: new Array<number>(tasks).fill(0), entropy: 0, loss: 0, updates: 0 };
}

/** A problem and the strategy that trains it, saved and resumed as one. */
export interface Trainee<Batch> extends Resumable {
  readonly problem: Problem<Batch>;
  readonly strategy: Strategy<Batch>;
  readonly course: Course;
}

/** Joins a problem and its strategy. */
export function trainee<Batch>(problem: Problem<Batch>, strategy: Strategy<Batch>): Trainee<Batch> {
  const course = new Course(problem.tasks.length);
  const parts = { problem, strategy, course };
  return {
    ...parts,
    settle: async () => problem.settle?.(),
    capture: () =>
      joinSnapshots({ problem: problem.capture(), strategy: strategy.capture(), course: course.capture() }),
    restore: (snapshot) => {
      for (const [name, part] of Object.entries(parts)) part.restore(partOf(snapshot, name));
    },
  };
}

/** How long to train, and what to report. */
export interface TrainOptions extends Extent {
  /** Updates between two records of the training loss, fewer at the start: 1, 2, 5, 10, … Default 100. */
  readonly logEvery?: number;
  /** How validation is shown during training. Default: the performance returned by the problem. */
  readonly validation?: ValidationMeasure;
  /** Called after every episode. */
  readonly onEpisode?: (record: EpisodeRecord) => void;
}

/**
 * Runs Algorithm 1 inside a session: every episode is recorded, its performance is a candidate for the best, and each
 * update ends at a safe point. Ends early if the session says so.
 */
export async function train<Batch>(
  { problem, strategy, course }: Trainee<Batch>,
  session: RunSession,
  options: TrainOptions,
): Promise<void> {
  const { logEvery = 100, validation = PERFORMANCE, onEpisode } = options;
  const names = problem.tasks.map(({ name }) => name);
  const settled = (strategy.settlesAt ?? 0) * totalUpdates(options, strategy);
  let shown: Record<string, number | string> = {};
  if (session.shouldStop) return;
  for await (const { update, loss, episode } of algorithm1(problem, strategy, options, course)) {
    if (isLogged(update, logEvery)) session.log(update, { loss });
    if (episode !== undefined) {
      const distribution = Object.fromEntries(episode.distribution.map((share, i) => [names[i], share]));
      session.log(update, { ...episode, distribution });
      await problem.settle?.();
      session.best(update, episode.performance, update > settled);
      const figure = validation.shown(episode.performance);
      shown = { [validation.name]: figure, tasks: topTasks(episode.distribution, names) };
      onEpisode?.(episode);
    }
    session.progress(update, () => ({ loss, ...shown }));
    await session.maybeSave(update);
    if (session.shouldStop) return;
  }
}

/** Shows the first updates of a slow training at once: 1, 2, 5, 10, 20, … up to the usual interval. */
function isLogged(update: number, every: number): boolean {
  return update % every === 0 || (update < every && /^[125]0*$/.test(String(update)));
}

const PERFORMANCE: ValidationMeasure = {
  name: 'validation performance',
  better: 'higher',
  shown: (performance) => performance,
};

/** A strategy that trains several models in sequence must not end when the first one stops improving. */
export function requireSinglePass(strategy: Strategy<never>, patience: number | null): void {
  if (patience === null || (strategy.passes ?? 1) === 1) return;
  throw new InputError(
    `${strategy.name} trains ${strategy.passes} models in sequence and cannot be stopped early, expected null`,
    { key: 'earlyStopping.patience' },
  );
}

/** The most frequent tasks: `wait-9 41 %, wait-5 22 %, wait-7 10 %`. */
function topTasks(distribution: readonly number[], names: readonly string[]): string {
  return distribution
    .map((share, i) => ({ share, name: names[i] }))
    .sort((a, b) => b.share - a.share)
    .slice(0, 3)
    .filter(({ share }) => share > 0)
    .map(({ share, name }) => `${name} ${Math.round(100 * share)} %`)
    .join(', ');
}
