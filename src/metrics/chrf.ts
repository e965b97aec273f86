import { InputError } from '../errors.js';
import { corpusScore, formatSignature, matchNgrams, ngramCount, type SegmentMetric } from './segments.js';
import { splitWords, withoutSpaces } from './tokenizers.js';

/** How chrF is computed; the defaults are sacreBLEU's, and give chrF2. */
export interface ChrfOptions {
  /** Longest n-gram of characters. Default 6. */
  readonly characterOrder?: number;
  /** Longest n-gram of words; 2 gives chrF++. Default 0. */
  readonly wordOrder?: number;
  /** Recall counts β² times as much as precision. Default 2. */
  readonly beta?: number;
  /** Default false. */
  readonly lowercase?: boolean;
  /** Count white space as characters. Default false. */
  readonly whitespace?: boolean;
  /** Average F over all orders with ε for empty ones (chrF++.py) instead of over the orders that exist. Default false. */
  readonly epsilonSmoothing?: boolean;
}

/**
 * chrF of a corpus, 0 … 100 (Popović 2015, 2017), as sacreBLEU computes it: precision and recall of character (and
 * word) n-grams averaged over orders, then
 *
 *     chrFβ = (1 + β²) · P · R / (β² · P + R).
 *
 * Of several references the one with the best score of the segment counts. Characters are code points.
 *
 * @param references `references[k][i]` is the k-th reference of segment i
 */
export function corpusChrf(
  hypotheses: readonly string[],
  references: readonly (readonly string[])[],
  options: ChrfOptions = {},
): number {
  return corpusScore(chrfMetric(options), hypotheses, references);
}

/** chrF of one sentence, 0 … 100. */
export function sentenceChrf(hypothesis: string, references: readonly string[], options: ChrfOptions = {}): number {
  const metric = chrfMetric(options);
  return metric.score(metric.measure(hypothesis, references));
}

/** Statistics of a segment: for each order n-grams of the hypothesis, n-grams of the reference, matches. */
export function chrfMetric(options: ChrfOptions = {}): SegmentMetric {
  const characterOrder = options.characterOrder ?? 6;
  const wordOrder = options.wordOrder ?? 0;
  const beta = options.beta ?? 2;
  const score = (sums: ArrayLike<number>) => fScore(sums, beta, options.epsilonSmoothing ?? false);
  return {
    name: `chrF${beta}${'+'.repeat(wordOrder)}`,
    lowerIsBetter: false,
    width: 3 * (characterOrder + wordOrder),
    measure(hypothesis, references) {
      const cased = (line: string) => (options.lowercase ? line.toLowerCase() : line);
      const characters = (line: string) => Array.from(options.whitespace ? line : withoutSpaces(line));
      const ours = cased(hypothesis);
      let best: number[] | undefined;
      let bestScore = -1;
      for (const reference of references.map(cased)) {
        const statistics = compare(characters(ours), characters(reference), characterOrder);
        if (wordOrder > 0) statistics.push(...compare(words(ours), words(reference), wordOrder));
        const f = references.length === 1 ? 0 : score(statistics);
        if (f > bestScore) {
          best = statistics;
          bestScore = f;
        }
      }
      if (best === undefined) throw new InputError('chrF needs at least one reference for each segment');
      return best;
    },
    score,
    signature: (references, test) =>
      formatSignature(
        references,
        [
          ['case', options.lowercase ? 'lc' : 'mixed'],
          ['eff', options.epsilonSmoothing ? 'no' : 'yes'],
          ['nc', characterOrder],
          ['nw', wordOrder],
          ['space', options.whitespace ? 'yes' : 'no'],
        ],
        test,
      ),
  };
}

function compare<Symbol>(hypothesis: readonly Symbol[], reference: readonly Symbol[], orders: number): number[] {
  return matchNgrams(hypothesis, [reference], orders).flatMap((matches, index) => {
    const expected = ngramCount(reference.length, index + 1);
    // An order the reference does not have is not held against the hypothesis.
    return [expected > 0 ? ngramCount(hypothesis.length, index + 1) : 0, expected, matches];
  });
}

const PUNCTUATION = /[!-/:-@[-`{-~]/;

// chrF++.py: one ASCII punctuation mark is cut off the end of a word, else off its beginning.
function words(line: string): string[] {
  return splitWords(line).flatMap((word) => {
    if (Array.from(word).length === 1) return [word];
    if (PUNCTUATION.test(word[word.length - 1])) return [word.slice(0, -1), word[word.length - 1]];
    if (PUNCTUATION.test(word[0])) return [word[0], word.slice(1)];
    return [word];
  });
}

const EPSILON = 1e-16;

function fScore(sums: ArrayLike<number>, beta: number, epsilonSmoothing: boolean): number {
  const factor = beta ** 2;
  const orders = sums.length / 3;
  let [total, precisions, recalls, effective] = [0, 0, 0, 0];
  for (let n = 0; n < orders; n++) {
    const [ours, theirs, matches] = [sums[3 * n], sums[3 * n + 1], sums[3 * n + 2]];
    const precision = ours > 0 ? matches / ours : EPSILON;
    const recall = theirs > 0 ? matches / theirs : EPSILON;
    const weighted = factor * precision + recall;
    total += weighted > 0 ? ((1 + factor) * precision * recall) / weighted : EPSILON;
    if (ours > 0 && theirs > 0) {
      precisions += precision;
      recalls += recall;
      effective++;
    }
  }
  if (epsilonSmoothing) return (100 * total) / orders;
  if (precisions + recalls === 0) return 0;
  const [precision, recall] = [precisions / effective, recalls / effective];
  return (100 * (1 + factor) * precision * recall) / (factor * precision + recall);
}
