import type { AdamConfig, SgdConfig } from '../../optim/index.js';
import { Random, type RandomState } from '../../random.js';
import type { Snapshot } from '../../run/index.js';
import { type Problem, remainingGroups, type Status } from '../problem.js';
import { type RewardOptions, RewardSignal, type RewardState } from '../reward.js';
import { joinSnapshots, partOf, stateOnly } from '../snapshots.js';
import type { EpisodeReport, SampledChoice, Strategy } from '../strategy.js';
import { ActionBuffer, type Actions } from './buffer.js';
import { Policy } from './policy.js';
import { sampleRows } from './sampling.js';
import { Standardisation } from './standardisation.js';

export interface LearnedOptions {
  /** Widths of the hidden layers of φ. */
  readonly hidden: readonly number[];
  readonly activation: 'tanh' | 'relu';
  /** Feature groups that φ does not see. */
  readonly without: readonly string[];
  /**
   * z = (x − mean)/std of each feature, over the features of the `first-episode`, or of all episodes so far
   * (`running`); `none`: z = x. Within an episode the scale does not change, so that ∇ log P is that of the policy
   * which acted.
   */
  readonly standardise: 'none' | 'first-episode' | 'running';
  /** η₂. */
  readonly learningRate: number;
  readonly optimizer: SgdConfig | AdamConfig;
  /** Largest ‖∇ω‖; a longer gradient is shortened. Null: none. */
  readonly clipNorm: number | null;
  readonly reward: Required<RewardOptions>;
  /**
   * How line 11 takes the N = |ℬ| terms together: their `sum`, their `mean`, or their sum over `root` N. As each term
   * gets the same A, the sum of the terms grows with √N unless the tasks matter: with `root` neither η₂ nor β depends
   * on the length of an episode.
   */
  readonly reduction: 'sum' | 'mean' | 'root';
  /** β: what is maximised besides is β·H(φ(I; ω)), summed over the buffer with `sum`, else its mean. */
  readonly entropy: number;
  /**
   * Decisions in one update of ω; the buffer is gone through once in random order. After the first of them the policy
   * is no longer the one that acted. Null: one update from the whole buffer.
   */
  readonly minibatch: number | null;
}

/** Algorithm 1 to the letter: plain SGD on R_e − R_{e−1}, summed over the buffer. */
export const PAPER: LearnedOptions = {
  hidden: [256],
  activation: 'tanh',
  without: [],
  standardise: 'none',
  learningRate: 5e-4,
  optimizer: { name: 'sgd' },
  clipNorm: null,
  reward: { signal: 'difference', skipFirst: false, baseline: null, normalise: null },
  reduction: 'sum',
  entropy: 0,
  minibatch: null,
};

/** The same algorithm with the variance of its gradient under control: steps of a size that no unit of R can change. */
export const STABLE: LearnedOptions = {
  ...PAPER,
  standardise: 'running',
  learningRate: 0.005,
  optimizer: { name: 'adam' },
  reward: { signal: 'difference', skipFirst: true, baseline: 0.9, normalise: 0.9 },
  reduction: 'root',
  entropy: 0.1,
};

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
    private readonly policyNetwork: Policy,
    width: number,
    random: Random,
  ) {
    this.groups = remainingGroups(problem.features, options.without).map(({ name }) => name);
    this.buffer = new ActionBuffer(width);
    this.scale = new Standardisation(width);
    this.reward = new RewardSignal(options.reward);
    this.random = random.fork('sampling');
  }

  static async create<Batch>(
    problem: Problem<Batch>,
    random: Random,
    options: LearnedOptions = STABLE,
    threads = 1,
  ): Promise<Learned<Batch>> {
    const { hidden, activation, optimizer, clipNorm } = options;
    const width = remainingGroups(problem.features, options.without).reduce((sum, group) => sum + group.width, 0);
    const own = random.fork('learned');
    const network = await Policy.create(width, problem.tasks.length, own.fork('policy'), {
      hidden,
      activation,
      optimizer,
      clip: clipNorm === null ? undefined : { norm: clipNorm },
      startUniform: true,
      threads,
    });
    return new Learned(problem, options, network, width, own);
  }

  async policy(batch: Batch, status: Status): Promise<Float32Array> {
    const features = new Float32Array(this.problem.sizeOf(batch) * this.buffer.width);
    await this.problem.writeFeatures(batch, status, this.groups, features);
    return (await this.policyNetwork.evaluate(features, this.scale)).probabilities;
  }

  async choose(batch: Batch, status: Status): Promise<SampledChoice> {
    const size = this.problem.sizeOf(batch);
    const { features, tasks } = this.buffer.append(size);
    await this.problem.writeFeatures(batch, status, this.groups, features);
    const { probabilities, entropy } = await this.policyNetwork.evaluate(features, this.scale);
    sampleRows(probabilities, this.random, tasks);
    return { kind: 'sampled', tasks, weights: new Float32Array(size).fill(1), entropy: entropy / size };
  }

  async endEpisode(performance: number, status: Status): Promise<EpisodeReport> {
    const { standardise } = this.options;
    // Before its first update the policy is uniform whatever the scale, so that it may still be chosen.
    const first = this.scale.isEmpty;
    if (first && standardise !== 'none') this.scale.add(this.buffer.sampleRows(SCALE_ROWS));
    const advantage = this.reward.advantage(performance, status.performance);
    const report = advantage === undefined ? {} : { gradNorm: await this.update(advantage) };
    if (!first && standardise === 'running') this.scale.add(this.buffer.sampleRows(SCALE_ROWS));
    // Line 3 of the next episode, here already so that a checkpoint between the two need not hold the buffer.
    this.buffer.clear();
    return report;
  }

  capture(): Snapshot {
    return joinSnapshots({
      policy: this.policyNetwork.capture(),
      buffer: this.buffer.capture(),
      own: stateOnly({ random: this.random.state(), reward: this.reward.state(), scale: this.scale.state() }),
    });
  }

  restore(snapshot: Snapshot): void {
    this.policyNetwork.restore(partOf(snapshot, 'policy'));
    this.buffer.restore(partOf(snapshot, 'buffer'));
    const { random, reward, scale } = partOf(snapshot, 'own').state as LearnedState;
    this.random = Random.restore(random);
    this.reward.load(reward);
    this.scale.load(scale);
  }

  async close(): Promise<void> {
    await this.policyNetwork.close();
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
    return this.policyNetwork.ascend(chunks, this.scale, {
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
