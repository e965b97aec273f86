import { Random, type RandomState } from '../../random.js';
import type { Snapshot } from '../../run/index.js';
import type { Problem, Status } from '../problem.js';
import { type RewardOptions, RewardSignal, type RewardState } from '../reward.js';
import { stateOnly } from '../snapshots.js';
import type { SampledChoice, Strategy } from '../strategy.js';
import { drawAll, repeated, softmaxOf } from './distribution.js';

export interface BanditOptions {
  /** η: how far one episode moves the weights. Default 0.1. */
  readonly learningRate?: number;
  /** γ: share of the uniform distribution. Default 0.05. */
  readonly explore?: number;
  /** Default: differences, the first episode skipped, baseline and normalisation with decay 0.9. */
  readonly reward?: RewardOptions;
}

/**
 * A scheduler that sees nothing of the sample: exponential weights over the tasks (Exp3, Auer et al. 2002) with the
 * same episode reward as the learned one.
 *
 *     p = (1 − γ) softmax(w) + γ/K,   w_T ← w_T + η · A · n_T / (N p_T)
 *
 * where n_T of the N samples of the episode were given the task T.
 */
export class Bandit<Batch> implements Strategy<Batch> {
  readonly name = 'bandit';
  private readonly learningRate: number;
  private readonly explore: number;
  private readonly reward: RewardSignal;
  private random: Random;
  private weights: number[];
  /** n_T of the current episode. */
  private counts: number[];

  constructor(
    private readonly problem: Problem<Batch>,
    random: Random,
    options: BanditOptions = {},
  ) {
    const K = problem.tasks.length;
    this.learningRate = options.learningRate ?? 0.1;
    this.explore = options.explore ?? 0.05;
    this.reward = new RewardSignal({ skipFirst: true, baseline: 0.9, normalise: 0.9, ...options.reward });
    this.random = random.fork('bandit');
    this.weights = new Array<number>(K).fill(0);
    this.counts = new Array<number>(K).fill(0);
  }

  async policy(batch: Batch): Promise<Float32Array> {
    return repeated(this.distribution(), this.problem.sizeOf(batch));
  }

  async choose(batch: Batch): Promise<SampledChoice> {
    const choice = drawAll(this.distribution(), this.problem.sizeOf(batch), this.random);
    for (const task of choice.tasks) this.counts[task]++;
    return choice;
  }

  async endEpisode(performance: number, status: Status) {
    const advantage = this.reward.advantage(performance, status.performance);
    const p = this.distribution();
    const N = this.counts.reduce((sum, count) => sum + count, 0);
    const gradient = this.counts.map((count, task) => ((advantage ?? 0) * count) / (N * p[task]));
    this.weights = this.weights.map((weight, task) => weight + this.learningRate * gradient[task]);
    this.counts.fill(0);
    return advantage === undefined ? {} : { gradNorm: Math.hypot(...gradient) };
  }

  capture(): Snapshot {
    const { weights, counts } = this;
    return stateOnly({
      random: this.random.state(),
      reward: this.reward.state(),
      weights: [...weights],
      counts: [...counts],
    });
  }

  restore({ state }: Snapshot): void {
    const { random, reward, weights, counts } = state as BanditState;
    this.random = Random.restore(random);
    this.reward.load(reward);
    this.weights = [...weights];
    this.counts = [...counts];
  }

  private distribution(): number[] {
    const K = this.weights.length;
    return softmaxOf(this.weights).map((p) => (1 - this.explore) * p + this.explore / K);
  }
}

interface BanditState {
  readonly random: RandomState;
  readonly reward: RewardState;
  readonly weights: readonly number[];
  readonly counts: readonly number[];
}
