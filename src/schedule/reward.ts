import { z } from 'zod';

const decay = z.number().min(0).lt(1);

/** Options of strategies that learn from the validation performance of an episode. They have no defaults here. */
export const rewardKeys = {
  reward: z
    .enum(['difference', 'performance'])
    .describe('Reward of an episode: R_e − R_{e−1} (section 3.3), or R_e (the listing).'),
  skipFirst: z.boolean().describe('Learn nothing from the first episode, which is compared with the untrained model.'),
  baseline: decay
    .nullable()
    .describe('Decay of the moving average of rewards that is subtracted from the reward; null: none.'),
  normalise: decay
    .nullable()
    .describe('Decay of the moving mean square; the reward is divided by its root. null: not divided.'),
};

/** Options of a `RewardSignal`. */
export type RewardOptions = z.output<z.ZodObject<typeof rewardKeys>>;

/**
 * Turns validation performances into the factor in front of ∇ log P, the advantage A. With a baseline of decay d it is
 * A = r − b, b = Σ d^(e−i) rᵢ / Σ d^(e−i) over the earlier rewards, so nothing is learned from the first one. To
 * normalise, A is divided by the root of the same kind of average of A², the current A included.
 */
export class RewardSignal {
  private current: RewardState = { episodes: 0, baseline: EMPTY, square: EMPTY };

  constructor(private readonly options: RewardOptions) {}

  /** A of an episode with R_e and R_{e−1}; undefined if nothing can be learned from it. */
  advantage(performance: number, previous: number): number | undefined {
    const { reward: kind, skipFirst, baseline, normalise } = this.options;
    const reward = kind === 'difference' ? performance - previous : performance;
    this.current.episodes++;
    if (skipFirst && this.current.episodes === 1) return undefined;

    let advantage = reward;
    if (baseline !== null) {
      const before = this.current.baseline;
      this.current.baseline = averaged(before, reward, baseline);
      if (before.mass === 0) return undefined;
      advantage = reward - before.sum / before.mass;
    }
    if (normalise !== null) {
      this.current.square = averaged(this.current.square, advantage ** 2, normalise);
      const { sum, mass } = this.current.square;
      advantage = sum === 0 ? 0 : advantage / Math.sqrt(sum / mass);
    }
    return advantage;
  }

  /** Plain JSON. */
  state(): RewardState {
    return structuredClone(this.current);
  }

  /** Restores what `state` returned. */
  load(state: RewardState): void {
    this.current = structuredClone(state);
  }
}

/** What a `RewardSignal` remembers about earlier episodes. */
export interface RewardState {
  episodes: number;
  baseline: MovingAverage;
  square: MovingAverage;
}

/** Σ d^(n−i) xᵢ and Σ d^(n−i). Unlike a plain moving average, their ratio is not biased towards 0 at the start. */
interface MovingAverage {
  readonly sum: number;
  readonly mass: number;
}

const EMPTY: MovingAverage = { sum: 0, mass: 0 };

function averaged({ sum, mass }: MovingAverage, value: number, decay: number): MovingAverage {
  return { sum: decay * sum + value, mass: decay * mass + 1 };
}
