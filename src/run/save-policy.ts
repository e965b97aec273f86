export interface SavePolicyOptions {
  /** A checkpoint is due whenever the step passes a multiple of this; null: by time only. */
  readonly everySteps: number | null;
  /** A checkpoint is due when the last one is this old; null: by steps only. */
  readonly everySeconds: number | null;
}

/**
 * When to save: after so many steps or so many seconds, whichever comes first. Saving only reads the state of a run, so
 * the moments at which it happens, and hence the clock, have no influence on the results.
 */
export class SavePolicy {
  private readonly options: SavePolicyOptions;
  private readonly now: () => number;
  private savedStep: number;
  private savedAt: number;

  /** `now` is a clock in milliseconds. */
  constructor(options: SavePolicyOptions, step = 0, now: () => number = () => performance.now()) {
    this.options = options;
    this.now = now;
    this.savedStep = step;
    this.savedAt = now();
  }

  due(step: number): boolean {
    const { everySteps, everySeconds } = this.options;
    if (step === this.savedStep) return false;
    if (everySteps !== null && Math.floor(step / everySteps) > Math.floor(this.savedStep / everySteps)) return true;
    return everySeconds !== null && this.now() - this.savedAt >= 1000 * everySeconds;
  }

  saved(step: number): void {
    this.savedStep = step;
    this.savedAt = this.now();
  }
}
