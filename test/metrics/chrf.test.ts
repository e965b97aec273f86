import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ChrfOptions, chrfMetric, corpusChrf, sentenceChrf } from '../../src/metrics/chrf.js';
import { describeWithShared, readSharedJson } from '../shared.js';
import { corpus, ourSignature, referencesOf } from './corpora.js';

const variants: Record<string, ChrfOptions> = {
  chrF2: {},
  'chrF2++': { wordOrder: 2 },
  chrF2_ws: { whitespace: true },
  chrF2_lc: { lowercase: true },
  chrF2_eps: { epsilonSmoothing: true },
  chrF1: { beta: 1 },
};

describeWithShared('chrF agrees with sacreBLEU', () => {
  it('on every corpus and variant of the vectors', () => {
    const rows = readSharedJson<{ corpus: string; metric: string; score: number; signature: string }[]>(
      'vectors/bleu/sacrebleu_chrf_ter_corpus.json',
    ).filter((row) => row.metric in variants);
    expect(rows).toHaveLength(6 * 61);
    for (const { corpus: id, metric, score, signature } of rows) {
      const { hyp, refs } = corpus(id);
      expect(corpusChrf(hyp, refs, variants[metric]), `${id} ${metric}`).toBeCloseTo(score, 9);
      expect(chrfMetric(variants[metric]).signature(refs.length)).toBe(ourSignature(signature));
    }
  });

  it('on single sentences', () => {
    const { rows } = readSharedJson<{ rows: { corpus: string; line: number; chrf: number; chrfpp: number }[] }>(
      'vectors/bleu/sacrebleu_sentence.json',
    );
    for (const row of rows) {
      const hypothesis = corpus(row.corpus).hyp[row.line];
      const references = referencesOf(corpus(row.corpus), row.line);
      const label = `${row.corpus}:${row.line}`;
      expect(sentenceChrf(hypothesis, references), label).toBeCloseTo(row.chrf, 9);
      expect(sentenceChrf(hypothesis, references, { wordOrder: 2 }), label).toBeCloseTo(row.chrfpp, 9);
    }
  });
});

describe('chrF', () => {
  it('weighs recall β² times as much as precision', () => {
    // Characters "ab" against "abcd", order 1 only: P = 1, R = 1/2.
    const score = (beta: number) => sentenceChrf('ab', ['abcd'], { characterOrder: 1, beta });
    expect(score(1)).toBeCloseTo((100 * 2 * 0.5) / 1.5, 12);
    expect(score(2)).toBeCloseTo((100 * 5 * 0.5) / (4 + 0.5), 12);
  });

  it('of any text with itself is 100, white space aside', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (line) => {
        fc.pre(/[^\s\p{C}]/u.test(line));
        expect(sentenceChrf(line, [` ${line}`])).toBeCloseTo(100, 10);
      }),
    );
  });

  it('is named by its β and its word order', () => {
    expect(chrfMetric({}).name).toBe('chrF2');
    expect(chrfMetric({ beta: 3, wordOrder: 2 }).name).toBe('chrF3++');
  });
});
