import { Random } from '../random.js';
import { oracleRows } from '../schedule/index.js';
import { type Batch, column } from './corpus/batches.js';
import type { PairedSequences } from './corpus/corpus.js';

/** Training pairs of which some come from a second origin, where sources have their halves swapped. */
export interface Scrambled extends PairedSequences {
  /** [pair]; 1 for the second origin: the feature `origin`. */
  readonly origin: Uint8Array;
}

/** Swaps the halves of the source in a share of the pairs, drawn by a seed of its own. Ends of sentences stay. */
export function scrambled(pairs: PairedSequences, share: number, seed: number): Scrambled {
  const random = new Random(seed).fork('corruption');
  const order = random.shuffle(Int32Array.from({ length: pairs.count }, (_, i) => i));
  const origin = new Uint8Array(pairs.count);
  for (const pair of order.subarray(0, Math.round(share * pairs.count))) origin[pair] = 1;
  const { source, target, count } = pairs;
  const read = (pair: number) => (origin[pair] === 1 ? swapped(source.read(pair)) : source.read(pair));
  return { count, origin, target, source: { lengths: source.lengths, read }, close: () => pairs.close() };
}

/** a b c d e ⏹ becomes d e a b c ⏹. */
export function swapped(ids: ArrayLike<number>): Int32Array {
  const words = ids.length - 1;
  const half = Math.ceil(words / 2);
  return Int32Array.from(ids, (id, i) => (i === words ? id : ids[(i + half) % words]));
}

/**
 * Where the halves are swapped, the words that wait-m would have seen of the original come n/2 words later: a wait is
 * unharmed if it is that much longer than the main one, or the longest there is.
 */
export function scrambledOracle(
  scrambled: Scrambled,
  batches: readonly Batch[],
  { waits, main }: { readonly waits: readonly number[]; readonly main: number },
): Float32Array {
  const origins = originsOf(scrambled, batches);
  const lengths = column(batches, 'sourceLengths');
  const longest = Math.max(...waits);
  return oracleRows(origins.length, waits.length, main, (i, task) => {
    const half = Math.ceil((lengths[i] - 1) / 2);
    return origins[i] === 1 && waits[task] < Math.min(longest, waits[main] + half);
  });
}

/** Of every pair of an update; validation data are all of the first origin. */
export function originsOf({ origin }: Scrambled, batches: readonly Batch[]): number[] {
  return batches.flatMap(({ indices, split }) => Array.from(indices, (pair) => (split === 'train' ? origin[pair] : 0)));
}
