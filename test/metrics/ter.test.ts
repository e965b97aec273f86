import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { corpusTer, editCount, sentenceTer, type TercomOptions, terMetric } from '../../src/metrics/ter.js';
import { describeWithShared, readSharedJson } from '../shared.js';
import { corpus, ourSignature, referencesOf } from './corpora.js';

const variants: Record<string, TercomOptions> = {
  TER: {},
  TER_norm: { normalized: true },
  TER_cs: { caseSensitive: true },
  TER_nopunct: { noPunctuation: true },
  TER_asian_norm: { normalized: true, asian: true },
};

describeWithShared('TER agrees with sacreBLEU', () => {
  it('on every corpus and variant of the vectors', () => {
    const rows = readSharedJson<{ corpus: string; metric: string; score: number; signature: string }[]>(
      'vectors/bleu/sacrebleu_chrf_ter_corpus.json',
    ).filter((row) => row.metric in variants);
    expect(rows).toHaveLength(5 * 61);
    for (const { corpus: id, metric, score, signature } of rows) {
      const { hyp, refs } = corpus(id);
      expect(corpusTer(hyp, refs, variants[metric]), `${id} ${metric}`).toBeCloseTo(score, 9);
      expect(terMetric(variants[metric]).signature(refs.length)).toBe(ourSignature(signature));
    }
  });

  it('on single sentences', () => {
    const { rows } = readSharedJson<{ rows: { corpus: string; line: number; ter: number }[] }>(
      'vectors/bleu/sacrebleu_sentence.json',
    );
    for (const row of rows) {
      const references = referencesOf(corpus(row.corpus), row.line);
      const ours = sentenceTer(corpus(row.corpus).hyp[row.line], references);
      expect(ours, `${row.corpus}:${row.line}`).toBeCloseTo(row.ter, 9);
    }
  });
});

describe('the edits of TER', () => {
  const words = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 12 });

  it('count a moved run of words as one', () => {
    // Without shifts: three deletions and three insertions, or five substitutions.
    expect(editCount('d e f a b'.split(' '), 'a b d e f'.split(' '))).toBe(1);
    expect(editCount('a b c'.split(' '), 'a x c d'.split(' '))).toBe(2);
  });

  it('never exceed the Levenshtein distance nor fall below the difference in length', () => {
    fc.assert(
      fc.property(words, words, (hypothesis, reference) => {
        const edits = editCount(hypothesis, reference);
        expect(edits).toBeLessThanOrEqual(levenshtein(hypothesis, reference));
        expect(edits).toBeGreaterThanOrEqual(Math.abs(hypothesis.length - reference.length));
      }),
    );
  });

  it('are none for equal words', () => {
    fc.assert(fc.property(words, (sentence) => editCount(sentence, sentence) === 0));
  });

  it.each([
    [1000, 1000],
    [4000, 4000],
    [10, 5000],
    [5000, 10],
  ])(
    'are found in bounded time and memory for %i against %i words in random order',
    (length, referenceLength) => {
      const words = (n: number, step: number) => Array.from({ length: n }, (_, i) => `w${(i * step) % 300}`);
      const edits = editCount(words(length, 7919), words(referenceLength, 104_729));
      expect(edits).toBeGreaterThanOrEqual(Math.abs(length - referenceLength));
      expect(edits).toBeLessThanOrEqual(Math.max(length, referenceLength));
    },
    30_000,
  );
});

// The textbook recursion, row by row.
function levenshtein(a: readonly string[], b: readonly string[]): number {
  let row = b.map((_, j) => j + 1);
  row.unshift(0);
  for (const [i, x] of a.entries()) {
    const next = [i + 1];
    for (const [j, y] of b.entries()) next.push(Math.min(row[j] + (x === y ? 0 : 1), row[j + 1] + 1, next[j] + 1));
    row = next;
  }
  return row[b.length];
}
