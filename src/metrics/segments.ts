import { InputError } from '../errors.js';

/**
 * A metric of text that is computed from sums over segments (BLEU, chrF, TER): what a corpus score, a bootstrap
 * resample and a permutation have in common.
 */
export interface SegmentMetric {
  /** The name as sacreBLEU prints it: `BLEU`, `chrF2++`, `TER` … */
  readonly name: string;
  /** TER falls as translations get better. */
  readonly lowerIsBetter: boolean;
  /** How many statistics a segment has. */
  readonly width: number;
  /** The statistics of one segment against its references. */
  measure(hypothesis: string, references: readonly string[]): readonly number[];
  /** The score of a set of segments from the sums of their statistics. */
  score(sums: ArrayLike<number>): number;
  /** What has to be known to repeat the score: sacreBLEU's `key:value|…`. */
  signature(references: number, test?: TestSignature): string;
}

/** The significance test a signature mentions. */
export interface TestSignature {
  readonly kind: 'bootstrap' | 'randomisation';
  readonly samples: number;
  readonly seed: number;
}

/** The statistics of every segment of a system's output: row-major [segments, width]. */
export interface SegmentStatistics {
  readonly values: Float64Array;
  readonly segments: number;
  readonly width: number;
}

/**
 * Measures each segment of a corpus.
 *
 * @param references `references[k][i]` is the k-th reference of segment i
 */
export function measureSegments(
  metric: SegmentMetric,
  hypotheses: readonly string[],
  references: readonly (readonly string[])[],
): SegmentStatistics {
  checkAligned(hypotheses, references);
  const { width } = metric;
  const values = new Float64Array(hypotheses.length * width);
  for (let i = 0; i < hypotheses.length; i++) {
    values.set(
      metric.measure(
        hypotheses[i],
        references.map((reference) => reference[i]),
      ),
      i * width,
    );
  }
  return { values, segments: hypotheses.length, width };
}

/** Sums over segments. */
export function sumSegments({ values, segments, width }: SegmentStatistics): Float64Array {
  const sums = new Float64Array(width);
  for (let i = 0; i < segments; i++) for (let j = 0; j < width; j++) sums[j] += values[i * width + j];
  return sums;
}

/** The score of a whole corpus under any metric of segments. */
export function corpusScore(
  metric: SegmentMetric,
  hypotheses: readonly string[],
  references: readonly (readonly string[])[],
): number {
  return metric.score(sumSegments(measureSegments(metric, hypotheses, references)));
}

// The sacreBLEU release whose results are reproduced. `+tcts`, a local version identifier in Python's sense, says that
// the figures were computed here.
const VERSION = '2.6.0+tcts';

/** sacreBLEU's signature: number of references, the test if there was one, the metric's own keys, the version. */
export function formatSignature(
  references: number,
  keys: readonly (readonly [string, string | number])[],
  test?: TestSignature,
  version = VERSION,
): string {
  const tested: [string, number][] =
    test === undefined
      ? []
      : [
          [test.kind === 'bootstrap' ? 'bs' : 'ar', test.samples],
          ['seed', test.seed],
        ];
  return [['nrefs', references], ...tested, ...keys, ['version', version]].map((pair) => pair.join(':')).join('|');
}

function checkAligned(hypotheses: readonly string[], references: readonly (readonly string[])[]): void {
  if (references.length === 0) throw new InputError('a score needs at least one reference for each segment');
  for (const [k, reference] of references.entries()) {
    if (reference.length !== hypotheses.length) {
      throw new InputError(
        `reference ${k + 1} has ${reference.length} segments, the hypothesis ${hypotheses.length}: expected the same number`,
      );
    }
  }
}

/**
 * Clipped n-gram matches of a hypothesis: for each order n, Σ over its n-grams of min(count in the hypothesis,
 * largest count in any one reference) (Papineni et al. 2002, section 2.1).
 *
 * @returns the matches of orders 1…`orders`
 */
export function matchNgrams<Symbol>(
  hypothesis: readonly Symbol[],
  references: readonly (readonly Symbol[])[],
  orders: number,
): number[] {
  // An n-gram is named by the id of its first n−1 symbols and its last symbol, so that no n-gram is ever built as a
  // string. Id 0 stands for "in no reference".
  const symbols = new Map<Symbol, number>();
  const coded = references.map((reference) => reference.map((symbol) => intern(symbols, symbol)));
  const base = symbols.size + 1;

  const last = hypothesis.map((symbol) => symbols.get(symbol) ?? 0);
  let prefixes = last.slice();
  let referencePrefixes = coded.map((reference) => reference.slice());
  let ids = symbols.size;

  const matches: number[] = [];
  for (let n = 1; n <= orders; n++) {
    if (n > 1) {
      const grams = new Map<number, number>();
      referencePrefixes = referencePrefixes.map((prefix, r) => {
        const longer: number[] = [];
        for (let i = 0; i + n <= coded[r].length; i++) {
          longer.push(intern(grams, prefix[i] * base + coded[r][i + n - 1]));
        }
        return longer;
      });
      const longer: number[] = [];
      for (let i = 0; i + n <= last.length; i++) {
        const known = prefixes[i] !== 0 && last[i + n - 1] !== 0;
        longer.push(known ? (grams.get(prefixes[i] * base + last[i + n - 1]) ?? 0) : 0);
      }
      prefixes = longer;
      ids = grams.size;
    }
    matches.push(clippedMatches(prefixes, referencePrefixes, ids));
  }
  return matches;
}

/** How many n-grams of order `n` a sequence of `length` symbols has. */
export function ngramCount(length: number, n: number): number {
  return Math.max(0, length - n + 1);
}

/** The number of a key, given out from 1 on in the order of first sight. */
export function intern<Key>(ids: Map<Key, number>, key: Key): number {
  let id = ids.get(key);
  if (id === undefined) {
    id = ids.size + 1;
    ids.set(key, id);
  }
  return id;
}

function clippedMatches(
  hypothesis: readonly number[],
  references: readonly (readonly number[])[],
  ids: number,
): number {
  const left = new Int32Array(ids + 1);
  if (references.length === 1) {
    for (const id of references[0]) left[id]++;
  } else {
    for (const reference of references) {
      const counts = new Int32Array(ids + 1);
      for (const id of reference) if (++counts[id] > left[id]) left[id] = counts[id];
    }
  }
  let matches = 0;
  for (const id of hypothesis) {
    if (left[id] > 0) {
      left[id]--;
      matches++;
    }
  }
  return matches;
}
