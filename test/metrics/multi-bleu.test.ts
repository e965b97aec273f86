import { describe, expect, it } from 'vitest';
import { corpusBleu, formatMultiBleu, multiBleu } from '../../src/metrics/bleu.js';
import { stripEnd, tokenizers } from '../../src/metrics/tokenizers.js';
import { describeWithShared, readSharedJson } from '../shared.js';
import { corpus } from './corpora.js';

interface Run {
  corpus: string;
  pretok: 'raw' | '13a' | 'zh' | 'moses';
  lc: boolean;
  exit: number;
  stdout: string;
  stdout_hp: string;
}

describeWithShared('multi-bleu agrees with the script', () => {
  // The Moses-tokenised runs need a Moses tokeniser, which this layer does not know.
  const runs = () => readSharedJson<Run[]>('vectors/bleu/multi_bleu.json').filter((run) => run.pretok !== 'moses');
  const scored = (run: Run) => {
    const { hyp, refs } = corpus(run.corpus);
    const prepare = (line: string) =>
      run.pretok === '13a' || run.pretok === 'zh' ? tokenizers[run.pretok](stripEnd(line)).join(' ') : line;
    return multiBleu(
      hyp.map(prepare),
      refs.map((reference) => reference.map(prepare)),
      { lowercase: run.lc },
    );
  };

  it('in every figure of every run', () => {
    const finished = runs().filter((run) => run.exit !== 255);
    expect(finished).toHaveLength(256);
    for (const run of finished) {
      const label = `${run.corpus} ${run.pretok} lc=${run.lc}`;
      const [score, precisions, bp, , systemLength, referenceLength] = run.stdout_hp
        .replace(/[A-Za-z_]+ ?=/g, '')
        .replace(/[()]/g, ',')
        .split(/, */)
        .map((field) => field.trim().split('/').map(Number));
      const ours = scored(run);
      expect(ours.score, label).toBeCloseTo(score[0], 8);
      expect(ours.bp, label).toBeCloseTo(bp[0], 10);
      expect([ours.systemLength, ours.referenceLength], label).toEqual([systemLength[0], referenceLength[0]]);
      for (const [n, precision] of precisions.entries()) expect(ours.precisions[n], label).toBeCloseTo(precision, 8);
      expect(formatMultiBleu(ours), label).toBe(run.stdout);
    }
  });

  it('except that it scores 0 where the script dies of empty hypotheses', () => {
    const died = runs().filter((run) => run.exit === 255);
    expect(died).toHaveLength(6);
    for (const run of died) expect(scored(run)).toMatchObject({ score: 0, bp: 0, systemLength: 0 });
  });
});

describe('multi-bleu', () => {
  it('separates words at ASCII white space and lowercases ASCII letters only', () => {
    const spaced = ['eins\u00a0zwei drei\tvier f\u00fcnf sechs'];
    expect(multiBleu(spaced, [spaced])).toMatchObject({ systemLength: 5 });
    expect(corpusBleu(spaced, [spaced], { tokenize: 'none' })).toMatchObject({ systemLength: 6 });
    const match = (hypothesis: string, reference: string) =>
      multiBleu([hypothesis], [[reference]], { lowercase: true }).counts[0];
    expect(match('A B C', 'a b c')).toBe(3);
    expect(match('\u00c4 \u00d6 B', '\u00e4 \u00f6 b')).toBe(1);
  });
});
