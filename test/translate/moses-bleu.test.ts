import { expect, it } from 'vitest';
import { formatMultiBleu, multiBleu } from '../../src/metrics/index.js';
import { mosesTokenizer } from '../../src/translate/text/moses-tokenizer.js';
import { corpus } from '../metrics/corpora.js';
import { describeWithShared, readSharedJson } from '../shared.js';

interface Run {
  corpus: string;
  pretok: string;
  lc: boolean;
  stdout: string;
}

describeWithShared('multi-bleu on text that our Moses tokeniser has cut', () => {
  const runs = () => readSharedJson<Run[]>('vectors/bleu/multi_bleu.json').filter(({ pretok }) => pretok === 'moses');

  it('prints what tokenizer.perl and multi-bleu.perl print', () => {
    expect(runs()).toHaveLength(10);
    for (const { corpus: id, lc, stdout } of runs()) {
      const { hyp, refs } = corpus(id);
      // The German corpora are de_mix30 and the system output of WMT17 en-de.
      const tokenize = mosesTokenizer(/^de_|_ende_/.test(id) ? 'de' : 'en');
      const score = multiBleu(
        hyp.map((line) => tokenize(line)),
        refs.map((reference) => reference.map((line) => tokenize(line))),
        { lowercase: lc },
      );
      expect(formatMultiBleu(score), `${id} lc=${lc}`).toBe(stdout);
    }
  });
});
