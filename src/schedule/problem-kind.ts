import { z } from 'zod';
import type { DeviceChoice } from '../devices.js';
import { InputError } from '../errors.js';
import { type AdamConfig, type AdamWConfig, type LearningRate, learningRate } from '../optim/index.js';
import type { Member, Validation } from '../run/index.js';

export type { Validation } from '../run/index.js';

import type { FeatureGroup, Problem, ProblemContext } from './problem.js';

/** The keys of `problem` in a configuration; `kind` is the name of the application, its description the title. */
export type ProblemSchema = z.ZodObject<{ kind: z.ZodLiteral<string> } & z.core.$ZodLooseShape, z.core.$strict>;

/**
 * Everything the tool knows about an application: an entry of the list in `problems/index.ts`, or the export of a
 * module that a configuration names as `problem: {kind: module, module: ./weather.js}`. The schema is the only place of
 * its defaults.
 */
export interface ProblemKind<S extends ProblemSchema = ProblemSchema> {
  readonly schema: S;
  /** Builds the problem of a checked configuration. */
  create(config: z.output<S>, context: ProblemContext): Problem | Promise<Problem>;
  /** How sizes that are `auto` in the configuration are chosen. Default: it has none. */
  readonly sizing?: {
    /** Dotted keys below `problem` that may be `auto`, and are where a budget is given and they are left out. */
    readonly keys: readonly string[];
    /** Loads the rule by which they are chosen. */
    load(): Promise<Sizing>;
  };
  /** What `tcts evaluate` does with a run. Default: there is nothing to evaluate. */
  readonly evaluate?: Evaluate;
  /**
   * The runs that a configuration stands for, where they are several; undefined: it is one run. They are trained as
   * processes of the tool in `members/` of the run folder. Default: it is always one.
   */
  members?(config: z.output<S>, seed: number): Promise<MemberPlan<z.output<S>> | undefined>;
  /** Whether a configuration stands for several runs, without looking at its data. Default: never. */
  isSeveralRuns?(config: z.output<S>): boolean;
  /** Further verbs that take a run of this kind. Default: none. */
  readonly verbs?: readonly ('translate' | 'forecast' | 'export')[];
  /** What `validate` returns, as shown to users. Default: a loss with its sign changed. */
  validation?(config: z.output<S>): Validation;
  /** Its evaluations, if reports have tables and figures for them. Default: none. */
  readonly evaluations?: 'translations' | 'forecasts';
  /** Features that its schedulers see for any data; the page names them. Default: numbered columns. */
  readonly features?: readonly FeatureGroup[];
  /** What reports call a main task. Default `Task-3`. */
  taskTitle?(main: number): string;
  /** The kind of `data` that is generated instead of read. Default: none. */
  madeUpData?(data: Readonly<Record<string, unknown>>): string | undefined;
  /**
   * Keys of its configuration, at any depth, that do not change how long an update takes, besides those that no problem's
   * updates depend on (the main task, the learning rate, the warm start). Default: none.
   */
  readonly withoutCost?: readonly string[];
}

/** A run that consists of others, before they are trained. */
export interface MemberPlan<Config = unknown> {
  /** In the order in which they start, with unique names. */
  readonly members: readonly MemberRun<Config>[];
  /** Names of the tasks. */
  readonly tasks: readonly string[];
  /** Notes about the data for the user, one line each. */
  readonly notes: readonly string[];
  /** Writes the other files of the run folder. */
  saveFiles(folder: string): void;
  /** The joint figures on test data, once all are trained; null: none. */
  test(run: string, threads: number): Promise<Readonly<Record<string, number>> | null>;
}

/** A member and the problem that it trains. */
export interface MemberRun<Config = unknown> extends Member {
  /** The `problem` of its configuration; everything else but the seed is as in the whole. */
  readonly problem: Config;
  /** Name of an earlier member whose best parameters it starts from (`problem.warmStart`). Default: none. */
  readonly startsFrom?: string;
}

/** Chooses sizes from the data and the available time. */
export interface Sizing {
  /** All of them but the warm-up, which depends on the number of updates and is 1 if it is `auto`. */
  choose(config: unknown, limits: SizingLimits): Promise<SizingChoice>;
  /** The rest, once the number of updates is known. */
  complete(config: unknown, updates: number): object;
}

/** What the sizes must fit into. */
export interface SizingLimits {
  /** Time budget of the training in seconds. Default: none. */
  readonly budget?: number;
  /** Measures the seconds of a problem's update. */
  readonly secondsOf: (problem: object) => Promise<number>;
}

/** The chosen sizes. */
export interface SizingChoice {
  /** The `problem` of the configuration, with sizes. */
  readonly problem: object;
  /** More updates than this do not help. */
  readonly mostUpdates: number;
  readonly updatesPerEpoch: number;
  /** What was chosen and why, for the user. */
  readonly lines: readonly string[];
}

/** Checks a description; for the types. */
export function problemKind<S extends ProblemSchema>(kind: ProblemKind<S>): ProblemKind<S> {
  return kind;
}

/** Scores the best model of a run. */
export type Evaluate = (run: string, flags: EvaluateFlags) => Promise<Evaluated>;

/** The flags of `tcts evaluate`, in camel case; a kind rejects flags it does not know. */
export interface EvaluateFlags {
  readonly split?: string;
  readonly data?: string;
  readonly threads: number;
  readonly device?: DeviceChoice;
  /** Print every figure, not only the most important. */
  readonly all?: boolean;
  /** Shows a sentence to the user. */
  readonly warn?: (sentence: string) => void;
  readonly [flag: string]: unknown;
}

/** What is printed: figures for programs, or text for display. */
export interface Evaluated {
  readonly json: unknown;
  readonly text: string;
}

/** Rejects flags that have no effect on a kind of run. */
export function refuseFlags(flags: EvaluateFlags, kind: string, ...names: string[]): void {
  const given = names.find((name) => flags[name] !== undefined);
  if (given === undefined) return;
  const flag = given.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw new InputError(`has no effect on a run of ${kind}`, { key: `--${flag}` });
}

/** Names of the learning rate schedules. */
export const SCHEDULES = ['constant', 'inverse_sqrt', 'cosine', 'reduce_on_plateau'] as const;

/** Keys of a problem's `learning` that mean the same in every problem. All are optional. */
export const learningKeys = {
  optimizer: z
    .enum(['adam', 'adamw'])
    .optional()
    .describe('adamw applies weight decay separately from the gradient (Loshchilov & Hutter 2019). Default: adam.'),
  minimum: z.number().min(0).optional().describe('Lowest learning rate of cosine and reduce_on_plateau. Default: 0.'),
  updates: z
    .int()
    .min(1)
    .optional()
    .describe('Updates, warm-up included, after which cosine is at its minimum. Default: the whole training.'),
  factor: z
    .number()
    .gt(0)
    .lt(1)
    .optional()
    .describe('Factor by which reduce_on_plateau multiplies the learning rate. Default: 0.1.'),
  patience: z
    .int()
    .min(0)
    .optional()
    .describe('Validations without improvement that reduce_on_plateau tolerates; the next one reduces. Default: 10.'),
  minDelta: z
    .number()
    .min(0)
    .optional()
    .describe(
      'Smallest change of the validation performance that reduce_on_plateau counts as an improvement. Default: 0.',
    ),
};

/** Help on the choice of a schedule. */
export const SCHEDULE_MEANING =
  'The learning rate after the warm-up: constant; falling with 1/√t (inverse_sqrt), or along half a cosine ' +
  'down to the minimum; or multiplied by a factor when validation stops improving (reduce_on_plateau).';

/** Help on weight decay. */
export const WEIGHT_DECAY_MEANING = 'λ: adam adds λθ to the gradient, adamw multiplies θ by 1 − η₁λ at each update.';

/** The `learning` of a problem whose learning rate is a separate key. Default: Adam with a constant rate. */
export const learningSchema = z
  .strictObject({
    schedule: z.enum(SCHEDULES).optional().describe(`${SCHEDULE_MEANING} Default: constant.`),
    warmup: z
      .int()
      .min(0)
      .optional()
      .describe('Updates over which the learning rate rises from 1e-7. Default: 0; inverse_sqrt needs at least 1.'),
    weightDecay: z.number().min(0).optional().describe(`${WEIGHT_DECAY_MEANING} Default: 0.`),
    ...learningKeys,
  })
  .optional()
  .describe('The optimiser and the learning rate schedule.');

/** The part of a `learning` that determines the optimiser and its learning rate. */
export type Learning = NonNullable<z.output<typeof learningSchema>> & {
  readonly warmupInit?: number;
  readonly betas?: readonly [number, number];
  readonly eps?: number;
};

/** The optimiser that a problem's `learning` names. */
export function optimizerOf({
  optimizer: name = 'adam',
  betas,
  eps,
  weightDecay = 0,
}: Omit<Learning, 'warmup'> = {}): AdamConfig | AdamWConfig {
  return { name, betas, eps, weightDecay };
}

/** η₁ over the updates of a training; `peak` is its maximum. */
export function learningRateOf(
  peak: number,
  { schedule: name = 'constant', warmup = 0, warmupInit, ...keys }: Learning = {},
  trainingUpdates?: number,
): LearningRate {
  const common = { peak, warmup, warmupInit };
  if (name === 'reduce_on_plateau') {
    const { factor, patience, minDelta, minimum } = keys;
    return learningRate({ name, ...common, factor, patience, minDelta, minimum });
  }
  if (name === 'inverse_sqrt' && warmup === 0) {
    throw new InputError('inverse_sqrt needs a warm-up, expected at least 1 update', {
      key: 'problem.learning.warmup',
    });
  }
  if (name !== 'cosine') return learningRate({ name, ...common });
  const updates = keys.updates ?? trainingUpdates;
  if (updates === undefined || updates <= warmup) {
    throw new InputError(
      `cosine needs more updates than the ${warmup} of the warm-up, found ${updates ?? 'no number of updates'}`,
      { key: 'problem.learning.updates' },
    );
  }
  return learningRate({ name, ...common, updates, minimum: keys.minimum });
}

/** The key `validation.reward` of a problem: the share of its validation data reserved for schedulers. */
export function rewardShare(of: string) {
  return z
    .number()
    .min(0)
    .max(0.9)
    .default(0)
    .describe(`Share of the ${of} reserved for schedulers to learn from (influence, aligned) and not validated on.`);
}
