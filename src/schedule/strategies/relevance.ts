import type { Snapshot } from '../../run/index.js';
import { Evidence } from './evidence.js';
import type { Scale } from './scheduler.js';

/**
 * Which features tell which task suits a sample: for each feature and task, the covariance of the feature with the
 * advantage of the task over the samples of a measurement. A feature counts by the evidence that one of them is not 0,
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
    this.evidence.add(covariances);
    this.judge();
  }

  /** The relevance of the most relevant feature. */
  get strongest(): number {
    return this.relevances.reduce((most, relevance) => Math.max(most, relevance), 0);
  }

  /** The scale with every feature weighed. */
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
