import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type BleuOptions,
  bleuMetric,
  corpusBleu,
  formatBleu,
  type Smoothing,
  sentenceBleu,
} from '../../src/metrics/bleu.js';
import type { TokenizerName } from '../../src/metrics/tokenizers.js';
import { describeWithShared, readSharedJson } from '../shared.js';
import { corpus, ourSignature, referencesOf } from './corpora.js';

type Row = [
  id: string,
  tokenize: TokenizerName,
  smooth: Smoothing,
  smoothValue: number | null,
  lowercase: boolean,
  score: number,
  counts: number[],
  totals: number[],
  precisions: number[],
  bp: number,
  systemLength: number,
  referenceLength: number,
  signature: number,
];

describeWithShared('BLEU agrees with sacreBLEU', () => {
  it('on every corpus, tokeniser, smoothing and case of the vectors', () => {
    const { rows, signatures } = readSharedJson<{ rows: Row[]; signatures: string[] }>(
      'vectors/bleu/sacrebleu_corpus.json',
    );
    expect(rows).toHaveLength(1464);
    for (const [id, tokenize, smooth, value, lowercase, score, counts, totals, precisions, bp, sys, ref, sig] of rows) {
      const options: BleuOptions = { tokenize, smooth, smoothValue: value ?? undefined, lowercase };
      const label = `${id} ${JSON.stringify(options)}`;
      const { hyp, refs } = corpus(id);
      const ours = corpusBleu(hyp, refs, options);
      expect(ours.score, label).toBeCloseTo(score, 9);
      expect(ours.bp, label).toBeCloseTo(bp, 12);
      expect([ours.counts, ours.totals], label).toEqual([counts, totals]);
      expect([ours.systemLength, ours.referenceLength], label).toEqual([sys, ref]);
      for (const [n, precision] of precisions.entries()) expect(ours.precisions[n], label).toBeCloseTo(precision, 9);
      expect(bleuMetric(options).signature(refs.length), label).toBe(ourSignature(signatures[sig]));
    }
  });

  it('in the line it prints', () => {
    interface Run {
      corpus: string;
      command: string;
      stdout: { score: number; verbose_score: string };
    }
    const runs = readSharedJson<Run[]>('vectors/bleu/sacrebleu_cli.json');
    expect(runs).toHaveLength(9);
    for (const { corpus: id, command, stdout } of runs) {
      const flag = (name: string) => command.split(' ').at(command.split(' ').indexOf(name) + 1);
      const options: BleuOptions = {
        tokenize: flag('-tok') as TokenizerName,
        lowercase: command.includes('-lc'),
        smooth: command.includes(' -s ') ? (flag('-s') as Smoothing) : 'exp',
      };
      const ours = corpusBleu(corpus(id).hyp, corpus(id).refs, options);
      expect(ours.score, command).toBeCloseTo(stdout.score, 7);
      expect(formatBleu(ours), command).toBe(`${ours.score.toFixed(2)} ${stdout.verbose_score}`);
    }
  });

  it('on single sentences, with and without effective order', () => {
    interface Sentence {
      corpus: string;
      line: number;
      tok: TokenizerName;
      bleu: { score: number; counts: number[]; totals: number[]; bp: number; sys_len: number; ref_len: number };
      bleu_no_eff: number;
      bleu_smooth_none_eff: number;
    }
    const { rows } = readSharedJson<{ rows: Sentence[] }>('vectors/bleu/sacrebleu_sentence.json');
    expect(rows).toHaveLength(442);
    for (const row of rows) {
      const label = `${row.corpus}:${row.line}`;
      const hypothesis = corpus(row.corpus).hyp[row.line];
      const references = referencesOf(corpus(row.corpus), row.line);
      const score = (options: BleuOptions) =>
        sentenceBleu(hypothesis, references, { tokenize: row.tok, ...options }).score;
      const ours = sentenceBleu(hypothesis, references, { tokenize: row.tok });
      expect(ours.score, label).toBeCloseTo(row.bleu.score, 9);
      expect([ours.counts, ours.totals], label).toEqual([row.bleu.counts, row.bleu.totals]);
      expect([ours.systemLength, ours.referenceLength], label).toEqual([row.bleu.sys_len, row.bleu.ref_len]);
      expect(score({ effectiveOrder: false }), label).toBeCloseTo(row.bleu_no_eff, 9);
      expect(score({ smooth: 'none' }), label).toBeCloseTo(row.bleu_smooth_none_eff, 9);
    }
  });
});

describe('BLEU', () => {
  const word = fc.constantFrom('a', 'b', 'c', 'd', 'the', 'cat', '.');
  const sentence = fc.array(word, { minLength: 4, maxLength: 12 }).map((words) => words.join(' '));
  const pair = fc.record({ hypothesis: sentence, reference: sentence });
  const pairs = fc.array(pair, { minLength: 1, maxLength: 8 });

  it('is the geometric mean of the precisions times the brevity penalty', () => {
    // "a b c d e" against "a b c d f g": 4/5, 3/4, 2/3, 1/2, product 1/5; lengths 5 and 6, so BP = e^(1 − 6/5).
    const { score, precisions, bp } = corpusBleu(['a b c d e'], [['a b c d f g']]);
    expect(precisions.map((p) => p / 100)).toEqual([4 / 5, 3 / 4, expect.closeTo(2 / 3, 12), 1 / 2]);
    expect(bp).toBeCloseTo(Math.exp(-0.2), 14);
    expect(score).toBeCloseTo(100 * Math.exp(-0.2) * 0.2 ** 0.25, 10);
  });

  it('of a corpus with itself is 100', () => {
    fc.assert(
      fc.property(fc.array(sentence, { minLength: 1, maxLength: 8 }), (lines) => {
        expect(corpusBleu(lines, [lines]).score).toBeCloseTo(100, 10);
      }),
    );
  });

  it('lies between 0 and 100 and does not depend on the order of the segments', () => {
    fc.assert(
      fc.property(pairs, fc.integer({ min: 0, max: 7 }), (segments, turn) => {
        const turned = [...segments.slice(turn), ...segments.slice(0, turn)];
        const score = (list: typeof segments) =>
          corpusBleu(
            list.map((segment) => segment.hypothesis),
            [list.map((segment) => segment.reference)],
          ).score;
        expect(score(turned)).toBe(score(segments));
        expect(score(segments)).toBeGreaterThanOrEqual(0);
        expect(score(segments)).toBeLessThanOrEqual(100 + 1e-9);
      }),
    );
  });

  it('does not change when a reference is given twice', () => {
    fc.assert(
      fc.property(pairs, (segments) => {
        const hypotheses = segments.map((segment) => segment.hypothesis);
        const references = segments.map((segment) => segment.reference);
        expect(corpusBleu(hypotheses, [references, references])).toEqual(corpusBleu(hypotheses, [references]));
      }),
    );
  });

  it('refuses references that do not match the hypotheses, with both counts', () => {
    expect(() => corpusBleu(['a', 'b', 'c'], [['a', 'b']])).toThrow(
      'reference 1 has 2 segments, the hypothesis 3: expected the same number',
    );
    expect(() => corpusBleu(['a'], [])).toThrow('at least one reference');
  });
});
