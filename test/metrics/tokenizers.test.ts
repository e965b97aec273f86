import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { splitWords, stripEnd, TOKENIZER_NAMES, tokenizers } from '../../src/metrics/tokenizers.js';
import { describeWithShared, readSharedJson } from '../shared.js';
import { corpus } from './corpora.js';

describeWithShared('the tokenisers agree with sacreBLEU', () => {
  interface Row {
    corpus: string;
    /** `hyp`, `ref0`, `ref1` … */
    side: string;
    line: number;
    tok13a: string;
    zh: string;
    intl: string;
    char?: string;
  }

  it('on every line of the vectors', () => {
    const rows = readSharedJson<Row[]>('vectors/bleu/sacrebleu_tokenized.json');
    expect(rows).toHaveLength(808);
    for (const row of rows) {
      const { hyp, refs } = corpus(row.corpus);
      const line = stripEnd(row.side === 'hyp' ? hyp[row.line] : refs[Number(row.side.slice(3))][row.line]);
      const label = `${row.corpus} ${row.side} ${row.line}`;
      expect(tokenizers['13a'](line), label).toEqual(splitWords(row.tok13a));
      expect(tokenizers.zh(line), label).toEqual(splitWords(row.zh));
      expect(tokenizers.intl(line), label).toEqual(splitWords(row.intl));
      if (row.char !== undefined) expect(tokenizers.char(line), label).toEqual(splitWords(row.char));
    }
  });
});

describe('a tokeniser', () => {
  const scalar = fc
    .integer({ min: 0, max: 0x10ffff })
    .filter((code) => code < 0xd800 || code > 0xdfff)
    .map((code) => String.fromCodePoint(code));
  const telling = fc.constantFrom(...'aZ09.,-&;<> \t\u00a0\u3000\u0085中“”€…，\u{20000}');
  const line = fc.string({ unit: fc.oneof(telling, telling, scalar) });

  it('never gives an empty token or one with white space, whatever the line', () => {
    fc.assert(
      fc.property(line, fc.constantFrom(...TOKENIZER_NAMES), (text, name) => {
        expect(tokenizers[name](text).filter((token) => splitWords(token)[0] !== token)).toEqual([]);
      }),
    );
  });

  it('splits on the white space of Python, not of JavaScript', () => {
    expect(tokenizers.none('a\u0085b\u001cc\u00a0d\u3000e\u2028f')).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
    expect(tokenizers.none('a\ufeffb\u200bc')).toEqual(['a\ufeffb\u200bc']);
  });
});
