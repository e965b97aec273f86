import { Random, type RandomState } from '../../random.js';
import type { Snapshot } from '../../run/index.js';
import type { Problem, Status } from '../problem.js';
import { type RewardOptions, RewardSignal, type RewardState } from '../reward.js';
import { stateOnly } from '../snapshots.js';
import type { SampledChoice, Strategy } from '../strategy.js';
import { drawAll, oneHot, repeated, softmaxOf } from './distribution.js';

export interface BanditOptions {
  /**
   * `weights`: one distribution whose weights follow the reward. `thompson`: each episode has one task, drawn by how
   * likely it is the best. Default `weights`.
   */
  readonly method?: 'weights' | 'thompson';
  /** η of `weights`: how far one episode moves them. Default 0.1. */
  readonly learningRate?: number;
  /** γ: share of the uniform distribution. Default 0.05. */
  readonly explore?: number;
  /** d of `thompson`: what an episode counts after the next one. Default 0.95. */
  readonly discount?: number;
  /** Default: differences, the first episode skipped, baseline and normalisation with decay 0.9. */
  readonly reward?: RewardOptions;
}

/**
 * A scheduler that sees nothing of the sample, with the same episode reward A as the learned one. n_T of the N samples of
 * an episode were given the task T.
 *
 *     weights    p = (1 − γ) softmax(w) + γ/K,   w_T ← w_T + η · A · (n_T − N p_T) / √N
 *     thompson   p = (1 − γ) 1[T = a] + γ/K,     a = argmax_T N(m_T, 1/(1 + c_T))
 *
 * `weights` is the gradient of Σ log p over the episode, centred, and over √N as in `learned`: n_T is N p_T ± √N, so that
 * the step has one size for all lengths of episodes. `thompson` (Thompson 1933, with a discount for rewards that drift:
 * Raj & Kalyani 2017) has c_T = Σ dᵉ of the episodes with the task a = T, and m_T = Σ dᵉ A / (1 + c_T): as an episode has
 * one task rather than a mix that hardly differs from the last, its reward tells far more of the task.
 */
export class Bandit<Batch> implements Strategy<Batch> {
  readonly name = 'bandit';
  private readonly method: 'weights' | 'thompson';
  private readonly learningRate: number;
  private readonly explore: number;
  private readonly discount: number;
  private readonly reward: RewardSignal;
  private random: Random;
  private current: Beliefs;

  constructor(
    private readonly problem: Problem<Batch>,
    random: Random,
    options: BanditOptions = {},
  ) {
    const K = problem.tasks.length;
    this.method = options.method ?? 'weights';
    this.learningRate = options.learningRate ?? 0.1;
    this.explore = options.explore ?? 0.05;
    this.discount = options.discount ?? 0.95;
    this.reward = new RewardSignal({ skipFirst: true, baseline: 0.9, normalise: 0.9, ...options.reward });
    this.random = random.fork('bandit');
    const zeros = () => new Array<number>(K).fill(0);
    this.current = { weights: zeros(), counts: zeros(), sums: zeros(), episodes: zeros(), arm: null };
  }

  async policy(batch: Batch): Promise<Float32Array> {
    return repeated(this.distribution(), this.problem.sizeOf(batch));
  }

  async beginEpisode(): Promise<void> {
    if (this.method !== 'thompson') return;
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
    const change = this.method === 'weights' ? this.follow(advantage ?? 0) : this.believe(advantage);
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
    this.current.weights = weights.map((weight, task) => weight + this.learningRate * gradient[task]);
    return Math.hypot(...gradient);
  }

  private believe(advantage: number | undefined): number {
    const { sums, episodes, arm } = this.current;
    if (advantage === undefined || arm === null) return 0;
    for (const task of sums.keys()) {
      sums[task] *= this.discount;
      episodes[task] *= this.discount;
    }
    sums[arm] += advantage;
    episodes[arm]++;
    return Math.abs(advantage);
  }

  private distribution(): number[] {
    const { weights, arm } = this.current;
    const K = weights.length;
    const chosen = arm === null ? softmaxOf(weights) : oneHot(arm, K);
    return chosen.map((p) => (1 - this.explore) * p + this.explore / K);
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
