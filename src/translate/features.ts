import type { FeatureGroup, Status } from '../schedule/index.js';

/**
 * The seven features of section 3.3 in the groups of table "Ablation study for feature selection" (appendix E.1). All
 * losses are in nats per token.
 *
 * - (i) `lengths`: source and target length over their means in the training data
 * - (ii) `training`: loss of the sentence on the main task, and the mean of all these losses so far
 * - (iii) `validation`: main-task validation loss, and the mean of all of them so far
 * - (iv) `step`: t / t_max
 */
export const FEATURES = [
  { name: 'lengths', width: 2 },
  { name: 'training', width: 2 },
  { name: 'validation', width: 2 },
  { name: 'step', width: 1 },
] as const satisfies readonly FeatureGroup[];

/** Where sources are scrambled on purpose: 1 for pairs of the origin whose sources are. */
export const ORIGIN = { name: 'origin', width: 1 } as const satisfies FeatureGroup;

export type FeatureName = (typeof FEATURES)[number]['name'] | typeof ORIGIN.name;

/** What the features of the sentences of a batch are made of. */
export interface FeatureSources {
  /** [B], the ends of sentences counted. */
  readonly sourceLengths: ArrayLike<number>;
  readonly targetLengths: ArrayLike<number>;
  readonly meanLengths: { readonly source: number; readonly target: number };
  /** Main-task losses [B]; needed by the group `training` alone. */
  readonly losses?: ArrayLike<number>;
  /** Mean of the main-task losses so far. */
  readonly meanLoss: number;
  readonly status: Status;
  /** [B]; needed by the group `origin` alone. */
  readonly origins?: ArrayLike<number>;
}

/** Writes the columns of the groups, row by row, in the order of `FEATURES`. */
export function writeRows(groups: readonly string[], from: FeatureSources, out: Float32Array): void {
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
