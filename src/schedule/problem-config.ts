import { z } from 'zod';
import { InputError } from '../errors.js';
import { type AdamConfig, type AdamWConfig, type LearningRate, learningRate } from '../optim/index.js';

/** Names of the learning rate schedules. */
export const SCHEDULES = ['constant', 'inverse_sqrt', 'cosine', 'reduce_on_plateau'] as const;

/** Keys of a problem's `learning` that mean the same in every problem. All may be left out. */
export const learningKeys = {
  optimizer: z
    .enum(['adam', 'adamw'])
    .optional()
    .describe('adamw takes the weight decay apart from the gradient (Loshchilov & Hutter 2019). If left out: adam.'),
  minimum: z
    .number()
    .min(0)
    .optional()
    .describe('Lowest learning rate of cosine and reduce_on_plateau. If left out: 0.'),
  updates: z
    .int()
    .min(1)
    .optional()
    .describe('Updates, warm-up included, after which cosine is at its minimum. If left out: the whole training.'),
  factor: z
    .number()
    .gt(0)
    .lt(1)
    .optional()
    .describe('What reduce_on_plateau multiplies the learning rate with. If left out: 0.1.'),
  patience: z
    .int()
    .min(0)
    .optional()
    .describe(
      'Validations without improvement that reduce_on_plateau tolerates; the next one reduces. If left out: 10.',
    ),
  minDelta: z
    .number()
    .min(0)
    .optional()
    .describe('Smallest change of the validation performance that reduce_on_plateau takes for one. If left out: 0.'),
};

/** Help on the choice of a schedule. */
export const SCHEDULE_MEANING =
  'How the learning rate goes on after the warm-up: constant; falling with 1/√t (inverse_sqrt), or along half a cosine ' +
  'down to the minimum; or multiplied with a factor when validation has stopped improving (reduce_on_plateau).';

/** Help on weight decay. */
export const WEIGHT_DECAY_MEANING = 'λ: adam adds λθ to the gradient, adamw multiplies θ with 1 − η₁λ at each update.';

/** The `learning` of a problem whose learning rate is a separate key; if left out, Adam with a constant rate. */
export const learningSchema = z
  .strictObject({
    schedule: z.enum(SCHEDULES).optional().describe(`${SCHEDULE_MEANING} If left out: constant.`),
    warmup: z
      .int()
      .min(0)
      .optional()
      .describe('Updates over which the learning rate rises from 1e-7. If left out: 0; inverse_sqrt needs some.'),
    weightDecay: z.number().min(0).optional().describe(`${WEIGHT_DECAY_MEANING} If left out: 0.`),
    ...learningKeys,
  })
  .optional()
  .describe('The optimiser, and how the learning rate changes.');

/** What of a `learning` the optimiser and its learning rate follow from. */
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

/** η₁ over the updates of a training; `peak` is its largest value. */
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
    throw new InputError('inverse_sqrt falls from the end of the warm-up on, expected at least 1 update', {
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

/** The key `validation.reward` of a problem: what of its validation data is kept for schedulers. */
export function rewardShare(of: string) {
  return z
    .number()
    .min(0)
    .max(0.9)
    .default(0)
    .describe(
      `Share of the ${of} that is kept for schedulers to learn from (influence, aligned) and not validated on.`,
    );
}
