import { z } from 'zod';
import { InputError } from '../../errors.js';
import { section } from '../../run/index.js';
import { problemKind } from '../../schedule/problem-kind.js';
import { translationKind, translationSchema } from '../config.js';
import type { TranslationModel } from '../model/config.js';

/**
 * How the decoder attends over the source.
 *
 * - `milk`: one head of each layer moves, and all heads attend softly over what lies behind it (Arivazhagan et al. 2019).
 * - `mma-il`: each head moves and attends softly over what lies behind it (Ma et al. 2020).
 * - `mma-h`: each head moves and attends to the one token that it stops at (Ma et al. 2020).
 */
export const ATTENTIONS = ['milk', 'mma-il', 'mma-h'] as const;
export type MonotonicKind = (typeof ATTENTIONS)[number];

/** A Transformer with monotonic attention. Its encoder is unidirectional: what has been read does not change again. */
export interface MonotonicModel extends TranslationModel {
  readonly attention: MonotonicKind;
}

export function monotonicModel(model: TranslationModel, attention: MonotonicKind): MonotonicModel {
  if (model.encoder === 'unidirectional') return { ...model, attention };
  throw new InputError('heads that only move forward need tokens that keep their encoding, expected "unidirectional"', {
    key: 'problem.model.encoder',
  });
}

/** Heads of a layer that move on their own. */
export function movingHeads({ attention, heads }: MonotonicModel): number {
  return attention === 'milk' ? 1 : heads;
}

/** Whether heads attend softly over everything behind the place where they stop. */
export function lookback({ attention }: MonotonicModel): boolean {
  return attention !== 'mma-h';
}

const { data, model, batch, smoothing, learning, warmStart } = translationSchema.shape;
const weight = z.number().min(0).optional();

/** The `problem` of a configuration whose kind is `monotonic`. */
export const monotonicSchema = z.strictObject({
  kind: z
    .literal('monotonic')
    .describe('Simultaneous translation with attention that decides by itself when to read (appendix C.3).'),
  data,
  attention: z
    .enum(ATTENTIONS)
    .default('mma-il')
    .describe(
      'milk: one moving head a layer, soft attention behind it; mma-il: every head moves, soft attention behind it; ' +
        'mma-h: every head moves and attends to where it stops.',
    ),
  latencyWeight: weight.describe(
    'λ_avg: what a token of average lagging costs a sentence, in nats. If left out: 0.1, with mma-h 0.',
  ),
  varianceWeight: weight.describe(
    'λ_var: what a unit of variance between the heads costs a sentence, in nats. If left out: 0, with mma-h 0.1.',
  ),
  model,
  batch,
  smoothing,
  learning,
  validation: section({
    split: z.string().min(1).default('valid').describe('Split of the corpus.'),
    tokens: z.int().min(1).default(8192).describe('Most target tokens in a batch; without influence on the result.'),
  }).describe('Performance is minus the loss that is trained, latency included, without noise, in nats per token.'),
  warmStart,
});

export type MonotonicConfig = z.output<typeof monotonicSchema>;

/** λ_avg and λ_var; where they are left out, those of Ma et al. (2020). */
export function latencyWeights(config: MonotonicConfig): { latencyWeight: number; varianceWeight: number } {
  const hard = config.attention === 'mma-h';
  const { latencyWeight = hard ? 0 : 0.1, varianceWeight = hard ? 0.1 : 0 } = config;
  return { latencyWeight, varianceWeight };
}

export const monotonicKind = problemKind({
  schema: monotonicSchema,
  sizing: translationKind.sizing,
  create: async (config, context) => (await import('./problem.js')).MonotonicProblem.create(config, context),
  evaluate: async (run, flags) => (await import('../evaluate-run.js')).evaluateTranslationRun(run, flags),
  verbs: ['translate'],
});
