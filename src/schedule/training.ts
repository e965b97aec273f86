import { InputError } from '../errors.js';
import type { Resumable, Session, ValidationMeasure } from '../run/index.js';
import { algorithm1, Course, type EpisodeRecord, type Extent, totalUpdates } from './algorithm1.js';
import type { Problem } from './problem.js';
import { joinSnapshots, partOf } from './snapshots.js';
import type { Strategy } from './strategy.js';

/** A problem and the strategy that trains it, as one thing that can be saved and resumed. */
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

/** How long to train, and what to tell about it. */
export interface TrainOptions extends Extent {
  /** Updates between two records of the training loss. Default 100. */
  readonly logEvery?: number;
  /** How the validation is shown while the training goes on. Default: as the performance that the problem gives. */
  readonly validation?: ValidationMeasure;
  /** Called after every episode. */
  readonly onEpisode?: (record: EpisodeRecord) => void;
}

/**
 * Runs Algorithm 1 inside a session: every episode is recorded, its performance is a candidate for the best, and each
 * update ends at a safe point. Ends early when the session says so.
 */
export async function train<Batch>(
  { problem, strategy, course }: Trainee<Batch>,
  session: Session,
  options: TrainOptions,
): Promise<void> {
  const { logEvery = 100, validation = PERFORMANCE, onEpisode } = options;
  const names = problem.tasks.map(({ name }) => name);
  const settled = (strategy.settlesAt ?? 0) * totalUpdates(options, strategy);
  let shown: Record<string, number | string> = {};
  if (session.shouldStop) return;
  for await (const { update, loss, episode } of algorithm1(problem, strategy, options, course)) {
    if (update % logEvery === 0) session.log(update, { loss });
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

const PERFORMANCE: ValidationMeasure = {
  name: 'validation performance',
  better: 'higher',
  shown: (performance) => performance,
};

/** Strategies that train several models in turn cannot be ended by the first one that stops improving. */
export function requireSinglePass(strategy: Strategy<never>, patience: number | null): void {
  if (patience === null || (strategy.passes ?? 1) === 1) return;
  throw new InputError(
    `${strategy.name} trains ${strategy.passes} models one after the other and cannot be stopped early, expected null`,
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
