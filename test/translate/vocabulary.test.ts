import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InputError } from '../../src/errors.js';
import { buildVocabulary, parseVocabulary, special } from '../../src/translate/text/vocabulary.js';

const counts = new Map([
  ['b', 3],
  ['a', 3],
  ['rare', 1],
  ['the', 9],
]);

describe('a vocabulary', () => {
  it('numbers the special tokens as fairseq, then tokens by count, ties in code point order', () => {
    const { tokens } = buildVocabulary(counts);
    expect(tokens).toEqual(['<s>', '<pad>', '</s>', '<unk>', 'the', 'a', 'b', 'rare']);
    expect(special).toEqual({ bos: 0, pad: 1, eos: 2, unk: 3 });
  });

  it('leaves out rare tokens and keeps to a size', () => {
    expect(buildVocabulary(counts, { minCount: 2 }).tokens.slice(4)).toEqual(['the', 'a', 'b']);
    expect(buildVocabulary(counts, { size: 6 }).tokens.slice(4)).toEqual(['the', 'a']);
  });

  it('is filled up to a multiple of the padding factor', () => {
    const { tokens, size } = buildVocabulary(new Map([['x', 1]]), { paddingFactor: 8 });
    expect(size).toBe(8);
    expect(tokens.slice(5)).toEqual(['madeupword0000', 'madeupword0001', 'madeupword0002']);
  });

  it('does not take text for a special token', () => {
    const vocabulary = buildVocabulary(
      new Map([
        ['</s>', 5],
        ['x', 1],
      ]),
    );
    expect([...vocabulary.encode(['</s>', '<pad>', 'x'])]).toEqual([3, 3, 4, 2]);
  });

  it('gives back the tokens it encoded, and the same vocabulary from its dict.txt', () => {
    const token = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 6 })
      .filter((t) => !/[\n\r]/.test(t) && !/^<.*>$/.test(t));
    fc.assert(
      fc.property(fc.array(fc.tuple(token, fc.integer({ min: 1, max: 1e9 })), { maxLength: 20 }), (entries) => {
        const vocabulary = buildVocabulary(new Map(entries));
        const tokens = entries.map(([t]) => t);
        const ids = vocabulary.encode(tokens);
        expect(ids[tokens.length]).toBe(special.eos);
        expect(vocabulary.decode(ids)).toEqual(tokens);
        const again = parseVocabulary(vocabulary.format());
        expect(again.tokens).toEqual(vocabulary.tokens);
        expect(again.format()).toBe(vocabulary.format());
      }),
    );
  });

  it('stops decoding at the end of the sentence and leaves padding out', () => {
    const vocabulary = buildVocabulary(counts);
    expect(vocabulary.decode([0, 4, 3, 1, 5, 2, 6])).toEqual(['the', '<unk>', 'a']);
    expect(() => vocabulary.decode([99])).toThrow(InputError);
  });

  it('splits a line of dict.txt at the last space', () => {
    expect(parseVocabulary('a b 3\n').tokens[4]).toBe('a b');
  });

  it('refuses lines without a count and repeated tokens, naming the line', () => {
    expect(() => parseVocabulary('a 1\nb\n', 'dict.en.txt')).toThrow(/^dict.en.txt:2: expected a token and its count/);
    expect(() => parseVocabulary('a 1\na 2\n', 'd')).toThrow('d:2: the token "a" is already on line 1');
    expect(() => parseVocabulary('<pad> 1\n', 'd')).toThrow('special token');
    expect(parseVocabulary('a 1\na 2 #fairseq:overwrite\n').id('a')).toBe(5);
    const repeated = 'a 1\na 2 #fairseq:overwrite\n</s> 3 #fairseq:overwrite\n';
    expect(parseVocabulary(repeated).format()).toBe(repeated);
  });
});
