import type { Random } from '../../random.js';
import type { Snapshot } from '../../run/index.js';
import type { ShiftedLosses } from '../problem.js';

/** How slopes become credits under a distribution, from the measurements in memory. */
export interface Credit {
  /** Mean |d| of each task. */
  readonly scales: readonly number[];
  /** ρ, the largest mean of d̂ among the tasks; at least LEAST_UNIT. */
  readonly unit: number;
  /** Mean loss under the distribution. */
  readonly loss: number;
  /** Mean credit of each task. */
  readonly means: readonly number[];
}

/** Samples on all tasks: [n, K], NaN if unknown. */
export interface Slopes {
  /** d: slope of √ℓ along the shift. */
  readonly slopes: Float32Array;
  /** ℓ. */
  readonly losses: Float32Array;
  /** [n]: how hard each sample is, the median of its losses. */
  readonly typical: Float32Array;
}

interface Measurement extends Slopes {
  /** [n, F] */
  readonly features: Float32Array;
}

/** Of each task; independent of the distribution. */
interface Means {
  /** Of |d|. */
  readonly slopes: readonly number[];
  /** Of ℓ. */
  readonly losses: readonly number[];
}

/** What the losses at two points show. */
export function slopesOf({ ahead, behind }: Pick<ShiftedLosses, 'ahead' | 'behind'>, K: number): Slopes {
  const losses = ahead.map((loss, at) => (loss + behind[at]) / 2);
  return {
    slopes: ahead.map((loss, at) => Math.sqrt(loss) - Math.sqrt(behind[at])),
    losses,
    typical: Float32Array.from({ length: losses.length / K }, (_, i) => median(losses.subarray(i * K, (i + 1) * K))),
  };
}

/** Median of the known values, the lower of two; 0 if there are none. */
function median(values: Float32Array): number {
  const known = values.filter((value) => !Number.isNaN(value)).sort();
  return known.length === 0 ? 0 : known[Math.floor((known.length - 1) / 2)];
}

/**
 * The last measurements of `influence`: features of some samples, and the slopes and sizes of their losses on all
 * tasks.
 *
 * The gradient of a squared error ℓ = e² is a direction times a size, ∇ℓ = 2e·∇e. The credit of a decision has a part
 * for each: how consistently the direction agrees with the main task's, and the noise added by an unusually large loss,
 *
 *     credit_iT = d̂_iT ∕ ρ − ½ max(0, min(ℓ_iT ∕ ℓ̄ᵢ, LARGEST) − NORMAL),   d̂ = d ∕ √(d² + s_T²),   d = √ℓ(θ + u) − √ℓ(θ − u)
 *
 * with ℓ̄ᵢ the current mean training loss, or the sample's median loss over its tasks if that is larger: a sample that
 * is hard for all tasks is no reason to avoid one of them; a label far worse than its siblings is. An optimiser that
 * normalises its step, as Adam does, moves the main loss by S ∕ √N with the mean slope S of what is trained and the
 * mean square N of its gradients: its logarithm has the derivative r ∕ S − r² ∕ 2N by the probability of a decision;
 * this is a version that is robust to outliers. d̂ is about sign: a label of pure noise has a mean of 0, however large
 * its gradients are. On average the credit is 1 for the best task, 0 for a useless one, and far less for labels whose
 * noise makes large gradients.
 */
export class Measurements {
  private kept: Measurement[] = [];
  /** Of those kept. */
  private means: Means[] = [];

  constructor(
    private readonly width: number,
    private readonly tasks: number,
    /** Measurements kept. */
    private readonly memory: number,
  ) {}

  add(features: Float32Array, { slopes, losses, typical }: Slopes): void {
    const measurement = { features, slopes, losses, typical };
    this.kept.push(measurement);
    this.means.push(this.meansOf(measurement));
    if (this.kept.length <= this.memory) return;
    this.kept.shift();
    this.means.shift();
  }

  /** The credits under a distribution that is the same for all samples. */
  credit(distribution: readonly number[]): Credit {
    const { kept, means } = this;
    const scales = this.overall(means.map(({ slopes }) => slopes));
    const directions = kept.map(({ slopes }) => directionsOf(slopes, scales));
    const unit = Math.max(LEAST_UNIT, ...this.overall(directions.map((values, m) => this.perTask(kept[m], values))));
    const sizes = this.overall(means.map(({ losses }) => losses));
    const loss = sizes.reduce((sum, size, task) => sum + distribution[task] * size, 0);
    const rule = { scales, unit, loss };
    const credits = directions.map((values, m) => {
      for (let at = 0; at < values.length; at++) values[at] = creditOf(kept[m], at, values[at], rule);
      return this.perTask(kept[m], values);
    });
    return { ...rule, means: this.overall(credits) };
  }

  /** Measured samples with their credits [n, K], drawn with replacement. */
  draw(count: number, credit: Credit, random: Random): { features: Float32Array; credits: Float32Array } {
    const { width, tasks: K } = this;
    const features = new Float32Array(count * width);
    const credits = new Float32Array(count * K);
    for (let row = 0; row < count; row++) {
      const from = this.kept[random.int(this.kept.length)];
      const i = random.int(from.slopes.length / K);
      features.set(from.features.subarray(i * width, (i + 1) * width), row * width);
      this.writeCredits(from, i, credit, credits.subarray(row * K, (row + 1) * K));
    }
    return { features, credits };
  }

  /** The features and credits of the last measurement. */
  last(credit: Credit): { features: Float32Array; credits: Float32Array } {
    const K = this.tasks;
    const of = this.kept[this.kept.length - 1];
    const credits = new Float32Array(of.slopes.length);
    for (let i = 0; i < credits.length / K; i++) {
      this.writeCredits(of, i, credit, credits.subarray(i * K, (i + 1) * K));
    }
    return { features: of.features, credits };
  }

  capture(): Snapshot {
    const tensors = this.kept.flatMap((arrays, i) =>
      Object.entries(arrays).map(
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
      losses: array(`${i}.losses`),
      typical: array(`${i}.typical`),
    }));
    this.means = this.kept.map((measurement) => this.meansOf(measurement));
  }

  /** The credits [K] of a sample. */
  private writeCredits(of: Slopes, sample: number, credit: Credit, out: Float32Array): void {
    const { tasks: K } = this;
    const { scales } = credit;
    let [sum, known] = [0, 0];
    for (let task = 0, at = sample * K; task < K; task++, at++) {
      const value = creditOf(of, at, squash(of.slopes[at], scales[task]), credit);
      out[task] = value;
      if (Number.isNaN(value)) continue;
      sum += value;
      known++;
    }
    if (known === K) return;
    // A task without a label is neither better nor worse than the others.
    const mean = known === 0 ? 0 : sum / known;
    for (let task = 0; task < K; task++) if (Number.isNaN(out[task])) out[task] = mean;
  }

  private meansOf(of: Slopes): Means {
    return { slopes: this.perTask(of, of.slopes.map(Math.abs)), losses: this.perTask(of, of.losses) };
  }

  /** For each task, the mean of values [n, K] where the slope is known; NaN if none is. */
  private perTask({ slopes }: Slopes, values: Float32Array | Float64Array): number[] {
    const { tasks: K } = this;
    return Array.from({ length: K }, (_, task) => {
      let [sum, count] = [0, 0];
      for (let at = task; at < slopes.length; at += K) {
        if (Number.isNaN(slopes[at])) continue;
        sum += values[at];
        count++;
      }
      return sum / count;
    });
  }

  /** For each task, the mean over all measurements of their means. */
  private overall(means: readonly (readonly number[])[]): number[] {
    return Array.from({ length: this.tasks }, (_, task) => meanOf(means.map((of) => of[task])));
  }
}

/** @param direction d̂ */
function creditOf(
  { losses, typical }: Slopes,
  at: number,
  direction: number,
  { scales, unit, loss }: Pick<Credit, 'scales' | 'unit' | 'loss'>,
): number {
  const usual = Math.max(loss, typical[Math.floor(at / scales.length)]);
  const excess = usual > 0 ? Math.max(0, Math.min(losses[at] / usual, LARGEST) - NORMAL) : 0;
  return direction / unit - excess / 2;
}

/** d̂ of slopes [n, K]. */
function directionsOf(slopes: Float32Array, scales: readonly number[]): Float64Array {
  const directions = new Float64Array(slopes.length);
  for (let at = 0, task = 0; at < slopes.length; at++, task++) {
    if (task === scales.length) task = 0;
    directions[at] = squash(slopes[at], scales[task]);
  }
  return directions;
}

/** d ∕ √(d² + s²), between −1 and 1. */
function squash(slope: number, scale: number): number {
  return slope === 0 ? 0 : slope / Math.sqrt(slope * slope + scale * scale);
}

/** The mean of the known values; 0 if there are none. */
export function meanOf(values: readonly number[]): number {
  const known = values.filter((value) => !Number.isNaN(value));
  return known.length === 0 ? 0 : known.reduce((a, b) => a + b, 0) / known.length;
}

/** Losses up to this multiple of the usual one are no sign of noise. */
const NORMAL = 2;
/** Bound of a loss in units of the usual one. */
const LARGEST = 9;
/** Smallest ρ: a weaker agreement is hardly more than noise. */
const LEAST_UNIT = 0.1;
