import { z } from 'zod';
import { section } from '../run/index.js';

const task = z.union([z.string(), z.int()]);
const decay = z.number().min(0).lt(1);

/** Keys that turn validation performance into the factor of ∇ log P. */
const reward = {
  reward: z.enum(['difference', 'performance']).describe('What an episode is rewarded for: R_e − R_{e−1}, or R_e.'),
  skipFirst: z
    .boolean()
    .describe('Learn nothing from the first episode, which is measured against the untrained model.'),
  baseline: decay
    .nullable()
    .describe('Decay of the moving average of rewards that is subtracted from the reward; null: none.'),
  normalise: decay
    .nullable()
    .describe('Decay of the moving mean square by whose root the reward is divided; null: not divided.'),
};

const without = z.array(z.string()).default([]).describe('Names of feature groups that the scheduler does not see.');

const hidden = z.array(z.int().min(1)).min(1);

/** The `strategy` of a configuration. */
export const strategySchema = z
  .discriminatedUnion('name', [
    z.strictObject({
      name: z.literal('learned').describe("The paper's scheduler, trained with REINFORCE."),
      preset: z
        .enum(['stable', 'paper'])
        .default('stable')
        .describe('Where the keys left out below get their values: paper is Algorithm 1 with plain SGD.'),
      hidden: hidden.default([256]).describe('Widths of the hidden layers.'),
      activation: z.enum(['tanh', 'relu']).default('tanh').describe('Activation of the hidden layers.'),
      without,
      standardise: z
        .enum(['none', 'first-episode', 'running'])
        .optional()
        .describe(
          'Which episodes the features are brought to mean 0 and deviation 1 by. paper: none; stable: running.',
        ),
      learningRate: z.number().positive().optional().describe('η₂. paper: 5e-4; stable: 0.005.'),
      optimizer: z.enum(['sgd', 'adam']).optional().describe('paper: sgd; stable: adam.'),
      momentum: z.number().min(0).lt(1).default(0).describe('Of sgd.'),
      clipNorm: z.number().positive().nullable().optional().describe('Largest norm of the gradient. Both: null.'),
      reward: preset(reward.reward, 'Both: difference.'),
      skipFirst: preset(reward.skipFirst, 'paper: false; stable: true.'),
      baseline: preset(reward.baseline, 'paper: null; stable: 0.9.'),
      normalise: preset(reward.normalise, 'paper: null; stable: 0.9.'),
      reduction: z
        .enum(['sum', 'mean', 'root'])
        .optional()
        .describe('Over the buffer of N decisions: the sum, the mean, or the sum over √N. paper: sum; stable: root.'),
      entropy: z.number().min(0).optional().describe('β, weight of the entropy bonus. paper: 0; stable: 0.1.'),
      minibatch: z
        .int()
        .min(1)
        .nullable()
        .optional()
        .describe('Decisions in one update of the scheduler; null: the whole buffer. Both: null.'),
    }),
    z.strictObject({
      name: z.literal('fixed').describe('One task only.'),
      task: task.nullable().default(null).describe('Name or number of the task; null: the main task.'),
    }),
    z.strictObject({
      name: z.literal('best-fixed').describe('One model for each task; the best on the main task wins.'),
      tasks: z.array(task).min(1).nullable().default(null).describe('Names or numbers of the candidates; null: all.'),
    }),
    z.strictObject({ name: z.literal('mtl').describe('Every task equally likely.') }),
    z.strictObject({
      name: z.literal('oracle').describe('What the problem knows to be right, where its answer is known.'),
    }),
    z.strictObject({
      name: z.literal('curriculum').describe('From the easiest task to the main or the hardest one.'),
      easiest: z
        .enum(['first', 'last'])
        .nullable()
        .default(null)
        .describe(
          'Which end of the list of tasks is the easiest; null: as the problem says (waits: last, days: first).',
        ),
      until: z
        .enum(['main', 'hardest'])
        .nullable()
        .default(null)
        .describe('Task of the last stage; null: as in the paper (waits: main, days: hardest).'),
    }),
    z.strictObject({
      name: z.literal('annealing').describe('From all tasks alike to a preference of large numbers.'),
      prefer: z.enum(['larger', 'smaller']).default('larger').describe('Numbers that are preferred in the end.'),
    }),
    z.strictObject({
      name: z.literal('window').describe('Every task near a given one equally likely.'),
      around: task.nullable().default(null).describe('Name or number of the middle; null: the main task.'),
      radius: z.int().min(0).default(2).describe('Tasks on each side.'),
    }),
    z.strictObject({
      name: z.literal('self-paced').describe('The main task without the hardest samples of each batch.'),
      from: z.number().min(0).lt(100).default(40).describe('Percentage of a batch left out at the beginning.'),
      to: z.number().min(0).lt(100).default(0).describe('Percentage left out at the end.'),
    }),
    z.strictObject({
      name: z.literal('greedy').describe("As in qlib's code: always the most probable task."),
      hidden: hidden.default([32]).describe('Widths of the hidden layers.'),
      learningRate: z.number().positive().default(5e-7).describe('Of Adam, once for each validation batch.'),
      without,
    }),
    z.strictObject({
      name: z.literal('soft').describe("As in qlib's code: all tasks, weighted with their probabilities."),
      hidden: hidden.default([32]).describe('Widths of the hidden layers.'),
      learningRate: z.number().positive().default(5e-7).describe('Of Adam, once for each validation batch.'),
      without,
    }),
    z.strictObject({
      name: z.literal('aligned').describe("Tasks whose gradients agree with the main task's validation gradient."),
      learningRate: z.number().positive().default(0.5).describe('Of the logits.'),
      every: z.int().min(1).default(10).describe('Updates between two measurements of the gradients.'),
    }),
    z.strictObject({
      name: z.literal('static').describe('A fixed mix of the main task and its siblings.'),
      main: z.number().min(0).max(1).default(0.5).describe('Probability of the main task.'),
      rest: z
        .enum(['uniform', 'near'])
        .default('uniform')
        .describe('How the rest is spread: over all siblings alike, or more to the nearer ones.'),
      until: z
        .number()
        .min(0)
        .max(1)
        .default(1)
        .describe('Share of the updates after which only the main task is trained.'),
    }),
    z.strictObject({
      name: z.literal('influence').describe('By what a step on each sample and task does to the validation loss.'),
      hidden: hidden.default([32]).describe('Widths of the hidden layers.'),
      without: z
        .array(z.string())
        .nullable()
        .default(null)
        .describe(
          'Feature groups that the scheduler does not see; null: those that cost a pass of the model or tell the labels.',
        ),
      every: z
        .int()
        .min(1)
        .default(10)
        .describe('M: updates between two measurements; a quarter of that in the beginning.'),
      smoothing: z
        .number()
        .min(0)
        .lt(1)
        .default(0.8)
        .describe('What the validation gradients of earlier measurements count in the one that is used.'),
      samples: z
        .int()
        .min(1)
        .nullable()
        .default(null)
        .describe('Samples of the batch that are measured; null: as many as the problem suggests.'),
      memory: z.int().min(4).default(32).describe('Measurements that the scheduler learns from.'),
      entropy: z.number().positive().default(1).describe('β, weight of the entropy: π tends to exp(credit ∕ β).'),
      explore: z
        .number()
        .min(0)
        .max(1)
        .default(0.05)
        .describe('γ: share of the updates that keeps every task in training; 1 is mtl.'),
      learningRate: z.number().positive().default(0.02).describe('η₂ of Adam.'),
      steps: z.int().min(1).default(16).describe('Steps of Adam after a measurement.'),
      shuffle: z
        .boolean()
        .default(false)
        .describe('Control: show the scheduler the features of another sample of the batch.'),
    }),
    z.strictObject({
      name: z.literal('bandit').describe('One distribution over the tasks, blind to the samples.'),
      method: z
        .enum(['weights', 'thompson'])
        .default('weights')
        .describe('Weights that follow the reward, or one task an episode, drawn by how likely it is the best.'),
      learningRate: z.number().positive().default(0.1).describe('Of the weights.'),
      discount: z.number().gt(0).max(1).default(0.95).describe('thompson: what an episode counts after the next one.'),
      explore: z.number().min(0).max(1).default(0.05).describe('Share of the uniform distribution.'),
      reward: reward.reward.default('difference'),
      skipFirst: reward.skipFirst.default(true),
      baseline: reward.baseline.default(0.9),
      normalise: reward.normalise.default(0.9),
    }),
  ])
  .describe('How the task of each sample is chosen; docs/strategies.md has the formulas.');

export type StrategyConfig = z.output<typeof strategySchema>;

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

/** The `training` of a configuration. */
export const trainingSchema = section({
  episodes: z.int().min(1).default(100).describe('E: validations, after each of which the scheduler is updated.'),
  steps: z.int().min(1).default(100).describe('S: updates of the model in an episode.'),
}).describe('The extent of Algorithm 1.');

/** A key that a preset gives a value to where it is left out. */
function preset<S extends z.ZodType>(key: S, values: string) {
  return key.optional().describe(`${key.description} ${values}`);
}
