import { type BleuScore, bleuStatistics, brevityPenalty, geometricMean } from './bleu.js';
import { formatSignature, measureSegments, type SegmentMetric, sumSegments } from './segments.js';

export interface MultiBleuOptions {
  /** The script's `-lc`: ASCII letters only. Default false. */
  readonly lowercase?: boolean;
}

/**
 * BLEU of tokenised text as Moses' multi-bleu.perl prints it: no smoothing, and the script's bytes: only ASCII white
 * space separates words (a no-break or ideographic space does not) and only ASCII letters are lowercased.
 *
 * Where all hypotheses are empty the script dies of a division by zero; here the score is 0. Where all references are
 * empty every figure is 0, as in the script.
 *
 * @param references `references[k][i]` is the k-th reference of segment i
 */
export function multiBleu(
  hypotheses: readonly string[],
  references: readonly (readonly string[])[],
  options: MultiBleuOptions = {},
): BleuScore {
  return multiBleuFromStatistics(sumSegments(measureSegments(multiBleuMetric(options), hypotheses, references)));
}

/** The same statistics as BLEU's. */
export function multiBleuMetric(options: MultiBleuOptions = {}): SegmentMetric {
  const words = (line: string) => asciiWords(options.lowercase ? asciiLowercase(line) : line);
  return {
    name: 'BLEU',
    lowerIsBetter: false,
    width: 10,
    measure: (hypothesis, references) => bleuStatistics(words(hypothesis), references.map(words)),
    score: (sums) => multiBleuFromStatistics(sums).score,
    signature: (references, test) =>
      formatSignature(
        references,
        [
          ['case', options.lowercase ? 'lc' : 'mixed'],
          ['eff', 'no'],
          ['tok', 'none'],
          ['smooth', 'none'],
        ],
        test,
        'multi-bleu+tcts',
      ),
  };
}

export function multiBleuFromStatistics(sums: ArrayLike<number>): BleuScore {
  const [systemLength, referenceLength] = [sums[0], sums[1]];
  if (referenceLength === 0) {
    const none = [0, 0, 0, 0];
    return { score: 0, counts: none, totals: none, precisions: none, bp: 0, systemLength: 0, referenceLength: 0 };
  }
  const counts = Array.from({ length: 4 }, (_, n) => sums[2 + n]);
  const totals = Array.from({ length: 4 }, (_, n) => sums[6 + n]);
  const rates = counts.map((count, n) => (totals[n] > 0 ? count / totals[n] : 0));
  const bp = brevityPenalty(systemLength, referenceLength);
  const precisions = rates.map((rate) => 100 * rate);
  return { score: 100 * bp * geometricMean(rates), counts, totals, precisions, bp, systemLength, referenceLength };
}

/** The line the script prints. */
export function formatMultiBleu({ score, precisions, bp, systemLength, referenceLength }: BleuScore): string {
  if (referenceLength === 0) return 'BLEU = 0, 0/0/0/0 (BP=0, ratio=0, hyp_len=0, ref_len=0)';
  const orders = precisions.map((p) => p.toFixed(1)).join('/');
  const ratio = (systemLength / referenceLength).toFixed(3);
  const lengths = `hyp_len=${systemLength}, ref_len=${referenceLength}`;
  return `BLEU = ${score.toFixed(2)}, ${orders} (BP=${bp.toFixed(3)}, ratio=${ratio}, ${lengths})`;
}

function asciiWords(line: string): string[] {
  return line.split(/[\t-\r ]+/).filter((word) => word !== '');
}

function asciiLowercase(line: string): string {
  return line.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
