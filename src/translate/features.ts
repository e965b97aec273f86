import type { Snapshot } from '../run/index.js';
import type { Assignment, FeatureGroup, Status } from '../schedule/index.js';
import { type Batch, column, pairCount } from './corpus/batches.js';
import type { LossEvaluation } from './loss-evaluation.js';

/**
 * The seven features of section 3.3 in the groups of table "Ablation study for feature selection" (appendix E.1). All
 * losses are in nats per token.
 *
 * - (i) `lengths`: source and target length over their means in the training data
 * - (ii) `training`: loss of the sentence on the main task, and the mean of all these losses so far
 * - (iii) `validation`: main-task validation loss, and the mean of all of them so far
 * - (iv) `step`: t / t_max
 *
 * `columns` are their names for display.
 */
export const FEATURES = [
  { name: 'lengths', width: 2, columns: ['source length / mean', 'target length / mean'] },
  { name: 'training', width: 2, columns: ['loss of the sentence', 'mean training loss so far'] },
  { name: 'validation', width: 2, columns: ['validation loss', 'mean validation loss so far'] },
  { name: 'step', width: 1, columns: ['progress'] },
] as const satisfies readonly FeatureGroup[];

/** If sources are scrambled on purpose: 1 for pairs from the scrambled origin. */
export const ORIGIN = { name: 'origin', width: 1, columns: ['scrambled origin'] } as const satisfies FeatureGroup;

export type FeatureName = (typeof FEATURES)[number]['name'] | typeof ORIGIN.name;

/** What the features of a batch's sentences are computed from. */
export interface FeatureSources {
  /** [B], including sentence ends. */
  readonly sourceLengths: ArrayLike<number>;
  readonly targetLengths: ArrayLike<number>;
  readonly meanLengths: { readonly source: number; readonly target: number };
  /** Main-task losses [B]; only needed by the group `training`. */
  readonly losses?: ArrayLike<number>;
  /** Mean of the main-task losses so far. */
  readonly meanLoss: number;
  readonly status: Status;
  /** [B]; only needed by the group `origin`. */
  readonly origins?: ArrayLike<number>;
}

/** Writes the columns of the groups, row by row, in the order of `FEATURES`. */
export function writeFeatureRows(groups: readonly string[], from: FeatureSources, out: Float32Array): void {
  const columns = [...FEATURES, ORIGIN]
    .filter(({ name }) => groups.includes(name))
    .flatMap(({ name }) => COLUMNS[name]);
  const size = from.sourceLengths.length;
  for (let i = 0; i < size; i++) {
    for (let j = 0; j < columns.length; j++) out[i * columns.length + j] = columns[j](from, i);
  }
}

type Column = (from: FeatureSources, i: number) => number;

const COLUMNS: Readonly<Record<FeatureName, readonly Column[]>> = {
  lengths: [
    ({ sourceLengths, meanLengths }, i) => sourceLengths[i] / meanLengths.source,
    ({ targetLengths, meanLengths }, i) => targetLengths[i] / meanLengths.target,
  ],
  training: [({ losses }, i) => losses![i], ({ meanLoss }) => meanLoss],
  // Performance is minus the loss.
  validation: [({ status }) => -status.performance, ({ status }) => -status.meanPerformance],
  step: [({ status }) => status.update / status.updates],
  origin: [({ origins }, i) => origins![i]],
};

/**
 * Where the loss of a sentence on the main task comes from, as a feature: `exact` computes it for every sentence in
 * evaluation mode with the current parameters, one more forward pass for each update; `estimated` does so with products
 * in 8 bits, in half the time; `cached` uses the loss from the sentence's last update on the main task, at no cost.
 */
export type MainLossSource = 'exact' | 'estimated' | 'cached';

/** Main-task losses of sentences, and the cached ones. In nats per token, without label smoothing. */
export class MainLosses {
  /** Over all training sentences so far. */
  private history = { sum: 0, count: 0 };
  /** Of each training pair, with `cached`; NaN if none is known. */
  private readonly known: Float32Array;
  /** The features that were computed last. */
  private latest: { batches: readonly Batch[]; update: number; losses: Float32Array } | undefined;

  constructor(
    private readonly evaluation: Pick<LossEvaluation, 'sentences' | 'estimates'>,
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
  async exact(batches: readonly Batch[]): Promise<Float32Array> {
    return this.perToken(batches, async (part) => (await this.evaluation.sentences(part, this.wait)).plain);
  }

  /** The feature, with the parameters after `update` updates; `unknown` replaces a loss that is not known. */
  async feature(batches: readonly Batch[], update: number, unknown: number): Promise<Float32Array> {
    if (this.source !== 'cached' || batches[0].split !== 'train') return this.current(batches, update);
    return Float32Array.from(column(batches, 'indices'), (pair) => {
      const loss = this.known[pair];
      return Number.isNaN(loss) ? unknown : loss;
    });
  }

  /** Records an update: `sums` are the losses of the sentences of each batch on the tasks they were assigned. */
  remember(
    batches: readonly Batch[],
    { tasks, weights }: Assignment,
    main: number,
    sums: readonly Float32Array[],
  ): void {
    if (this.source !== 'cached') {
      if (this.latest?.batches === batches) for (const loss of this.latest.losses) this.count(loss);
      return;
    }
    let at = 0;
    for (const [part, { indices, targetLengths, size }] of batches.entries()) {
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

  private async current(batches: readonly Batch[], update: number): Promise<Float32Array> {
    if (this.latest?.batches === batches && this.latest.update === update) return this.latest.losses;
    const losses = await (this.source === 'estimated' ? this.estimated(batches) : this.exact(batches));
    this.latest = { batches, update, losses };
    return losses;
  }

  private estimated(batches: readonly Batch[]): Promise<Float32Array> {
    return this.perToken(batches, (part) => this.evaluation.estimates(part, this.wait));
  }

  private async perToken(
    batches: readonly Batch[],
    sums: (part: Batch) => Promise<Float32Array>,
  ): Promise<Float32Array> {
    const losses = new Float32Array(pairCount(batches));
    let at = 0;
    for (const part of batches) {
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
