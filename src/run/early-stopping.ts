export interface EarlyStoppingOptions {
  /** Whether a lower (`min`) or a higher (`max`) score is the better one. */
  readonly mode: 'min' | 'max';
  /** Scores in a row without improvement after which to stop; null: never. Default null. */
  readonly patience?: number | null;
  /** A score must be better by more than this to count as an improvement. Default 0. */
  readonly minDelta?: number;
}

/** All that early stopping remembers, as plain JSON. */
export interface EarlyStoppingState {
  /** Best score so far and its step; null before the first score. */
  readonly best: { readonly score: number; readonly step: number } | null;
  /** The score that has to be improved on by `minDelta`. */
  readonly mark: number | null;
  /** Scores since `mark` was set. */
  readonly waited: number;
}

/** Keeps the best score, and tells when there has been no improvement for too long. */
export class EarlyStopping {
  private readonly options: EarlyStoppingOptions;
  private current: EarlyStoppingState;

  constructor(options: EarlyStoppingOptions, state: EarlyStoppingState = { best: null, mark: null, waited: 0 }) {
    this.options = options;
    this.current = state;
  }

  get state(): EarlyStoppingState {
    return this.current;
  }

  get best(): EarlyStoppingState['best'] {
    return this.current.best;
  }

  get stop(): boolean {
    const { patience = null } = this.options;
    return patience !== null && this.current.waited >= patience;
  }

  /** Adds a score; true if it is the best so far, by however little. NaN never is. */
  update(step: number, score: number): boolean {
    const { best, mark, waited } = this.current;
    const isBest = best === null ? !Number.isNaN(score) : this.gain(score, best.score) > 0;
    const advanced = mark === null ? !Number.isNaN(score) : this.gain(score, mark) > (this.options.minDelta ?? 0);
    this.current = {
      best: isBest ? { score, step } : best,
      mark: advanced ? score : mark,
      waited: advanced ? 0 : waited + 1,
    };
    return isBest;
  }

  private gain(score: number, over: number): number {
    return this.options.mode === 'min' ? over - score : score - over;
  }
}
