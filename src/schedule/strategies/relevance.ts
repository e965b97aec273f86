import type { Snapshot } from '../../run/index.js';
import { meanOf, significance } from './measurements.js';
import type { Scale } from './policy.js';

/**
 * Which features tell anything about credits, one by one: the covariance of a feature with the advantage of a task, over
 * the samples of each measurement, must differ from 0 by more than the largest of F·K noises would. Features that show
 * nothing are scaled down until all of them together weigh as much as one that does: they may still matter together.
 */
export class Relevance {
  private kept: Float32Array[] = [];

  constructor(
    private readonly width: number,
    private readonly tasks: number,
    /** Measurements kept. */
    private readonly memory: number,
  ) {}

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
    this.kept.push(covariances);
    if (this.kept.length > this.memory) this.kept.shift();
  }

  /** The scale with every feature weighed. */
  weigh({ mean, inverseStd }: Scale): Scale {
    return { mean, inverseStd: inverseStd.map((scale, j) => scale * Math.max(this.of(j), 1 / Math.sqrt(this.width))) };
  }

  capture(): Snapshot {
    const tensors = this.kept.map((data, i) => [`${i}`, { dtype: 'F32', shape: [data.length], data }] as const);
    return { tensors: new Map(tensors), state: { kept: this.kept.length } };
  }

  restore({ tensors, state }: Snapshot): void {
    this.kept = Array.from({ length: (state as { kept: number }).kept }, (_, i) =>
      (tensors.get(`${i}`)!.data as Float32Array).slice(),
    );
  }

  /** Of the most relevant feature, from 0 to 1. */
  get strongest(): number {
    return Math.max(0, ...Array.from({ length: this.width }, (_, j) => this.of(j)));
  }

  private of(feature: number): number {
    const { width: F, tasks: K, kept } = this;
    if (kept.length < FEWEST) return 0;
    const bound = Math.sqrt(2 * Math.log(F * K));
    const of = Array.from({ length: K }, (_, task) => {
      const { mean, error } = meanOf(kept.map((covariances) => covariances[feature * K + task]));
      return significance({ mean: Math.abs(mean), error }, bound);
    });
    return Math.max(...of);
  }
}

/** credit_iT less the mean of its sample and of its task. */
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
