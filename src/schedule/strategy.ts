import { z } from 'zod';
import type { Random } from '../random.js';
import type { Resumable } from '../run/index.js';
import type { Assignment, Problem, Status } from './problem.js';

/** What a strategy decided for a batch. */
export type Choice = SampledChoice | BlendedChoice;

/** One task for each sample. */
export interface SampledChoice extends Assignment {
  readonly kind: 'sampled';
  /** Mean entropy of these probabilities, in nats. */
  readonly entropy: number;
}

/** All tasks for each sample, weighted. */
export interface BlendedChoice {
  readonly kind: 'blended';
  /** [B, K]; rows sum to one. */
  readonly weights: Float32Array;
  /** Mean entropy of these probabilities, in nats. */
  readonly entropy: number;
}

/** What a strategy reports about its own update. */
export interface EpisodeReport {
  /** ‖∇ω‖ of the update; undefined if nothing was learned. */
  readonly gradNorm?: number;
}

/**
 * Decides the task of each sample. In every episode `beginEpisode` comes first, then `choose` once for every update,
 * then `endEpisode`. The whole state can be captured, even in the middle of an episode.
 */
export interface Strategy<Batch = unknown> extends Resumable {
  readonly name: string;
  /** How many models are trained in sequence, each for the full number of episodes. Default 1. */
  readonly passes?: number;
  /**
   * Share of the updates after which its plan no longer changes with time. Validations before it do not count towards
   * early stopping: an unfinished curriculum cannot have stopped helping. Default 0: no such plan.
   */
  readonly settlesAt?: number;
  /** The task probabilities [B, K] that `choose` uses; rows sum to one. It changes nothing. */
  probabilities(batch: Batch, status: Status): Promise<Float32Array>;
  /** Line 3 of Algorithm 1. */
  beginEpisode?(status: Status): Promise<void>;
  /** Lines 6 and 7. */
  choose(batch: Batch, status: Status): Promise<Choice>;
  /** Line 11, after a validation that gave R_e; `status` is that of the last update, with R_{e−1} as its performance. */
  endEpisode(performance: number, status: Status): Promise<EpisodeReport>;
  /** Releases native memory and threads. */
  close?(): Promise<void>;
}

/** An option that is a task, by name or number. */
export const taskKey = z.union([z.string(), z.int()]);

/** What a strategy is created with besides its options. */
export interface StrategyContext {
  /** Source of its random numbers. */
  readonly random: Random;
  /** Threads that update a scheduler's network. */
  readonly threads: number;
}

/**
 * Describes a strategy. The configuration, its reference and JSON Schema, the estimates of sweeps,
 * the labels of reports and the table of docs/strategies.md are made from it.
 */
export interface StrategyDescription {
  /** `strategy.name` of a configuration. */
  readonly name: string;
  /** What it does, in one line. */
  readonly summary: string;
  /** Its name in report tables. Default: its name. */
  readonly title?: string;
  /** Its name there for a `problem.kind` for which the paper uses another word. Default: the title. */
  readonly titles?: Readonly<Record<string, string>>;
  /**
   * Its place in comparisons. `baseline`: reports compare other strategies with it. `method`: the paper's own, shown
   * last. `bound`: knows the answer. Default: none of these.
   */
  readonly role?: 'baseline' | 'method' | 'bound';
  /** When it learns what to schedule. Default: never. */
  readonly learns?: 'every episode' | 'every few updates';
  /** What it sees about a sample. Default: nothing. */
  readonly sees?: string;
  /** Its cost beyond the updates of one model. Default: none, so it is as fast as others without one. */
  readonly extraCost?: string;
  /** Whether each model is trained on a single task. Default false. */
  readonly singleTask?: boolean;
  /** Whether its choices are the same for every main task. Default false. */
  readonly ignoresMain?: boolean;
  /** Whether it trains several models in sequence. Default false. */
  readonly severalModels?: boolean;
  /**
   * Whether the page shows what its scheduler prefers: its checkpoints then have the layers of the network (`NETWORK` of
   * `strategies/scheduler.ts`) and, in their state, the `scale` of the features. Default false.
   */
  readonly showsScheduler?: boolean;
  /** Options worth searching over, the most important first. Default none. */
  readonly knobs?: readonly string[];
  /** Options with descriptions and defaults. Defaults are defined nowhere else. */
  readonly options: z.ZodObject<z.ZodRawShape, z.core.$strict>;
  /** `options` are the parsed options. */
  create<Batch>(
    options: Readonly<Record<string, unknown>>,
    problem: Problem<Batch>,
    context: StrategyContext,
  ): Strategy<Batch> | Promise<Strategy<Batch>>;
}

/** Checks the types of a description's `create` and `knobs` against its options. */
export function describeStrategy<Options extends z.ZodRawShape>(
  description: Omit<StrategyDescription, 'knobs' | 'options' | 'create'> & {
    readonly knobs?: readonly (keyof Options & string)[];
    readonly options: z.ZodObject<Options, z.core.$strict>;
    create<Batch>(
      options: z.output<z.ZodObject<Options, z.core.$strict>>,
      problem: Problem<Batch>,
      context: StrategyContext,
    ): Strategy<Batch> | Promise<Strategy<Batch>>;
  },
): StrategyDescription {
  return description as unknown as StrategyDescription;
}

/** The schema of `strategy` in a configuration that names this one. */
export function strategyKeys({ name, summary, options }: StrategyDescription) {
  return z.strictObject({ name: z.literal(name).describe(summary), ...options.shape });
}
