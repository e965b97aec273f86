import type { Course, EpisodeRecord } from './course.js';
import { type Problem, requireAbilities } from './problem.js';
import type { Choice, Strategy } from './strategy.js';

/** The input of the algorithm; η₁ and B belong to the problem, η₂ to the strategy. */
export interface Extent {
  /** E. */
  readonly episodes: number;
  /** S, updates in an episode. */
  readonly steps: number;
}

/** An update that has been made. */
export interface Update {
  /** t, from 1. */
  readonly update: number;
  /** Training loss. */
  readonly loss: number;
  /** What the episode has come to, if this update was its last one. */
  readonly episode?: EpisodeRecord;
}

/** Updates of a whole training: E·S, times the models that the strategy trains one after the other. */
export function totalUpdates({ episodes, steps }: Extent, { passes = 1 }: Strategy<never>): number {
  return passes * episodes * steps;
}

/**
 * Algorithm 1 of the paper, with its line numbers. It yields after every update, the state of problem, strategy and
 * course being complete at that moment: whoever restores the three can begin it again and have it go on from there.
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
      /* 8 */ loss = await train(problem, batch, choice, strategy.name);
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

function train<Batch>(problem: Problem<Batch>, batch: Batch, choice: Choice, strategy: string): Promise<number> {
  if (choice.kind === 'sampled') return problem.train(batch, choice);
  return requireAbilities(problem, strategy, 'trainBlend').trainBlend(batch, choice.weights);
}
