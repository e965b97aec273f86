import { z } from 'zod';
import { Random, type RandomState } from '../../random.js';
import type { Snapshot } from '../../run/index.js';
import { type Problem, remainingGroups, type Status } from '../problem.js';
import { RewardSignal, type RewardState, rewardKeys } from '../reward.js';
import { joinSnapshots, partOf, stateOnly } from '../snapshots.js';
import { describeStrategy, type EpisodeReport, type SampledChoice, type Strategy } from '../strategy.js';
import { ActionBuffer, type Actions } from './buffer.js';
import { sampleRows } from './distribution.js';
import { hiddenWidths, SchedulerNetwork, Standardisation, withoutGroups } from './scheduler.js';

/** Values of the options that are left out. */
const PRESETS: Readonly<Record<'paper' | 'stable', Preset>> = {
  /** Algorithm 1 to the letter: plain SGD on R_e − R_{e−1}, summed over the buffer. */
  paper: {
    standardise: 'none',
    learningRate: 5e-4,
    optimizer: 'sgd',
    clipNorm: null,
    reward: 'difference',
    skipFirst: false,
    baseline: null,
    normalise: null,
    reduction: 'sum',
    entropy: 0,
    minibatch: null,
  },
  /** The same algorithm with the variance of its gradient under control: the size of a step is independent of R's unit. */
  stable: {
    standardise: 'running',
    learningRate: 0.005,
    optimizer: 'adam',
    clipNorm: null,
    reward: 'difference',
    skipFirst: true,
    baseline: 0.9,
    normalise: 0.9,
    reduction: 'root',
    entropy: 0.1,
    minibatch: null,
  },
};

const optionsSchema = z.strictObject({
  preset: z
    .enum(['stable', 'paper'])
    .default('stable')
    .describe('Where the keys left out below get their values: paper is Algorithm 1 with plain SGD.'),
  hidden: hiddenWidths.default([256]),
  activation: z.enum(['tanh', 'relu']).default('tanh').describe('Activation of the hidden layers.'),
  without: withoutGroups,
  // Within an episode the scale does not change, so that ∇ log P is that of the scheduler which acted.
  standardise: preset(
    'standardise',
    z.enum(['none', 'first-episode', 'running']),
    'Which episodes the features are brought to mean 0 and deviation 1 by.',
  ),
  learningRate: preset('learningRate', z.number().positive(), 'η₂.'),
  optimizer: preset('optimizer', z.enum(['sgd', 'adam']), 'Optimiser of the scheduler.'),
  momentum: z.number().min(0).lt(1).default(0).describe('Of sgd.'),
  clipNorm: preset('clipNorm', z.number().positive().nullable(), 'Largest norm of the gradient.'),
  reward: preset('reward', rewardKeys.reward),
  skipFirst: preset('skipFirst', rewardKeys.skipFirst),
  baseline: preset('baseline', rewardKeys.baseline),
  normalise: preset('normalise', rewardKeys.normalise),
  // As each term gets the same A, the sum of the terms grows with √N unless the tasks matter: with root neither η₂ nor β
  // depends on the length of an episode.
  reduction: preset(
    'reduction',
    z.enum(['sum', 'mean', 'root']),
    'Over the buffer of N decisions: the sum, the mean, or the sum over √N.',
  ),
  // β·H(φ(I; ω)) is summed over the buffer with sum, else averaged.
  entropy: preset('entropy', z.number().min(0), 'β, weight of the entropy bonus.'),
  // One pass over the buffer in random order. After its first update the scheduler is no longer the one that acted.
  minibatch: preset(
    'minibatch',
    z.int().min(1).nullable(),
    'Decisions in one update of the scheduler; null: the whole buffer.',
  ),
});

type GivenOptions = z.output<typeof optionsSchema>;
type Preset = Required<Omit<GivenOptions, 'preset' | 'hidden' | 'activation' | 'without' | 'momentum'>>;

/** All options, those of the preset filled in. */
export type LearnedOptions = Required<Omit<GivenOptions, 'preset'>>;

/** The options of the preset `paper`. */
export const PAPER = learnedOptions(optionsSchema.parse({ preset: 'paper' }));

/** The options of the preset `stable`, the default. */
export const STABLE = learnedOptions(optionsSchema.parse({ preset: 'stable' }));

/** The preset with the options that are given laid over it. */
function learnedOptions({ preset, ...given }: GivenOptions): LearnedOptions {
  const defined = Object.entries(given).filter(([, value]) => value !== undefined);
  return { ...PRESETS[preset], ...Object.fromEntries(defined) } as LearnedOptions;
}

/** An option that a preset gives a value to where it is left out; its description says which. */
function preset<S extends z.ZodType>(name: string, option: S, meaning = option.description): z.ZodOptional<S> {
  const [paper, stable] = [PRESETS.paper, PRESETS.stable].map((values) => String(values[name as keyof Preset]));
  return option
    .optional()
    .describe(`${meaning} ${paper === stable ? `Both: ${paper}.` : `paper: ${paper}; stable: ${stable}.`}`);
}

/** The paper's scheduler φ, trained with REINFORCE. */
export class Learned<Batch> implements Strategy<Batch> {
  readonly name = 'learned';
  private readonly groups: readonly string[];
  private readonly buffer: ActionBuffer;
  private readonly scale: Standardisation;
  private readonly reward: RewardSignal;
  private random: Random;

  private constructor(
    private readonly problem: Problem<Batch>,
    private readonly options: LearnedOptions,
    private readonly network: SchedulerNetwork,
    width: number,
    random: Random,
  ) {
    this.groups = remainingGroups(problem.features, options.without).map(({ name }) => name);
    this.buffer = new ActionBuffer(width);
    this.scale = new Standardisation(width);
    this.reward = new RewardSignal(options);
    this.random = random.fork('sampling');
  }

  /** Builds the scheduler network for the features of a problem. */
  static async create<Batch>(
    problem: Problem<Batch>,
    random: Random,
    options: LearnedOptions = STABLE,
    threads = 1,
  ): Promise<Learned<Batch>> {
    const { hidden, activation, optimizer, momentum, clipNorm } = options;
    const width = remainingGroups(problem.features, options.without).reduce((sum, group) => sum + group.width, 0);
    const own = random.fork('learned');
    const network = await SchedulerNetwork.create(width, problem.tasks.length, own.fork('policy'), {
      hidden,
      activation,
      optimizer: optimizer === 'sgd' ? { name: 'sgd', momentum } : { name: 'adam' },
      clip: clipNorm === null ? undefined : { norm: clipNorm },
      startUniform: true,
      threads,
    });
    return new Learned(problem, options, network, width, own);
  }

  async probabilities(batch: Batch, status: Status): Promise<Float32Array> {
    const features = new Float32Array(this.problem.sizeOf(batch) * this.buffer.width);
    await this.problem.writeFeatures(batch, status, this.groups, features);
    return (await this.network.evaluate(features, this.scale)).probabilities;
  }

  async choose(batch: Batch, status: Status): Promise<SampledChoice> {
    const size = this.problem.sizeOf(batch);
    const { features, tasks } = this.buffer.append(size);
    await this.problem.writeFeatures(batch, status, this.groups, features);
    const { probabilities, entropy } = await this.network.evaluate(features, this.scale);
    sampleRows(probabilities, this.random, tasks);
    return { kind: 'sampled', tasks, weights: new Float32Array(size).fill(1), entropy: entropy / size };
  }

  async endEpisode(performance: number, status: Status): Promise<EpisodeReport> {
    const { standardise } = this.options;
    // Before its first update the scheduler is uniform whatever the scale, so the scale can still be set.
    const first = this.scale.isEmpty;
    if (first && standardise !== 'none') this.scale.add(this.buffer.sampleRows(SCALE_ROWS));
    const advantage = this.reward.advantage(performance, status.performance);
    const report = advantage === undefined ? {} : { gradNorm: await this.update(advantage) };
    if (!first && standardise === 'running') this.scale.add(this.buffer.sampleRows(SCALE_ROWS));
    // Line 3 of the next episode; done here so that a checkpoint between the two need not hold the buffer.
    this.buffer.clear();
    return report;
  }

  capture(): Snapshot {
    return joinSnapshots({
      policy: this.network.capture(),
      buffer: this.buffer.capture(),
      own: stateOnly({ random: this.random.state(), reward: this.reward.state(), scale: this.scale.state() }),
    });
  }

  restore(snapshot: Snapshot): void {
    this.network.restore(partOf(snapshot, 'policy'));
    this.buffer.restore(partOf(snapshot, 'buffer'));
    const { random, reward, scale } = partOf(snapshot, 'own').state as LearnedState;
    this.random = Random.restore(random);
    this.reward.load(reward);
    this.scale.load(scale);
  }

  /** Releases native memory and threads. */
  async close(): Promise<void> {
    await this.network.close();
  }

  /** ω ← ω + η₂ A Σ_{(I,T)∈ℬ} ∇ω log P(φ(I; ω) = T). Returns ‖∇ω‖, of minibatches the mean. */
  private async update(advantage: number): Promise<number> {
    const { minibatch } = this.options;
    if (minibatch === null) return this.ascend(this.buffer.chunks(), this.buffer.length, advantage);
    let [norms, count] = [0, 0];
    for (const batch of this.buffer.minibatches(minibatch, this.random)) {
      norms += await this.ascend([batch], batch.tasks.length, advantage);
      count++;
    }
    return norms / count;
  }

  private ascend(chunks: readonly Actions[], decisions: number, advantage: number): Promise<number> {
    const { reduction, entropy, learningRate } = this.options;
    const power = { sum: 0, mean: 1, root: 0.5 }[reduction];
    return this.network.ascend(chunks, this.scale, {
      gain: advantage / decisions ** power,
      entropy: reduction === 'sum' ? entropy : entropy / decisions,
      learningRate,
    });
  }
}

interface LearnedState {
  readonly random: RandomState;
  readonly reward: RewardState;
  readonly scale: ReturnType<Standardisation['state']>;
}

/** Rows of an episode that the scale of the features is taken from, evenly spaced. */
const SCALE_ROWS = 1024;

export const learned = describeStrategy({
  name: 'learned',
  summary: "The paper's scheduler, trained with REINFORCE.",
  title: 'TCTS',
  role: 'method',
  learns: 'every episode',
  sees: 'features',
  extraCost: 'under 2 % besides the features',
  knobs: ['learningRate', 'entropy', 'hidden', 'without', 'preset'],
  options: optionsSchema,
  create: (options, problem, { random, threads }) => Learned.create(problem, random, learnedOptions(options), threads),
});
