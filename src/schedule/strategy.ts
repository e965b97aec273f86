import type { Resumable } from '../run/index.js';
import type { Assignment, Status } from './problem.js';

/** What a strategy decided for a batch. */
export type Choice = SampledChoice | BlendedChoice;

/** One task for each sample. */
export interface SampledChoice extends Assignment {
  readonly kind: 'sampled';
  /** Mean entropy of the policy, in nats. */
  readonly entropy: number;
}

/** All tasks for each sample, weighted. */
export interface BlendedChoice {
  readonly kind: 'blended';
  /** [B, K]; rows sum to one. */
  readonly weights: Float32Array;
  /** Mean entropy of the policy, in nats. */
  readonly entropy: number;
}

/** What a strategy reports of its own update. */
export interface EpisodeReport {
  /** ‖∇ω‖ of the update; undefined where nothing was learned. */
  readonly gradNorm?: number;
}

/**
 * Decides the task of each sample. In every episode `beginEpisode` comes first, then `choose` once for every update,
 * then `endEpisode`. The whole state, in the middle of an episode too, can be captured.
 */
export interface Strategy<Batch = unknown> extends Resumable {
  readonly name: string;
  /** How many models are trained one after the other, each for the full number of episodes. Default 1. */
  readonly passes?: number;
  /** The distributions over the tasks [B, K] that `choose` would go by; rows sum to one. It changes nothing. */
  policy(batch: Batch, status: Status): Promise<Float32Array>;
  /** Line 3 of Algorithm 1. */
  beginEpisode?(status: Status): Promise<void>;
  /** Lines 6 and 7. */
  choose(batch: Batch, status: Status): Promise<Choice>;
  /** Line 11, after a validation that gave R_e; `status` is that of the last update, with R_{e−1} as its performance. */
  endEpisode(performance: number, status: Status): Promise<EpisodeReport>;
  close?(): Promise<void>;
}
