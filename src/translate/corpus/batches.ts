import { InputError } from '../../errors.js';
import { Random } from '../../random.js';
import { special } from '../text/vocabulary.js';
import type { PairedSequences } from './corpus.js';

export interface BatchOptions {
  /** Bound on the padded target tokens of a batch: sentences × longest target, including sentence ends. */
  readonly maxTokens: number;
  /** Maximum sentences in a batch. Default no limit. */
  readonly maxSentences?: number;
  readonly seed: number | string;
  /** Visit the batches in a random order, a new one every epoch. Default true. */
  readonly shuffle?: boolean;
  /** What the pairs are for. Default `train`. */
  readonly split?: Batch['split'];
}

/**
 * Sentence pairs of similar length, padded at the right, time-major. An update takes one batch, or several whose gradients
 * are added up; its pairs are then counted over all of them.
 */
export interface Batch {
  /** [S, B], with the end of the sentence. */
  readonly source: Int32Array;
  /** [T, B], with the end of the sentence. */
  readonly target: Int32Array;
  /** [B], including the end. */
  readonly sourceLengths: Int32Array;
  readonly targetLengths: Int32Array;
  /** [B], places of the pairs in the corpus. */
  readonly indices: Int32Array;
  readonly size: number;
  readonly sourceLength: number;
  readonly targetLength: number;
  readonly epoch: number;
  readonly split: 'train' | 'valid';
}

/** Position in the data; with the same corpus and options, it determines the rest. */
export interface BatchState {
  readonly epoch: number;
  /** Batches of this epoch already returned. */
  readonly position: number;
}

/**
 * An endless sequence of batches, epoch after epoch. An epoch's order is a function of the seed and its number:
 * pairs are shuffled, sorted by length (pairs of equal length stay in random order), split into batches, and the batches
 * are shuffled. Every pair occurs exactly once per epoch.
 */
export class BatchIterator {
  private readonly random: Random;
  private plan: Plan;
  private epoch = 0;
  private position = 0;

  constructor(
    private readonly pairs: PairedSequences,
    private readonly options: BatchOptions,
    state?: BatchState,
  ) {
    checkOptions(pairs, options);
    this.random = new Random(options.seed);
    this.epoch = state?.epoch ?? 0;
    this.plan = this.planEpoch(this.epoch);
    this.position = state?.position ?? 0;
    if (this.position > this.count) {
      throw new InputError(`the saved position ${this.position} is beyond the epoch's ${this.count} batches`);
    }
  }

  /** Batches of the current epoch. */
  get count(): number {
    return this.plan.starts.length - 1;
  }

  state(): BatchState {
    return { epoch: this.epoch, position: this.position };
  }

  next(): Batch {
    if (this.position === this.count) {
      this.epoch++;
      this.position = 0;
      if (this.options.shuffle ?? true) this.plan = this.planEpoch(this.epoch);
    }
    return this.at(this.position++);
  }

  /** The remaining batches of the current epoch. */
  *rest(): Generator<Batch> {
    for (let left = this.count - this.position; left > 0; left--) yield this.next();
  }

  /** A batch of the current epoch by its index; the iterator does not move. */
  at(place: number): Batch {
    const { order, starts, sequence } = this.plan;
    const b = sequence[place];
    const indices = order.slice(starts[b], starts[b + 1]);
    return collate(this.pairs, indices, { epoch: this.epoch, split: this.options.split });
  }

  private planEpoch(epoch: number): Plan {
    const { shuffle = true } = this.options;
    const random = shuffle ? this.random.fork(`epoch ${epoch}`) : undefined;
    return plan(this.pairs, this.options, random);
  }
}

/** Pads chosen pairs into one batch. */
export function collate(
  pairs: PairedSequences,
  indices: Int32Array,
  { epoch = 0, split = 'train' }: Partial<Pick<Batch, 'epoch' | 'split'>> = {},
): Batch {
  const size = indices.length;
  const sourceLengths = Int32Array.from(indices, (i) => pairs.source.lengths[i]);
  const targetLengths = Int32Array.from(indices, (i) => pairs.target.lengths[i]);
  const sourceLength = sourceLengths.reduce((a, b) => Math.max(a, b), 0);
  const targetLength = targetLengths.reduce((a, b) => Math.max(a, b), 0);
  const source = new Int32Array(sourceLength * size).fill(special.pad); // [S, B]
  const target = new Int32Array(targetLength * size).fill(special.pad); // [T, B]
  indices.forEach((pair, b) => {
    const sourceIds = pairs.source.read(pair);
    for (let t = 0; t < sourceIds.length; t++) source[t * size + b] = sourceIds[t];
    const targetIds = pairs.target.read(pair);
    for (let t = 0; t < targetIds.length; t++) target[t * size + b] = targetIds[t];
  });
  return { source, target, sourceLengths, targetLengths, indices, size, sourceLength, targetLength, epoch, split };
}

/** Sentence pairs of all batches of an update. */
export function pairCount(batches: readonly Batch[]): number {
  return batches.reduce((sum, { size }) => sum + size, 0);
}

/** For every pair of an update: its index in the corpus, or one of its lengths. */
export function column(batches: readonly Batch[], of: 'indices' | 'sourceLengths' | 'targetLengths'): number[] {
  return batches.flatMap((batch) => [...batch[of]]);
}

/** Some pairs of an update, by their indices in it, padded as one batch. A pair may occur several times. */
export function selectPairs(batches: readonly Batch[], places: Int32Array): Batch {
  const rows = batches.flatMap((batch) => Array.from({ length: batch.size }, (_, b) => ({ batch, b })));
  const side = (name: 'source' | 'target') => ({
    lengths: Int32Array.from(rows, ({ batch, b }) => batch[`${name}Lengths`][b]),
    read: (i: number): Int32Array => {
      const { batch, b } = rows[i];
      return Int32Array.from({ length: batch[`${name}Lengths`][b] }, (_, t) => batch[name][t * batch.size + b]);
    },
  });
  const pairs = { count: rows.length, source: side('source'), target: side('target'), close: () => {} };
  const [{ epoch, split }] = batches;
  const indices = places.map((place) => rows[place].batch.indices[rows[place].b]);
  return { ...collate(pairs, places, { epoch, split }), indices };
}

interface Plan {
  /** Pairs, batch after batch. */
  readonly order: Int32Array;
  /** Batch b holds order[starts[b]] … order[starts[b + 1] − 1]. */
  readonly starts: Int32Array;
  /** Order of the batches. */
  readonly sequence: Int32Array;
}

function plan(pairs: PairedSequences, { maxTokens, maxSentences }: BatchOptions, random?: Random): Plan {
  let order = Int32Array.from({ length: pairs.count }, (_, i) => i);
  random?.shuffle(order);
  order = sortBy(sortBy(order, pairs.source.lengths), pairs.target.lengths);
  const starts = [0];
  for (let i = 0; i < order.length; i++) {
    const first = starts[starts.length - 1];
    // Sorted by target length, so the newest pair is the longest.
    const padded = (i - first + 1) * pairs.target.lengths[order[i]];
    if (padded > maxTokens || i - first === maxSentences) starts.push(i);
  }
  if (order.length > 0) starts.push(order.length);
  const sequence = Int32Array.from({ length: starts.length - 1 }, (_, b) => b);
  random?.shuffle(sequence);
  return { order, starts: Int32Array.from(starts), sequence };
}

/** Stable counting sort by a small whole number. */
function sortBy(order: Int32Array, key: Int32Array): Int32Array<ArrayBuffer> {
  const most = key.reduce((a, b) => Math.max(a, b), 0);
  const next = new Int32Array(most + 2);
  for (const i of order) next[key[i] + 1]++;
  for (let k = 0; k <= most; k++) next[k + 1] += next[k];
  const sorted = new Int32Array(order.length);
  for (const i of order) sorted[next[key[i]]++] = i;
  return sorted;
}

function checkOptions(pairs: PairedSequences, { maxTokens, maxSentences }: BatchOptions): void {
  for (const [key, value] of Object.entries({ maxTokens, maxSentences })) {
    if (value !== undefined && !(Number.isSafeInteger(value) && value >= 1)) {
      throw new InputError(`expected a whole number of at least 1, found ${value}`, { key });
    }
  }
  if (pairs.count === 0) throw new InputError('the split has no pairs');
  const tooLong = pairs.target.lengths.findIndex((length) => length > maxTokens);
  if (tooLong >= 0) {
    const length = pairs.target.lengths[tooLong];
    const sentence = `pair ${tooLong} has ${length} target tokens, more than a batch may hold (${maxTokens})`;
    throw new InputError(`${sentence}; raise it or filter the corpus with --max-tokens`, { key: 'maxTokens' });
  }
}
