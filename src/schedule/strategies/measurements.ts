import type { Random } from '../../random.js';
import type { Snapshot } from '../../run/index.js';

/** How raw slopes become credits, from the measurements in memory. */
export interface Credit {
  /** s_T: mean |r| of each task, the slope that counts as large. */
  readonly sizes: readonly number[];
  /** Mean of each task's squashed slopes. */
  readonly means: readonly number[];
  /** ρ: the largest of them, the unit of credit. */
  readonly unit: number;
  /** How sure it is that ρ is not noise, from 0 to 1. */
  readonly significance: number;
}

interface Measurement {
  /** [n, F] */
  readonly features: Float32Array;
  /** r [n, K], NaN where unknown. */
  readonly slopes: Float32Array;
}

/**
 * The last measurements of `influence`: features of some samples and their slopes r on all tasks. The credit of a
 * decision is
 *
 *     credit_iT = r̂_iT ∕ ρ,   r̂_iT = r_iT ∕ √(r_iT² + s_T²)
 *
 * A slope that is large now and then, but as often negative, comes from a noisy label and teaches little, while one that
 * is small but always positive teaches much: squashing makes the mean of r̂ a matter of the sign, for each kind of sample
 * that the features tell apart, and s_T makes it independent of the size of a task's gradients. ρ makes credits
 * comparable between problems: a task as helpful as the best has about 1, a useless one 0.
 */
export class Measurements {
  private kept: Measurement[] = [];

  constructor(
    private readonly width: number,
    private readonly tasks: number,
    /** Measurements kept. */
    private readonly memory: number,
  ) {}

  add(features: Float32Array, slopes: Float32Array): void {
    this.kept.push({ features, slopes });
    if (this.kept.length > this.memory) this.kept.shift();
  }

  /**
   * The unit of credit and its significance. The means of single measurements scatter, because each has a gradient of
   * its own: their scatter gives the standard error, and a unit within Z of them counts for nothing.
   */
  credit(): Credit {
    const sizes = this.perTask((r) => Math.abs(r)).map(({ mean }) => mean);
    const squashed = this.perTask((r, task) => squash(r, sizes[task]));
    const best = squashed.reduce((a, b) => (Math.abs(b.mean) > Math.abs(a.mean) ? b : a));
    const unit = Math.abs(best.mean);
    const means = squashed.map(({ mean }) => mean);
    return { sizes, means, unit, significance: this.kept.length < FEWEST ? 0 : significance({ ...best, mean: unit }) };
  }

  /**
   * How much more r̂ distributions [n, K] that differ from sample to sample earn than their mean does for all, by slopes
   * that nothing was learned from yet, per unit of their difference; undefined where there is none.
   */
  gainOf(distributions: Float32Array, slopes: Float32Array): number | undefined {
    if (this.kept.length === 0) return undefined;
    const K = this.tasks;
    const n = slopes.length / K;
    const { sizes } = this.credit();
    let [gain, squares] = [0, 0];
    for (let task = 0; task < K; task++) {
      let mean = 0;
      for (let at = task; at < slopes.length; at += K) mean += distributions[at] / n;
      for (let at = task; at < slopes.length; at += K) {
        const value = squash(slopes[at], sizes[task]);
        if (!Number.isNaN(value)) gain += (distributions[at] - mean) * value;
        squares += (distributions[at] - mean) ** 2;
      }
    }
    return squares === 0 ? undefined : gain / Math.sqrt(n * squares);
  }

  /** So many measured samples with their credits [n, K], drawn with repetition. */
  draw(count: number, { sizes, unit }: Credit, random: Random): { features: Float32Array; credits: Float32Array } {
    const { width, tasks: K } = this;
    const features = new Float32Array(count * width);
    const credits = new Float32Array(count * K);
    for (let row = 0; row < count; row++) {
      const { features: from, slopes } = this.kept[random.int(this.kept.length)];
      const i = random.int(slopes.length / K);
      features.set(from.subarray(i * width, (i + 1) * width), row * width);
      const values = Array.from(sizes, (size, task) => squash(slopes[i * K + task], size) / unit);
      const known = values.filter((value) => !Number.isNaN(value));
      // A task without a label is neither better nor worse than the others.
      const mean = known.length === 0 ? 0 : known.reduce((sum, value) => sum + value, 0) / known.length;
      values.forEach((value, task) => {
        credits[row * K + task] = Number.isNaN(value) ? mean : value;
      });
    }
    return { features, credits };
  }

  capture(): Snapshot {
    const tensors = this.kept.flatMap(({ features, slopes }, i) =>
      Object.entries({ features, slopes }).map(
        ([name, data]) => [`${i}.${name}`, { dtype: 'F32', shape: [data.length], data }] as const,
      ),
    );
    return { tensors: new Map(tensors), state: { kept: this.kept.length } };
  }

  restore({ tensors, state }: Snapshot): void {
    const array = (name: string) => (tensors.get(name)!.data as Float32Array).slice();
    this.kept = Array.from({ length: (state as { kept: number }).kept }, (_, i) => ({
      features: array(`${i}.features`),
      slopes: array(`${i}.slopes`),
    }));
  }

  /** Mean over all known slopes of each task, and the standard error of the mean from its scatter over measurements. */
  private perTask(value: (r: number, task: number) => number): Mean[] {
    const K = this.tasks;
    return Array.from({ length: K }, (_, task) => {
      const means: number[] = [];
      for (const { slopes } of this.kept) {
        let [sum, count] = [0, 0];
        for (let at = task; at < slopes.length; at += K) {
          if (Number.isNaN(slopes[at])) continue;
          sum += value(slopes[at], task);
          count++;
        }
        if (count > 0) means.push(sum / count);
      }
      return meanOf(means);
    });
  }
}

/** A mean and its standard error. */
export interface Mean {
  readonly mean: number;
  readonly error: number;
}

export function meanOf(values: readonly number[]): Mean {
  const n = values.length;
  if (n === 0) return { mean: 0, error: Number.POSITIVE_INFINITY };
  const mean = values.reduce((a, b) => a + b, 0) / n;
  const scatter = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, error: n < 2 ? Number.POSITIVE_INFINITY : Math.sqrt(scatter / (n - 1) / n) };
}

/** 1 − (Z·error ∕ mean)², from 0 for a mean within Z standard errors of 0 to 1; 0 for a negative one. */
export function significance({ mean, error }: Mean): number {
  return mean > 0 ? Math.max(0, 1 - ((Z * error) / mean) ** 2) : 0;
}

/** r ∕ √(r² + s²), between −1 and 1. */
function squash(r: number, size: number): number {
  return r === 0 ? 0 : r / Math.sqrt(r * r + size * size);
}

/** Measurements before anything is learned. */
const FEWEST = 4;
/** Standard errors that a mean must exceed. */
const Z = 2;
