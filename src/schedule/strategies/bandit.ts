import { z } from 'zod';
import { Random, type RandomState } from '../../random.js';
import type { Snapshot } from '../../run/index.js';
import type { Problem, Status } from '../problem.js';
import { RewardSignal, type RewardState, rewardKeys } from '../reward.js';
import { stateOnly } from '../snapshots.js';
import { describeStrategy, type SampledChoice, type Strategy } from '../strategy.js';
import { drawAll, oneHotDistribution, repeated, softmaxOf } from './distribution.js';

const optionsSchema = z.strictObject({
  method: z
    .enum(['weights', 'thompson'])
    .default('weights')
    .describe('Weights that follow the reward, or one task per episode, drawn by its probability of being the best.'),
  learningRate: z.number().positive().default(0.1).describe('weights: η, how far one episode moves them.'),
  discount: z
    .number()
    .gt(0)
    .max(1)
    .default(0.95)
    .describe("thompson: factor by which an episode's weight falls with each later one."),
  explore: z.number().min(0).max(1).default(0.05).describe('γ: share of the uniform distribution.'),
  reward: rewardKeys.reward.default('difference'),
  skipFirst: rewardKeys.skipFirst.default(true),
  baseline: rewardKeys.baseline.default(0.9),
  normalise: rewardKeys.normalise.default(0.9),
});

type BanditOptions = z.output<typeof optionsSchema>;

/**
 * A scheduler that does not look at the sample, with the same episode reward A as the learned one. n_T of the N samples of
 * an episode were given the task T.
 *
 *     weights    p = (1 − γ) softmax(w) + γ/K,   w_T ← w_T + η · A · (n_T − N p_T) / √N
 *     thompson   p = (1 − γ) 1[T = a] + γ/K,     a = argmax_T N(m_T, 1/(1 + c_T))
 *
 * `weights` is the gradient of Σ log p over the episode, centred, and over √N as in `learned`: n_T is N p_T ± √N, so
 * the step has one scale for any episode length. `thompson` (Thompson 1933, with a discount for rewards that drift:
 * Raj & Kalyani 2017) has c_T = Σ dᵉ of the episodes with the task a = T, and m_T = Σ dᵉ A / (1 + c_T): since an episode has
 * one task rather than a mix that hardly differs from the last, its reward says far more about the task.
 */
class Bandit<Batch> implements Strategy<Batch> {
  readonly name = 'bandit';
  private readonly reward: RewardSignal;
  private random: Random;
  private current: Beliefs;

  constructor(
    private readonly problem: Problem<Batch>,
    random: Random,
    private readonly options: BanditOptions,
  ) {
    const K = problem.tasks.length;
    this.reward = new RewardSignal(options);
    this.random = random.fork('bandit');
    const zeros = () => new Array<number>(K).fill(0);
    this.current = { weights: zeros(), counts: zeros(), sums: zeros(), episodes: zeros(), arm: null };
  }

  async probabilities(batch: Batch): Promise<Float32Array> {
    return repeated(this.distribution(), this.problem.sizeOf(batch));
  }

  async beginEpisode(): Promise<void> {
    if (this.options.method !== 'thompson') return;
    const { sums, episodes } = this.current;
    const drawn = sums.map(
      (sum, task) => (sum + Math.sqrt(1 + episodes[task]) * this.random.normal()) / (1 + episodes[task]),
    );
    this.current.arm = drawn.indexOf(Math.max(...drawn));
  }

  async choose(batch: Batch): Promise<SampledChoice> {
    const choice = drawAll(this.distribution(), this.problem.sizeOf(batch), this.random);
    for (const task of choice.tasks) this.current.counts[task]++;
    return choice;
  }

  async endEpisode(performance: number, status: Status) {
    const advantage = this.reward.advantage(performance, status.performance);
    const change = this.options.method === 'weights' ? this.follow(advantage ?? 0) : this.believe(advantage);
    this.current.counts.fill(0);
    return advantage === undefined ? {} : { gradNorm: change };
  }

  capture(): Snapshot {
    return stateOnly({
      random: this.random.state(),
      reward: this.reward.state(),
      ...structuredClone(this.current),
    } satisfies BanditState);
  }

  restore({ state }: Snapshot): void {
    const { random, reward, ...beliefs } = state as BanditState;
    this.random = Random.restore(random);
    this.reward.load(reward);
    this.current = structuredClone(beliefs);
  }

  private follow(advantage: number): number {
    const { counts, weights } = this.current;
    const p = this.distribution();
    const N = counts.reduce((sum, count) => sum + count, 0);
    const gradient = counts.map((count, task) => (advantage * (count - N * p[task])) / Math.sqrt(N));
    this.current.weights = weights.map((weight, task) => weight + this.options.learningRate * gradient[task]);
    return Math.hypot(...gradient);
  }

  private believe(advantage: number | undefined): number {
    const { sums, episodes, arm } = this.current;
    if (advantage === undefined || arm === null) return 0;
    for (const task of sums.keys()) {
      sums[task] *= this.options.discount;
      episodes[task] *= this.options.discount;
    }
    sums[arm] += advantage;
    episodes[arm]++;
    return Math.abs(advantage);
  }

  private distribution(): number[] {
    const { weights, arm } = this.current;
    const { explore } = this.options;
    const K = weights.length;
    const chosen = arm === null ? softmaxOf(weights) : oneHotDistribution(arm, K);
    return chosen.map((p) => (1 - explore) * p + explore / K);
  }
}

interface Beliefs {
  weights: number[];
  /** n_T of the current episode. */
  counts: number[];
  /** Σ dᵉ A and Σ dᵉ over the episodes of each task. */
  sums: number[];
  episodes: number[];
  /** The task of the current episode, with `thompson`. */
  arm: number | null;
}

interface BanditState extends Beliefs {
  readonly random: RandomState;
  readonly reward: RewardState;
}

export const bandit = describeStrategy({
  name: 'bandit',
  summary: 'One distribution over the tasks, blind to the samples.',
  learns: 'every episode',
  knobs: ['method', 'learningRate', 'explore'],
  options: optionsSchema,
  create: (options, problem, { random }) => new Bandit(problem, random, options),
});
