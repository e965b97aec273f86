import { InputError } from '../errors.js';

/** The options of `torch.optim.lr_scheduler.ReduceLROnPlateau`, with its defaults. */
export interface PlateauConfig {
  /** The learning rate to begin with. */
  readonly peak: number;
  /** Whether a smaller or a larger validation result is better. Default 'min'. */
  readonly mode?: 'min' | 'max';
  /** Multiplies the learning rate. Default 0.1. */
  readonly factor?: number;
  /** Validations without improvement that are tolerated; the next one reduces. Default 10. */
  readonly patience?: number;
  /** An improvement is larger than this share of the best result ('rel') or than this amount ('abs'). Default 1e-4. */
  readonly threshold?: number;
  /** Default 'rel'. */
  readonly thresholdMode?: 'rel' | 'abs';
  /** Validations after a reduction that do not count as bad. Default 0. */
  readonly cooldown?: number;
  /** The learning rate never goes below. Default 0. */
  readonly minimum?: number;
  /** A reduction by no more than this is left out. Default 1e-8. */
  readonly eps?: number;
}

/** Plain JSON. */
export interface PlateauState {
  readonly rate: number;
  /** Null before the first validation. */
  readonly best: number | null;
  readonly bad: number;
  readonly cooling: number;
}

/** A learning rate that shrinks when validation stops improving: `ReduceLROnPlateau`. */
export class Plateau {
  private readonly config: Required<PlateauConfig>;
  private best: number | null = null;
  /** Validations without improvement in a row. */
  private bad = 0;
  /** Validations of the cooldown that are left. */
  private cooling = 0;
  private current: number;

  constructor(config: PlateauConfig) {
    const { peak, mode = 'min', factor = 0.1, patience = 10, threshold = 1e-4, thresholdMode = 'rel' } = config;
    const { cooldown = 0, minimum = 0, eps = 1e-8 } = config;
    this.config = { peak, mode, factor, patience, threshold, thresholdMode, cooldown, minimum, eps };
    for (const key of ['peak', 'factor', 'patience', 'threshold', 'cooldown', 'minimum', 'eps'] as const) {
      const value = this.config[key];
      if (!(value >= 0 && value < Infinity) || (key === 'factor' && value >= 1)) {
        const expected = key === 'factor' ? 'a number in [0, 1)' : 'a finite number ≥ 0';
        throw new InputError(`${value} is not possible, expected ${expected}`, { key: `learningRate.${key}` });
      }
    }
    this.current = peak;
  }

  get rate(): number {
    return this.current;
  }

  observe(validation: number): void {
    const { patience, cooldown } = this.config;
    if (this.improves(validation)) {
      this.best = validation;
      this.bad = 0;
    } else {
      this.bad++;
    }
    if (this.cooling > 0) {
      this.cooling--;
      this.bad = 0;
    }
    if (this.bad > patience) {
      this.reduce();
      this.cooling = cooldown;
      this.bad = 0;
    }
  }

  state(): PlateauState {
    return { rate: this.current, best: this.best, bad: this.bad, cooling: this.cooling };
  }

  load({ rate, best, bad, cooling }: PlateauState): void {
    const whole = (n: number) => Number.isSafeInteger(n) && n >= 0;
    if (
      !(rate >= 0 && rate < Infinity) ||
      !(best === null || typeof best === 'number') ||
      !whole(bad) ||
      !whole(cooling)
    ) {
      throw new InputError('not the saved state of reduce_on_plateau', { key: 'learningRate' });
    }
    this.current = rate;
    this.best = best;
    this.bad = bad;
    this.cooling = cooling;
  }

  private improves(validation: number): boolean {
    const { mode, threshold, thresholdMode } = this.config;
    const best = this.best;
    // As against PyTorch's infinity: any number but NaN and the same infinity is better than none.
    if (best === null) return mode === 'min' ? validation < Infinity : validation > -Infinity;
    if (mode === 'min') return validation < (thresholdMode === 'rel' ? best * (1 - threshold) : best - threshold);
    return validation > (thresholdMode === 'rel' ? best * (1 + threshold) : best + threshold);
  }

  private reduce(): void {
    const { factor, minimum, eps } = this.config;
    const reduced = Math.max(this.current * factor, minimum);
    if (this.current - reduced > eps) this.current = reduced;
  }
}
