import { z } from 'zod';
import type { StoredTensor } from '../../optim/index.js';
import { Random, type RandomState } from '../../random.js';
import type { Snapshot } from '../../run/index.js';
import { type Problem, remainingGroups, type Status } from '../problem.js';
import { RewardSignal, type RewardState, rewardKeys } from '../reward.js';
import { joinSnapshots, partOf, stateOnly } from '../snapshots.js';
import { describeStrategy, type EpisodeReport, type SampledChoice, type Strategy } from '../strategy.js';
import { sampleRows } from './distribution.js';
import { type Actions, hiddenWidths, NETWORK, SchedulerNetwork, Standardisation, withoutGroups } from './scheduler.js';

/** Default values of options. */
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
  /** The same algorithm with a lower-variance gradient: the step size is independent of R's unit. */
  stable: {
    standardise: 'running',
    learningRate: 0.005, // with 32 units in the last hidden layer
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

/**
 * Adam moves every weight by about η₂, so a logit moves by η₂ times the width of the layer before it, with or without
 * evidence: with η₂ = .005 and 256 units by half a nat an episode, which in 60 episodes becomes a random preference.
 */
const STABLE_WIDTH = 32;

const optionsSchema = z.strictObject({
  preset: z
    .enum(['stable', 'paper'])
    .default('stable')
    .describe('Default values of the keys below: paper is Algorithm 1 with plain SGD.'),
  hidden: hiddenWidths.default([256]),
  activation: z.enum(['tanh', 'relu']).default('tanh').describe('Activation of the hidden layers.'),
  without: withoutGroups,
  // The scale does not change within an episode, so ∇ log P is that of the scheduler that acted.
  standardise: preset(
    'standardise',
    z.enum(['none', 'first-episode', 'running']),
    'Episodes used to scale the features to mean 0 and standard deviation 1.',
  ),
  learningRate: z
    .number()
    .positive()
    .optional()
    .describe('η₂. paper: 0.0005; stable: 0.16 ÷ width of the last hidden layer.'),
  optimizer: preset('optimizer', z.enum(['sgd', 'adam']), 'Optimiser of the scheduler.'),
  momentum: z.number().min(0).lt(1).default(0).describe('Momentum of sgd.'),
  clipNorm: preset('clipNorm', z.number().positive().nullable(), 'Maximum norm of the gradient.'),
  reward: preset('reward', rewardKeys.reward),
  skipFirst: preset('skipFirst', rewardKeys.skipFirst),
  baseline: preset('baseline', rewardKeys.baseline),
  normalise: preset('normalise', rewardKeys.normalise),
  // Since each term gets the same A, the sum grows with √N unless the tasks matter: with root neither η₂ nor β
  // depends on the length of an episode.
  reduction: preset(
    'reduction',
    z.enum(['sum', 'mean', 'root']),
    'Reduction over the buffer of N decisions: the sum, the mean, or the sum over √N.',
  ),
  // β·H(φ(I; ω)) is summed over the buffer with sum, otherwise averaged.
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

/** The preset, overridden by the given options. */
function learnedOptions({ preset, ...given }: GivenOptions): LearnedOptions {
  const { learningRate, ...own } = PRESETS[preset];
  const defined = Object.entries(given).filter(([, value]) => value !== undefined);
  const scale = preset === 'stable' ? STABLE_WIDTH / given.hidden.at(-1)! : 1;
  return { ...own, learningRate: learningRate * scale, ...Object.fromEntries(defined) } as LearnedOptions;
}

/** An option with a default from the preset; its description says which. */
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

  /** Builds the scheduler network for a problem's features. */
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
    // Before its first update the scheduler is uniform for any scale, so the scale can still be set.
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
      [NETWORK]: this.network.capture(),
      buffer: this.buffer.capture(),
      own: stateOnly({ random: this.random.state(), reward: this.reward.state(), scale: this.scale.state() }),
    });
  }

  restore(snapshot: Snapshot): void {
    this.network.restore(partOf(snapshot, NETWORK));
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

/** Rows of an episode, evenly spaced, used to scale the features. */
const SCALE_ROWS = 1024;

export const learned = describeStrategy({
  name: 'learned',
  summary: "The paper's scheduler, trained with REINFORCE.",
  title: 'TCTS',
  role: 'method',
  learns: 'every episode',
  sees: 'features',
  extraCost: 'under 2 % besides the features',
  showsScheduler: true,
  knobs: ['learningRate', 'entropy', 'hidden', 'without', 'preset'],
  options: optionsSchema,
  create: (options, problem, { random, threads }) => Learned.create(problem, random, learnedOptions(options), threads),
});

/**
 * ℬ of Algorithm 1: the features I and the task T of every decision of an episode. It grows in pages, so nothing
 * is ever moved and features are written in place; besides its features a decision takes 4 bytes for its task.
 */
export class ActionBuffer {
  private pages: Page[] = [];
  /** Pages of earlier episodes, to be reused. */
  private spare: Page[] = [];

  /** `width` is the number of features. */
  constructor(readonly width: number) {}

  /** Decisions in the buffer. */
  get length(): number {
    return this.pages.reduce((sum, { used }) => sum + used, 0);
  }

  /** Space for the next `rows` decisions, to be filled by the caller. */
  append(rows: number): Actions {
    let page = this.pages.at(-1);
    if (page === undefined || page.used + rows > page.capacity) {
      // A whole number of batches fills a page to the last row.
      page = this.page(rows * Math.ceil(PAGE_ROWS / rows));
      this.pages.push(page);
    }
    const begin = page.used;
    page.used += rows;
    return part(page, this.width, begin, page.used);
  }

  /** Everything, page by page, in the order of the decisions. */
  chunks(): Actions[] {
    return this.pages.map((page) => part(page, this.width, 0, page.used));
  }

  /** Everything in random order, in new arrays of `size` decisions; the last may be shorter. */
  *minibatches(size: number, random: Random): Generator<Actions> {
    const order = random.shuffle(Uint32Array.from({ length: this.length }, (_, i) => i));
    const starts: number[] = [];
    for (let at = 0, p = 0; p < this.pages.length; at += this.pages[p++].used) starts.push(at);
    for (let begin = 0; begin < order.length; begin += size) {
      const rows = order.subarray(begin, begin + size);
      const batch = { features: new Float32Array(rows.length * this.width), tasks: new Int32Array(rows.length) };
      rows.forEach((row, i) => {
        const p = pageOf(starts, row);
        const at = row - starts[p];
        const { features, tasks } = this.pages[p];
        batch.features.set(features.subarray(at * this.width, (at + 1) * this.width), i * this.width);
        batch.tasks[i] = tasks[at];
      });
      yield batch;
    }
  }

  /** At most `limit` rows of features, evenly spaced over the buffer. */
  *sampleRows(limit: number): Generator<Float32Array> {
    const stride = Math.max(1, Math.ceil(this.length / limit));
    let next = 0;
    let start = 0;
    for (const { features, used } of this.pages) {
      for (; next < start + used; next += stride) {
        const at = (next - start) * this.width;
        yield features.subarray(at, at + this.width);
      }
      start += used;
    }
  }

  clear(): void {
    this.spare = this.pages.map((page) => ({ ...page, used: 0 }));
    this.pages = [];
  }

  capture(): Snapshot {
    const tensors = new Map<string, StoredTensor>();
    for (const [i, { features, tasks }] of this.chunks().entries()) {
      tensors.set(`${i}.features`, { dtype: 'F32', shape: [tasks.length, this.width], data: features });
      tensors.set(`${i}.tasks`, { dtype: 'I32', shape: [tasks.length], data: tasks });
    }
    return { tensors, state: { capacities: this.pages.map(({ capacity }) => capacity) } };
  }

  restore({ tensors, state }: Snapshot): void {
    const { capacities } = state as { capacities: number[] };
    this.clear();
    // The pages must match those of an uninterrupted run: sums are computed page by page, and their order affects the bits.
    this.pages = capacities.map((capacity, i) => {
      const page = this.page(capacity);
      const tasks = tensors.get(`${i}.tasks`)!.data as Int32Array;
      page.features.set(tensors.get(`${i}.features`)!.data as Float32Array);
      page.tasks.set(tasks);
      page.used = tasks.length;
      return page;
    });
  }

  private page(capacity: number): Page {
    const found = this.spare.findIndex((page) => page.capacity === capacity);
    if (found >= 0) return this.spare.splice(found, 1)[0];
    const features = new Float32Array(capacity * this.width);
    return { capacity, used: 0, features, tasks: new Int32Array(capacity) };
  }
}

interface Page {
  readonly capacity: number;
  used: number;
  readonly features: Float32Array;
  readonly tasks: Int32Array;
}

/** Minimum rows of a page: enough that a product over a page is not dominated by its set-up. */
const PAGE_ROWS = 4096;

function part({ features, tasks }: Page, width: number, begin: number, end: number): Actions {
  return { features: features.subarray(begin * width, end * width), tasks: tasks.subarray(begin, end) };
}

/** The page in which a row lies, by bisection of the numbers of the pages' first rows. */
function pageOf(starts: readonly number[], row: number): number {
  let [low, high] = [0, starts.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle] <= row) low = middle;
    else high = middle - 1;
  }
  return low;
}
