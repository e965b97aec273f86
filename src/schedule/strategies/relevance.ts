import type { Snapshot } from '../../run/index.js';
import { meanOf, significance } from './measurements.js';
import type { Scale } from './policy.js';

/**
 * Which features tell anything about credits, one by one: the covariance of a feature with the advantage of a task, over
 * the samples of each measurement, must differ from 0 by more than the largest of F·K noises would. Features that show
 * nothing are scaled down until all of them together weigh as much as one that does: they may still matter together.
 */
export class Relevance {
  /** Of each feature, from 0 to 1. */
  private readonly relevances: Float64Array;
  /** [F, K] of each measurement. */
  private covariances: Float32Array[] = [];

  constructor(
    private readonly width: number,
    private readonly tasks: number,
    /** Measurements kept. */
    private readonly memory: number,
  ) {
    this.relevances = new Float64Array(width);
  }

  /** Takes in a measurement: features [n, F] with their scale, credits [n, K]. */
  add(features: Float32Array, credits: Float32Array, { mean, inverseStd }: Scale): void {
    const { width: F, tasks: K } = this;
    const n = features.length / F;
    const advantages = centred(credits, K);
    const covariances = new Float32Array(F * K);
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < F; j++) {
        const z = (features[i * F + j] - mean[j]) * inverseStd[j];
        for (let task = 0; task < K; task++) covariances[j * K + task] += (z * advantages[i * K + task]) / n;
      }
    }
    this.covariances.push(covariances);
    if (this.covariances.length > this.memory) this.covariances.shift();
    this.judge();
  }

  /** The relevance of the most relevant feature. */
  get strongest(): number {
    return this.relevances.reduce((most, relevance) => Math.max(most, relevance), 0);
  }

  /** The scale with every feature weighed. */
  weigh({ mean, inverseStd }: Scale): Scale {
    const least = 1 / Math.sqrt(this.width);
    return { mean, inverseStd: inverseStd.map((scale, j) => scale * Math.max(least, this.relevances[j])) };
  }

  capture(): Snapshot {
    const { width: F, tasks: K } = this;
    const tensors = this.covariances.map((data, i) => [`${i}`, { dtype: 'F32', shape: [F, K], data }] as const);
    return { tensors: new Map(tensors), state: null };
  }

  restore({ tensors }: Snapshot): void {
    const arrays = Array.from(tensors, ([place, { data }]) => [Number(place), data.slice()] as const);
    this.covariances = arrays.sort(([a], [b]) => a - b).map(([, data]) => data as Float32Array);
    this.judge();
  }

  private judge(): void {
    const { width: F, tasks: K, covariances } = this;
    if (covariances.length < FEWEST) return void this.relevances.fill(0);
    const bound = Math.sqrt(2 * Math.log(F * K));
    for (let j = 0; j < F; j++) {
      this.relevances[j] = 0;
      for (let task = 0; task < K; task++) {
        const { mean, error } = meanOf(covariances.map((of) => of[j * K + task]));
        const relevance = significance({ mean: Math.abs(mean), error }, bound);
        this.relevances[j] = Math.max(this.relevances[j], relevance);
      }
    }
  }
}

/** credit_iT less the mean of its sample, and of what is left less the mean of its task. */
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

/** Measurements before a feature can count fully. */
const FEWEST = 8;
