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
        `reference ${k + 1} has ${reference.length} segments, the hypothesis ${hypotheses.length}: expected as many`,
      );
    }
  }
}
