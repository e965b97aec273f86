import { InputError } from '../errors.js';
import type { Resumable, Snapshot } from '../run/index.js';
import type { Status } from './problem.js';
import { stateOnly } from './snapshots.js';
import type { Choice, EpisodeReport } from './strategy.js';

/** What is recorded of an episode: the paper's figure of strategies is drawn from these. */
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
  /** Mean entropy of the policy, in nats. */
  readonly entropy: number;
  /** ‖∇ω‖; null where nothing was learned. */
  readonly gradNorm: number | null;
}

/** How far a training has come, and what it has seen in the episode it is in. */
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

  /** Takes in the performance of the untrained model. */
  begin(performance: number): void {
    this.validated(performance);
  }

  /** Takes in an update. */
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

  /** Takes in the validation that ends an episode, and begins the next one. */
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
