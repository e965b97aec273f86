import { z } from 'zod';
import { section } from '../run/index.js';
import {
  learningKeys,
  problemKind,
  rewardShare,
  SCHEDULE_MEANING,
  SCHEDULES,
  WEIGHT_DECAY_MEANING,
} from '../schedule/problem-kind.js';
import { FEATURES, ORIGIN } from './features.js';
import { modelSchema } from './model/config.js';

const auto = z.literal('auto');
const pairs = z
  .int()
  .min(1)
  .default(5000)
  .describe('Training pairs; another 300 are for validation and 300 for testing.');

const dataSchema = z
  .discriminatedUnion('from', [
    z.strictObject({
      from: z.literal('toy').describe('A synthetic language pair in which waiting matters, generated on the fly.'),
      seed: z.int().min(0).default(1).describe("Seed of the words and sentences, independent of the run's."),
      pairs,
    }),
    z.strictObject({
      from: z
        .literal('verb-final')
        .describe(
          'English with the verb at the end into plain English, generated on the fly: readable, and waiting matters.',
        ),
      seed: z.int().min(0).default(1).describe("Seed of the sentences, independent of the run's."),
      pairs,
    }),
    z.strictObject({
      from: z.literal('corpus').describe('A folder made by tcts prepare translate.'),
      folder: z
        .string()
        .min(1)
        .describe('Path of the folder.')
        .meta({ examples: ['corpora/multi30k'] }),
    }),
  ])
  .describe('Where the sentence pairs come from.');

export type TranslationDataConfig = z.output<typeof dataSchema>;

/** The `problem` of a configuration whose kind is `translation`. */
export const translationSchema = z.strictObject({
  kind: z.literal('translation').describe('Simultaneous translation: wait-m for m = 1 … M, section 3 of the paper.'),
  data: dataSchema,
  waits: z
    .union([z.int().min(1).max(1000), z.literal('full')])
    .default(13)
    .describe(
      'M: the tasks are wait-1 … wait-M. full: a single task, translating after the whole source has been read.',
    ),
  main: z.int().min(1).max(1000).default(3).describe('k: the main task is wait-k.'),
  model: modelSchema,
  batch: section({
    tokens: z
      .union([z.int().min(1), auto])
      .default(4096)
      .describe("Maximum target tokens in a batch, including padding; auto: chosen with the model's preset."),
    sentences: z.int().min(1).nullable().default(null).describe('Maximum sentence pairs in a batch; null: any number.'),
    accumulate: z.int().min(1).default(1).describe('Batches whose gradients are summed for one update.'),
  }).describe('Batches of sentence pairs of similar length.'),
  smoothing: z.number().min(0).lt(1).default(0.1).describe('ε of label smoothing.'),
  learning: section({
    schedule: z.enum(SCHEDULES).default('inverse_sqrt').describe(SCHEDULE_MEANING),
    peak: z
      .union([z.number().positive(), auto])
      .default(5e-4)
      .describe("η₁, reached at the end of the warm-up; auto: chosen with the model's preset."),
    warmup: z
      .union([z.int().min(1), auto])
      .default(4000)
      .describe('Updates over which the learning rate rises; auto: a fifth of all, at most 4,000.'),
    warmupInit: z.number().min(0).default(1e-7).describe('Learning rate of the first update.'),
    betas: z
      .tuple([z.number().min(0).lt(1), z.number().min(0).lt(1)])
      .default([0.9, 0.98])
      .describe("Adam's β₁ and β₂."),
    eps: z.number().positive().default(1e-8).describe("Adam's ε."),
    weightDecay: z.number().min(0).default(0).describe(WEIGHT_DECAY_MEANING),
    clipNorm: z.number().positive().nullable().default(null).describe('Maximum norm of the gradient; null: any.'),
    ...learningKeys,
  }).describe('The optimiser and its learning rate.'),
  mainLoss: z
    .enum(['exact', 'estimated', 'cached'])
    .default('cached')
    .describe(
      "How the scheduler's feature of that name is obtained: computed for every sentence, computed with 8-bit products, " +
        'or remembered from the last time the sentence was trained on the main task.',
    ),
  validation: section({
    split: z.string().min(1).default('valid').describe('Split of the corpus.'),
    loss: z
      .enum(['plain', 'smoothed'])
      .default('plain')
      .describe('Performance is minus this loss, in nats per token; smoothed: with label smoothing, as in fairseq.'),
    tokens: z.int().min(1).default(8192).describe('Maximum target tokens in a batch; does not affect the result.'),
    reward: rewardShare('pairs'),
  }).describe('How the main task is validated.'),
  corruption: section({
    scrambled: z
      .number()
      .min(0)
      .lt(1)
      .default(0)
      .describe(
        'Share of the pairs whose source halves are swapped, so that short waits cannot learn from them; 0: none.',
      ),
    seed: z.int().min(0).default(1).describe("Seed that chooses the pairs, independent of the run's."),
  }).describe(
    'Corrupts training pairs so that a scheduler has something to find; validation and test data stay clean.',
  ),
  warmStart: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('Run folder whose best parameters initialise the model; null: random ones.'),
});

/** The checked `problem` of a configuration whose kind is `translation`. */
export type TranslationConfig = z.output<typeof translationSchema>;

export const translationKind = problemKind({
  schema: translationSchema,
  sizing: {
    keys: ['model.preset', 'batch.tokens', 'learning.peak', 'learning.warmup'],
    load: async () => (await import('./sizing.js')).translationSizing,
  },
  create: async (config, context) => (await import('./problem.js')).TranslationProblem.create(config, context),
  evaluate: async (run, flags) => (await import('./evaluate-run.js')).evaluateTranslationRun(run, flags),
  verbs: ['translate', 'export'],
  evaluations: 'translations',
  features: [...FEATURES, ORIGIN],
  taskTitle: (main) => `k = ${main}`,
  madeUpData: madeUpText,
  withoutCost: ['smoothing'],
});

/** The name of generated sentence pairs. */
export function madeUpText({ from }: { readonly from?: unknown }): string | undefined {
  return from === 'toy' ? 'toy languages' : from === 'verb-final' ? 'verb-final English' : undefined;
}
