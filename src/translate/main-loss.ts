import type { Snapshot } from '../run/index.js';
import type { Assignment } from '../schedule/index.js';
import type { TranslationBatch } from './batch.js';
import type { Batch } from './corpus/batches.js';
import type { LossEvaluation } from './loss-evaluation.js';

/**
 * Where the loss of a sentence on the main task comes from, as a feature: `exact` computes it for every sentence in evaluation
 * mode with the current parameters, one more pass forward for each update; `estimated` does so with products in 8 bits, in
 * half the time; `cached` takes the loss that the last update on the main task found for this sentence, at no cost.
 */
export type MainLossSource = 'exact' | 'estimated' | 'cached';

/** Main-task losses of sentences, and what is remembered of them. In nats per token, without label smoothing. */
export class MainLosses {
  /** Over all training sentences so far. */
  private history = { sum: 0, count: 0 };
  /** Of each training pair, with `cached`; NaN where none is known. */
  private readonly known: Float32Array;
  /** The features that were computed last. */
  private latest: { batch: TranslationBatch; update: number; losses: Float32Array } | undefined;

  constructor(
    private readonly evaluation: LossEvaluation,
    /** m of the main task. */
    private readonly wait: number,
    private readonly source: MainLossSource,
    trainingPairs: number,
  ) {
    this.known = new Float32Array(source === 'cached' ? trainingPairs : 0).fill(Number.NaN);
  }

  /** Mean over all training sentences so far; undefined before the first. */
  get mean(): number | undefined {
    const { sum, count } = this.history;
    return count === 0 ? undefined : sum / count;
  }

  /** In evaluation mode. */
  async exact(batch: TranslationBatch): Promise<Float32Array> {
    return this.perToken(batch, async (part) => (await this.evaluation.sentences(part, this.wait)).plain);
  }

  /** The feature, with the parameters after so many updates; `unknown` stands for a loss that is not known. */
  async feature(batch: TranslationBatch, update: number, unknown: number): Promise<Float32Array> {
    if (this.source !== 'cached' || batch.split !== 'train') return this.current(batch, update);
    const pairs = batch.parts.flatMap(({ indices }) => [...indices]);
    return Float32Array.from(pairs, (pair) => {
      const loss = this.known[pair];
      return Number.isNaN(loss) ? unknown : loss;
    });
  }

  /** Takes in what an update has shown: `sums` are the losses of the sentences of each part on the tasks they had. */
  remember(batch: TranslationBatch, { tasks, weights }: Assignment, main: number, sums: readonly Float32Array[]): void {
    if (this.source !== 'cached') {
      if (this.latest?.batch === batch) for (const loss of this.latest.losses) this.count(loss);
      return;
    }
    let at = 0;
    for (const [part, { indices, targetLengths, size }] of batch.parts.entries()) {
      for (let b = 0; b < size; b++, at++) {
        if (tasks[at] !== main || weights[at] === 0) continue;
        const loss = sums[part][b] / targetLengths[b];
        this.known[indices[b]] = loss;
        this.count(loss);
      }
    }
  }

  capture(): Snapshot {
    const { known, history } = this;
    const tensors = new Map([['known', { dtype: 'F32', shape: [known.length], data: known } as const]]);
    return { tensors, state: { ...history } };
  }

  restore({ tensors, state }: Snapshot): void {
    this.known.set(tensors.get('known')!.data as Float32Array);
    this.history = { ...(state as typeof this.history) };
    this.latest = undefined;
  }

  private async current(batch: TranslationBatch, update: number): Promise<Float32Array> {
    if (this.latest?.batch === batch && this.latest.update === update) return this.latest.losses;
    const losses = await (this.source === 'estimated' ? this.estimated(batch) : this.exact(batch));
    this.latest = { batch, update, losses };
    return losses;
  }

  private estimated(batch: TranslationBatch): Promise<Float32Array> {
    return this.perToken(batch, (part) => this.evaluation.estimates(part, this.wait));
  }

  private async perToken(batch: TranslationBatch, sums: (part: Batch) => Promise<Float32Array>): Promise<Float32Array> {
    const losses = new Float32Array(batch.size);
    let at = 0;
    for (const part of batch.parts) {
      const ofPart = await sums(part);
      for (let b = 0; b < part.size; b++) losses[at++] = ofPart[b] / part.targetLengths[b];
    }
    return losses;
  }

  private count(loss: number): void {
    this.history.sum += loss;
    this.history.count++;
  }
}
