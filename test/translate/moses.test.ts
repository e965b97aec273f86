import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InputError } from '../../src/errors.js';
import { mosesTokenizer } from '../../src/translate/text/moses-tokenizer.js';
import { lowercase, punctuationNormalizer } from '../../src/translate/text/pipeline.js';
import { mosesDetokenizer } from '../../src/translate/text/tokenizers.js';
import { describeWithShared, readShared, readSharedJson, shared } from '../shared.js';

type Variants = Record<string, { base: string; diff: Record<string, string> }>;

const lines = (text: string): string[] => text.replace(/\n$/, '').split('\n');

describeWithShared('the Moses scripts', () => {
  const variants = readSharedJson<Variants>('vectors/moses/variants.json');
  const file = (name: string): string[] => lines(readShared(`vectors/moses/${name}`));
  const expected = (name: string): string[] => {
    const variant = variants[name];
    if (variant === undefined) return file(name);
    return file(variant.base).map((line, i) => variant.diff[i] ?? line);
  };
  const protectedPatterns = file('protected_patterns.txt');

  for (const language of ['en', 'de']) {
    const tokenize = mosesTokenizer(language);
    const normalize = punctuationNormalizer(language);
    const detokenize = mosesDetokenizer(language);
    const cases: [string, string, (line: string) => string][] = [
      ['tok', 'input', tokenize],
      ['tok_a', 'input', mosesTokenizer(language, { aggressive: true })],
      ['tok_noesc', 'input', mosesTokenizer(language, { escape: false })],
      ['tok_a_noesc', 'input', mosesTokenizer(language, { aggressive: true, escape: false })],
      ['tok_prot', 'input', mosesTokenizer(language, { protectedPatterns })],
      ['detok', 'tok', detokenize],
      ['detok_a', 'tok_a', detokenize],
      ['detok_u', 'tok', mosesDetokenizer(language, { uppercaseFirst: true })],
      ['lower', 'input', lowercase],
      ['normpunct', 'input', normalize],
      ['lc_norm_tok', 'input', (line) => tokenize(normalize(lowercase(line)))],
    ];
    it.each(cases)(`give the same %s.${language} from %s`, (output, input, step) => {
      expect(expected(`${input}.${language}`).map((line) => step(line))).toEqual(expected(`${output}.${language}`));
    });

    it(`reproduce the published tokenisation of the Multi30k validation set in ${language}`, () => {
      const text = (path: string): string[] => lines(gunzipSync(readFileSync(shared(path))).toString('utf8'));
      const raw = text(`data/multi30k/raw/val.${language}.gz`);
      expect(raw.map((line) => tokenize(normalize(lowercase(line))))).toEqual(
        text(`data/multi30k/tok/val.lc.norm.tok.${language}.gz`),
      );
    });
  }
});

describe('the Moses tokeniser', () => {
  it('gives a word in its surroundings the tokens it has in the line', () => {
    const piece = fc.constantFrom(
      'Mr.',
      'No.',
      '5',
      "'tis",
      "dogs'",
      'end.',
      "it's",
      'a,b',
      '5,',
      '"x',
      'y."',
      'Z',
      '...',
      '-',
      'e.g.',
      "ended.'",
      'Ü',
    );
    for (const language of ['en', 'de', 'fr', 'sv']) {
      const tokenize = mosesTokenizer(language);
      fc.assert(
        fc.property(fc.array(piece, { minLength: 1, maxLength: 8 }), (words) => {
          const each = words.map((word, i) => tokenize(word, { first: i === 0, next: words[i + 1] ?? null }).trim());
          expect(each.join(' ')).toBe(tokenize(words.join(' ')).trim());
        }),
      );
    }
  });

  it('loses no visible character', () => {
    const tokenize = mosesTokenizer('en', { escape: false });
    fc.assert(
      fc.property(fc.stringMatching(/^[ -~äöüß“”…中文]{0,40}$/u), (line) => {
        expect(tokenize(line).replaceAll(' ', '')).toBe(line.replaceAll(' ', ''));
      }),
    );
  });

  it('refuses a protected pattern that is not a regular expression', () => {
    expect(() => mosesTokenizer('en', { protectedPatterns: ['(x'] })).toThrow(InputError);
  });
});

// Moses leaves spaces around these marks: "护肩 ， “ 好 ” ！".
it.each([
  ['zh', '一个男孩正在穿戴护肩，“好”！'],
  ['zh', '他用 iPhone 15 拍照（很好）。'],
  ['zh', '两名工人、三名孩子；《书》：好？'],
  ['ja', '犬は「ワン」と言った。はい、そう！'],
])('text in %s is put together again without spaces around its punctuation', (language, line) => {
  const words = mosesTokenizer(language)(line);
  const detokenize = mosesDetokenizer(language);
  expect(detokenize(words)).toBe(line);
  // What has been written stays when more comes.
  const parts = words.split(' ');
  for (let i = 1; i < parts.length; i++) expect(line).toContain(detokenize(parts.slice(0, i).join(' ')));
});
