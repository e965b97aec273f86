export interface RewardOptions {
  /** `difference`: r = R_e − R_{e−1} (section 3.3); `performance`: r = R_e (the listing). Default `difference`. */
  readonly signal?: 'difference' | 'performance';
  /** Learn nothing from the first episode, whose reward is measured against the untrained model. Default false. */
  readonly skipFirst?: boolean;
  /**
   * Decay d of a moving average b of the rewards that is subtracted: A = r − b, where b = Σ d^(e−i) rᵢ / Σ d^(e−i)
   * over the rewards before. The first reward has nothing to be compared with: nothing is learned from it.
   * Null: A = r. Default null.
   */
  readonly baseline?: number | null;
  /** Decay d of a moving mean of A² by whose root A is divided, the current A included. Null: not. Default null. */
  readonly normalise?: number | null;
}

/** What an episode's outcome is worth: turns performances into the factor in front of ∇ log P. */
export class RewardSignal {
  private current: RewardState = { episodes: 0, baseline: EMPTY, square: EMPTY };

  constructor(private readonly options: RewardOptions = {}) {}

  /** The advantage A of an episode with R_e and R_{e−1}; undefined if nothing can be learned from it. */
  advantage(performance: number, previous: number): number | undefined {
    const { signal = 'difference', skipFirst = false, baseline = null, normalise = null } = this.options;
    const reward = signal === 'difference' ? performance - previous : performance;
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

  load(state: RewardState): void {
    this.current = structuredClone(state);
  }
}

export interface RewardState {
  episodes: number;
  baseline: MovingAverage;
  square: MovingAverage;
}

/** Σ d^(n−i) xᵢ and Σ d^(n−i): their ratio is an average that is not biased towards 0 at the beginning. */
interface MovingAverage {
  readonly sum: number;
  readonly mass: number;
}

const EMPTY: MovingAverage = { sum: 0, mass: 0 };

function averaged({ sum, mass }: MovingAverage, value: number, decay: number): MovingAverage {
  return { sum: decay * sum + value, mass: decay * mass + 1 };
}
