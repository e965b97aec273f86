import { InputError } from '../errors.js';
import {
  formatSignature,
  matchNgrams,
  measureSegments,
  ngramCount,
  type SegmentMetric,
  sumSegments,
} from './segments.js';
import { stripEnd, type TokenizerName, tokenizers } from './tokenizers.js';

/** How n-gram orders without a match are smoothed, under sacreBLEU's names. */
export type Smoothing = 'exp' | 'floor' | 'add-k' | 'none';

/** All smoothing methods. */
export const SMOOTHINGS: readonly Smoothing[] = ['exp', 'floor', 'add-k', 'none'];

/** How BLEU is computed; the defaults are sacreBLEU's. */
export interface BleuOptions {
  /** Default `13a`. */
  readonly tokenize?: TokenizerName;
  /** What to do with an order without a match (Chen & Cherry 2014). Default `exp`. */
  readonly smooth?: Smoothing;
  /** The ε of `floor` (default 0.1) or the k of `add-k` (default 1). */
  readonly smoothValue?: number;
  /** Default false. */
  readonly lowercase?: boolean;
  /** Average over the orders that exist only: for single sentences. Default false. */
  readonly effectiveOrder?: boolean;
}

/** A BLEU score and what it was computed from. */
export interface BleuScore {
  /** 0 … 100. */
  readonly score: number;
  /** Matched n-grams of orders 1–4 (after smoothing by add-k). */
  readonly counts: readonly number[];
  /** N-grams of the hypothesis of orders 1–4 (after smoothing by add-k). */
  readonly totals: readonly number[];
  /** 100 · counts / totals, smoothed. */
  readonly precisions: readonly number[];
  /** Brevity penalty. */
  readonly bp: number;
  readonly systemLength: number;
  readonly referenceLength: number;
}

/**
 * BLEU of a corpus as sacreBLEU computes it (Papineni et al. 2002; Post 2018):
 *
 *     BLEU = BP · exp(¼ Σ_{n=1..4} log p_n),  BP = min(1, exp(1 − r/c)),
 *
 * with p_n the clipped n-gram precision of the corpus, c its length and r the sum of the closest reference lengths.
 *
 * @param references `references[k][i]` is the k-th reference of segment i
 */
export function corpusBleu(
  hypotheses: readonly string[],
  references: readonly (readonly string[])[],
  options: BleuOptions = {},
): BleuScore {
  return bleuFromStatistics(sumSegments(measureSegments(bleuMetric(options), hypotheses, references)), options);
}

/** BLEU of one segment. Effective order is on unless switched off, as with sacreBLEU's `--sentence-level`. */
export function sentenceBleu(hypothesis: string, references: readonly string[], options: BleuOptions = {}): BleuScore {
  const withOrder = { effectiveOrder: true, ...options };
  return bleuFromStatistics(bleuMetric(withOrder).measure(hypothesis, references), withOrder);
}

/** Statistics of a segment: hypothesis length, closest reference length, matches of orders 1–4, n-grams of orders 1–4. */
export function bleuMetric(options: BleuOptions = {}): SegmentMetric {
  const tokenize = tokenizers[options.tokenize ?? '13a'];
  const tokens = (line: string) => tokenize(stripEnd(options.lowercase ? line.toLowerCase() : line));
  return {
    name: 'BLEU',
    lowerIsBetter: false,
    width: 2 + 2 * ORDERS,
    measure: (hypothesis, references) => bleuStatistics(tokens(hypothesis), references.map(tokens)),
    score: (sums) => bleuFromStatistics(sums, options).score,
    signature: (references, test) =>
      formatSignature(
        references,
        [
          ['case', options.lowercase ? 'lc' : 'mixed'],
          ['eff', options.effectiveOrder ? 'yes' : 'no'],
          ['tok', options.tokenize ?? '13a'],
          ['smooth', smoothSignature(options)],
        ],
        test,
      ),
  };
}

/** The statistics of one segment that is already split into tokens. */
export function bleuStatistics(hypothesis: readonly string[], references: readonly (readonly string[])[]): number[] {
  const length = hypothesis.length;
  const statistics = [length, closestLength(length, references), ...matchNgrams(hypothesis, references, ORDERS)];
  for (let n = 1; n <= ORDERS; n++) statistics.push(ngramCount(length, n));
  return statistics;
}

/** BLEU from summed statistics. */
export function bleuFromStatistics(sums: ArrayLike<number>, options: BleuOptions = {}): BleuScore {
  const smooth = options.smooth ?? 'exp';
  const smoothValue = options.smoothValue ?? SMOOTH_DEFAULTS[smooth] ?? 0;
  const [systemLength, referenceLength] = [sums[0], sums[1]];
  const counts = Array.from({ length: ORDERS }, (_, n) => sums[2 + n]);
  const totals = Array.from({ length: ORDERS }, (_, n) => sums[2 + ORDERS + n]);
  const precisions = new Array<number>(ORDERS).fill(0);
  const bp = brevityPenalty(systemLength, referenceLength);
  const result = { counts, totals, precisions, bp, systemLength, referenceLength };
  if (counts.every((count) => count === 0)) return { score: 0, ...result };

  let halving = 1;
  let order = ORDERS;
  for (let n = 0; n < ORDERS; n++) {
    if (smooth === 'add-k' && n > 0) {
      counts[n] += smoothValue;
      totals[n] += smoothValue;
    }
    if (totals[n] === 0) break;
    if (options.effectiveOrder) order = n + 1;
    if (counts[n] > 0) precisions[n] = (100 * counts[n]) / totals[n];
    else if (smooth === 'exp') {
      halving *= 2;
      precisions[n] = 100 / (halving * totals[n]);
    } else if (smooth === 'floor') precisions[n] = (100 * smoothValue) / totals[n];
  }
  return { score: bp * geometricMean(precisions.slice(0, order)), ...result };
}

/** The line sacreBLEU prints after the signature. */
export function formatBleu({ score, precisions, bp, systemLength, referenceLength }: BleuScore): string {
  const ratio = referenceLength > 0 ? systemLength / referenceLength : 0;
  const orders = precisions.map((p) => p.toFixed(1)).join('/');
  const lengths = `hyp_len = ${systemLength} ref_len = ${referenceLength}`;
  return `${score.toFixed(2)} ${orders} (BP = ${bp.toFixed(3)} ratio = ${ratio.toFixed(3)} ${lengths})`;
}

const ORDERS = 4;

// Chen & Cherry 2014, as sacreBLEU takes them.
const SMOOTH_DEFAULTS: Readonly<Record<Smoothing, number | undefined>> = {
  exp: undefined,
  floor: 0.1,
  'add-k': 1,
  none: undefined,
};

function brevityPenalty(systemLength: number, referenceLength: number): number {
  if (systemLength >= referenceLength) return 1;
  return systemLength > 0 ? Math.exp(1 - referenceLength / systemLength) : 0;
}

/** exp(mean log): log 0 is a large negative number, so that one empty order makes the product 0. */
function geometricMean(values: readonly number[]): number {
  const logs = values.map((value) => (value === 0 ? -9999999999 : Math.log(value)));
  return Math.exp(logs.reduce((sum, log) => sum + log, 0) / values.length);
}

// Ties go to the shorter reference.
function closestLength(length: number, references: readonly (readonly string[])[]): number {
  if (references.length === 0) throw new InputError('BLEU needs at least one reference for each segment');
  let closest = references[0].length;
  for (const reference of references) {
    const gain = Math.abs(length - closest) - Math.abs(length - reference.length);
    if (gain > 0 || (gain === 0 && reference.length < closest)) closest = reference.length;
  }
  return closest;
}

function smoothSignature(options: BleuOptions): string {
  const smooth = options.smooth ?? 'exp';
  const value = SMOOTH_DEFAULTS[smooth];
  return value === undefined ? smooth : `${smooth}[${(options.smoothValue ?? value).toFixed(2)}]`;
}

/** Options of `multi-bleu.perl`. */
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

/** The score of `multi-bleu.perl` from the summed statistics of segments. */
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
