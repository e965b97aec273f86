import { z } from 'zod';
import { InputError } from '../../errors.js';
import { section } from '../../run/index.js';
import { type Task, taskIndex } from '../../schedule/problem.js';
import { problemKind, rewardShare } from '../../schedule/problem-kind.js';
import { translationKind, translationSchema } from '../config.js';
import type { TranslationModel } from '../model/config.js';

/**
 * How the decoder attends over the source.
 *
 * - `milk`: one head of each layer moves, and all heads attend softly to everything before it (Arivazhagan et al. 2019).
 * - `mma-il`: each head moves and attends softly to everything before it (Ma et al. 2020).
 * - `mma-h`: each head moves and attends to the one token that it stops at (Ma et al. 2020).
 * - `itst`: each source token transports some information to each target token (Zhang and Feng 2022, `itst.ts`).
 * - `hmt`: each target token has some moments at which it may be written (Zhang and Feng 2023, `hmt.ts`).
 */
export const MOVING = ['milk', 'mma-il', 'mma-h'] as const;
export const ATTENTIONS = [...MOVING, 'itst', 'hmt'] as const;
export type MonotonicKind = (typeof ATTENTIONS)[number];

/** The policy that a model with this attention is trained for. */
export function policyOf(attention: MonotonicKind): 'monotonic' | 'itst' | 'hmt' {
  return attention === 'itst' || attention === 'hmt' ? attention : 'monotonic';
}

/** Whether what is written is re-decoded after every READ, because its states depend on how much has been read. */
export function redecodes({ attention }: Pick<MonotonicModel, 'attention'>): boolean {
  return attention === 'hmt';
}

/** A Transformer that learns when to read. Its encoder is unidirectional: what has been read does not change again. */
export interface MonotonicModel extends TranslationModel {
  readonly attention: MonotonicKind;
  /** Only for `hmt`. */
  readonly candidates?: HmtCandidates;
}

/** The moments at which `hmt` may write target token i, from 0: after L + i, …, L + i + K − 1 source tokens. */
export interface HmtCandidates {
  /** L */
  readonly first: number;
  /** K */
  readonly states: number;
}

export function monotonicModel(
  model: TranslationModel,
  attention: MonotonicKind,
  candidates: HmtCandidates = { first: 2, states: 4 },
): MonotonicModel {
  if (model.encoder === 'unidirectional')
    return { ...model, attention, ...(attention === 'hmt' ? { candidates } : {}) };
  throw new InputError('heads that only move forward need encodings that do not change, expected "unidirectional"', {
    key: 'problem.model.encoder',
  });
}

/** Heads of a layer that move on their own; with `itst`, the one whose energies say how much information there is. */
export function movingHeads({ attention, heads }: MonotonicModel): number {
  return attention === 'milk' || attention === 'itst' ? 1 : heads;
}

/** Whether heads attend softly to everything before the place where they stop. */
export function lookback({ attention }: MonotonicModel): boolean {
  return attention !== 'mma-h';
}

const { data, model, batch, smoothing, learning, warmStart } = translationSchema.shape;
const weight = z.number().min(0).optional();

/** The `problem` of a configuration whose kind is `monotonic`. */
export const monotonicSchema = z.strictObject({
  kind: z
    .literal('monotonic')
    .describe('Simultaneous translation with attention that learns when to read (appendix C.3).'),
  data,
  attention: z
    .enum(ATTENTIONS)
    .default('mma-il')
    .describe(
      'milk: one moving head per layer, soft attention up to it; mma-il: every head moves, soft attention up to it; ' +
        'mma-h: every head moves and attends to where it stops; itst: information transport; hmt: hidden Markov model.',
    ),
  latencyWeight: weight.describe(
    'λ_avg: cost of a token of average lagging per sentence, in nats. Default: 0.1; for mma-h 0. For itst and hmt ' +
      'the factor of their latency, default 20 and 1.',
  ),
  latencyWeights: z
    .array(z.number().min(0))
    .min(1)
    .max(50)
    .optional()
    .describe('Instead of latencyWeight: one task for each of these weights, in ascending order. Default: one task.')
    .meta({ examples: [[0, 0.05, 0.1, 0.2]] }),
  main: z
    .number()
    .min(0)
    .optional()
    .describe('The entry of latencyWeights that is the main task. Default: the default of latencyWeight.'),
  mainLoss: z
    .enum(['exact', 'cached'])
    .default('cached')
    .describe(
      "With several tasks, how the scheduler's feature of that name is obtained: computed for every sentence, or " +
        'remembered from its last update.',
    ),
  varianceWeight: weight.describe(
    'λ_var: cost of a unit of variance between the heads per sentence, in nats. Default: 0; for mma-h 0.1. For itst ' +
      'the factor of the distance from one unit of information, default 5. Not for hmt.',
  ),
  threshold: section({
    least: z.number().gt(0).max(1).default(0.5).describe('δ_min: where the threshold ends.'),
    decay: z
      .number()
      .positive()
      .nullable()
      .default(null)
      .describe('Updates in which its distance from δ_min falls to 1/e. null: those of the training.'),
    after: z
      .int()
      .min(0)
      .nullable()
      .default(null)
      .describe('Updates before it is applied at all. null: a tenth of the training.'),
  }).describe('itst only: in training a target token sees the source until it has received this much information.'),
  candidates: section({
    first: z
      .int()
      .min(-100)
      .max(1000)
      .default(2)
      .describe('L: minimum number of source tokens before the first target token.'),
    states: z
      .int()
      .min(1)
      .max(64)
      .default(4)
      .describe('K: number of moments at which each target token may be written.'),
  }).describe('hmt only: target token i, from 0, may be written after L + i to L + i + K − 1 source tokens.'),
  model,
  batch,
  smoothing,
  learning,
  validation: section({
    split: z.string().min(1).default('valid').describe('Split of the corpus.'),
    tokens: z.int().min(1).default(8192).describe('Maximum target tokens in a batch; does not affect the result.'),
    reward: rewardShare('pairs'),
  }).describe('Performance is minus the training loss, latency included, without noise, in nats per token.'),
  warmStart,
});

export type MonotonicConfig = z.output<typeof monotonicSchema>;

/** The tasks, one for each weight of the latency, and which of them is the main one. */
export function latencyTasks(config: MonotonicConfig): { readonly tasks: readonly Task[]; readonly main: number } {
  const { latencyWeights: weights, latencyWeight: only, main, attention } = config;
  if (weights === undefined) {
    if (main !== undefined) {
      throw new InputError('there are no latencyWeights to choose from, expected latencyWeight', {
        key: 'problem.main',
      });
    }
    return { tasks: [{ name: attention, number: 1 }], main: 0 };
  }
  if (only !== undefined) {
    throw new InputError('latencyWeights lists all of them, expected main', { key: 'problem.latencyWeight' });
  }
  if (weights.some((weight, i) => i > 0 && weight <= weights[i - 1])) {
    throw new InputError(`expected weights in ascending order, found ${weights.join(', ')}`, {
      key: 'problem.latencyWeights',
    });
  }
  const tasks = weights.map((number) => ({ name: `latency-${number}`, number }));
  return { tasks, main: taskIndex(tasks, main ?? DEFAULT_WEIGHTS[attention].latencyWeight, 'problem.main') };
}

/** λ_avg of the main task and λ_var. */
export function latencyWeights(config: MonotonicConfig): { latencyWeight: number; varianceWeight: number } {
  const { latencyWeight: average, varianceWeight: variance } = DEFAULT_WEIGHTS[config.attention];
  if (config.attention === 'hmt' && config.varianceWeight !== undefined) {
    throw new InputError('hmt has no moving heads, so their variance has no weight', {
      key: 'problem.varianceWeight',
    });
  }
  const { latencyWeight = config.main ?? average, varianceWeight = variance } = config;
  return { latencyWeight, varianceWeight };
}

/** Defaults: those of Ma et al. (2020), and λ_avg = 1 for HMT as in Zhang and Feng (2023). */
const DEFAULT_WEIGHTS: Readonly<Record<MonotonicKind, { latencyWeight: number; varianceWeight: number }>> = {
  milk: { latencyWeight: 0.1, varianceWeight: 0 },
  'mma-il': { latencyWeight: 0.1, varianceWeight: 0 },
  'mma-h': { latencyWeight: 0, varianceWeight: 0.1 },
  // The second loss is the distance of the information from one unit; both weights, see docs/policies.md.
  itst: { latencyWeight: 20, varianceWeight: 5 },
  // The second loss is that of the states on their own.
  hmt: { latencyWeight: 1, varianceWeight: 1 },
};

/** δ_train = δ_min + (1 − δ_min)·e^(−n/d) after n updates of `planned`; unlimited before it is applied. */
export function thresholdAt(
  { least, decay, after }: MonotonicConfig['threshold'],
  updates: number,
  planned: number,
): number {
  if (updates < (after ?? planned / 10)) return UNLIMITED;
  return least + (1 - least) * Math.exp(-updates / (decay ?? planned));
}

/** More information than a sentence can hold: everything is seen. */
export const UNLIMITED = 1e9;

export const monotonicKind = problemKind({
  schema: monotonicSchema,
  sizing: translationKind.sizing,
  create: async (config, context) => (await import('./problem.js')).MonotonicProblem.create(config, context),
  evaluate: async (run, flags) => (await import('../evaluate-run.js')).evaluateTranslationRun(run, flags),
  verbs: ['translate', 'export'],
  evaluations: 'translations',
  madeUpData: translationKind.madeUpData,
  // `first` is that of HMT's candidates.
  withoutCost: ['smoothing', 'latencyWeight', 'varianceWeight', 'threshold', 'first'],
});
