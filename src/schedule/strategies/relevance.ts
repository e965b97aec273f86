import type { Snapshot } from '../../run/index.js';
import type { Scale } from './scheduler.js';

/**
 * Which features show which task suits a sample: for each feature and task, the covariance of the feature with the
 * advantage of the task over the samples of a measurement. A feature counts by the evidence that one of these is not 0,
 * and not at all without any.
 */
export class Relevance {
  /** Of each feature, from 0 to 1. */
  private relevances: Float64Array;
  /** Of the covariances [F, K]. */
  private readonly evidence: Evidence;

  constructor(
    private readonly width: number,
    private readonly tasks: number,
  ) {
    this.relevances = new Float64Array(width);
    this.evidence = new Evidence(width * tasks);
  }

  /** Adds a measurement: features [n, F] with their scale, credits [n, K]. */
  add(features: Float32Array, credits: Float32Array, { mean, inverseStd }: Scale): void {
    const { width: F, tasks: K } = this;
    const n = features.length / F;
    const advantages = centred(credits, K);
    const covariances = new Float32Array(F * K);
    for (let i = 0; i < n; i++) {
      for (let j = 0, at = 0; j < F; j++) {
        const z = (features[i * F + j] - mean[j]) * inverseStd[j];
        for (let task = 0; task < K; task++, at++) covariances[at] += (z * advantages[i * K + task]) / n;
      }
    }
    this.evidence.add(covariances);
    this.judge();
  }

  /** The relevance of the most relevant feature. */
  get strongest(): number {
    return this.relevances.reduce((most, relevance) => Math.max(most, relevance), 0);
  }

  /** The scale with every feature weighted. */
  weigh({ mean, inverseStd }: Scale): Scale {
    return { mean, inverseStd: inverseStd.map((scale, j) => scale * this.relevances[j]) };
  }

  capture(): Snapshot {
    return this.evidence.capture();
  }

  restore(snapshot: Snapshot): void {
    this.evidence.restore(snapshot);
    this.judge();
  }

  private judge(): void {
    const { width: F, tasks: K } = this;
    const { weights } = this.evidence;
    this.relevances = Float64Array.from({ length: F }, (_, j) => Math.max(...weights.subarray(j * K, (j + 1) * K)));
  }
}

/** credit_iT minus the mean of its sample, then minus the mean of its task. */
function centred(credits: Float32Array, K: number): Float32Array {
  const n = credits.length / K;
  const centred = credits.slice();
  for (let i = 0; i < n; i++) {
    const row = centred.subarray(i * K, (i + 1) * K);
    const mean = row.reduce((a, b) => a + b, 0) / K;
    for (let task = 0; task < K; task++) row[task] -= mean;
  }
  for (let task = 0; task < K; task++) {
    let mean = 0;
    for (let at = task; at < centred.length; at += K) mean += centred[at] / n;
    for (let at = task; at < centred.length; at += K) centred[at] -= mean;
  }
  return centred;
}

/**
 * How certain it is that each of several effects is not 0, given one estimate of each per measurement.
 *
 * An effect must pass a test that stays valid under repeated looks. Its statistic is the likelihood ratio of
 * a mean against 0,
 *
 *     z² = ν ln(1 + t² ∕ ν),   t = mean ∕ standard error,   ν = n − 1
 *
 * which few measurements cannot inflate. The error is that of an autoregressive sequence, √((1 + r) ∕ (1 − r)) times
 * the usual one, because neighbouring measurements share most of their direction. The bound is that of a normal mixture
 * (Robbins 1970),
 *
 *     z₀² = 2 ln(effects ∕ α) + ln(1 + n)
 *
 * so that with probability 1 − α none of the effects ever passes by chance. An effect that passes weighs 1 ∕ (1 +
 * exp((z₀² − z²) ∕ 2)), its posterior probability if exp(z₀² ∕ 2) are the prior odds against it; others weigh nothing.
 */
export class Evidence {
  private kept: Float32Array[] = [];
  private strongest: Float64Array;

  constructor(
    /** Number of effects. */
    private readonly effects: number,
  ) {
    this.strongest = new Float64Array(effects);
  }

  /** The weight of each effect, from 0 for chance to 1 for certainty. It never decreases after certainty. */
  get weights(): Float64Array {
    return this.strongest;
  }

  /** Adds one estimate of every effect. */
  add(estimates: Float32Array): void {
    const { kept, effects, strongest } = this;
    kept.push(estimates);
    if (kept.length > KEPT) kept.shift();
    const n = kept.length;
    if (n < FEWEST) return;
    const bound = 2 * Math.log(effects / ALPHA) + Math.log(1 + n);
    const { means, squares, correlations } = moments(kept, effects);
    const common = correlations.reduce((sum, correlation) => sum + correlation, 0) / effects;
    for (let effect = 0; effect < effects; effect++) {
      const correlation = Math.max(correlations[effect], common);
      const z = (n - 1) * Math.log1p(squaredT(means[effect], squares[effect], correlation, n) / (n - 1));
      if (z > bound) strongest[effect] = Math.max(strongest[effect], 1 / (1 + Math.exp((bound - z) / 2)));
    }
  }

  capture(): Snapshot {
    const { kept, effects, strongest } = this;
    const tensors = kept.map((data, i) => [`${i}`, { dtype: 'F32', shape: [effects], data: data.slice() }] as const);
    return { tensors: new Map(tensors), state: Array.from(strongest) };
  }

  restore({ tensors, state }: Snapshot): void {
    const arrays = Array.from(tensors, ([place, { data }]) => [Number(place), data.slice() as Float32Array] as const);
    this.kept = arrays.sort(([a], [b]) => a - b).map(([, data]) => data);
    this.strongest = Float64Array.from(state as number[]);
  }
}

interface Moments {
  readonly means: Float64Array;
  /** Σ (x − mean)² */
  readonly squares: Float64Array;
  /** Of neighbouring estimates. */
  readonly correlations: Float64Array;
}

/** Of each effect, in passes along the estimates. */
function moments(estimates: readonly Float32Array[], effects: number): Moments {
  const n = estimates.length;
  const [means, squares, correlations] = [0, 1, 2].map(() => new Float64Array(effects));
  for (const of of estimates) for (let effect = 0; effect < effects; effect++) means[effect] += of[effect];
  for (let effect = 0; effect < effects; effect++) means[effect] /= n;
  const products = correlations;
  for (let i = 0; i < n; i++) {
    const [of, before] = [estimates[i], estimates[i - 1]];
    for (let effect = 0; effect < effects; effect++) {
      const off = of[effect] - means[effect];
      squares[effect] += off * off;
      if (i > 0) products[effect] += off * (before[effect] - means[effect]);
    }
  }
  for (let effect = 0; effect < effects; effect++) {
    const raw = squares[effect] === 0 ? 0 : products[effect] / squares[effect];
    // Short sequences hide correlation, on average by this much (Kendall 1954).
    correlations[effect] = raw + (1 + 3 * raw) / n;
  }
  return { means, squares, correlations };
}

/** t² of an effect, with its own correlation or the average of all, whichever is larger. */
function squaredT(mean: number, squares: number, correlation: number, n: number): number {
  if (mean === 0) return 0;
  if (squares === 0) return Number.POSITIVE_INFINITY;
  const r = Math.min(Math.max(0, correlation), LARGEST_CORRELATION);
  return mean ** 2 / (((squares / (n - 1) / n) * (1 + r)) / (1 - r));
}

/** The probability that anything passes by chance. */
const ALPHA = 1e-3;
/** Measurements before anything can pass. */
const FEWEST = 4;
/** How many of the latest measurements are kept. */
const KEPT = 512;
const LARGEST_CORRELATION = 0.9;
