import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { InputError } from '../../src/errors.js';
import { loadLanguages, saveLanguages } from '../../src/translate/text/languages.js';
import { textPipeline } from '../../src/translate/text/pipeline.js';
import { sentencePieceTokenizer } from '../../src/translate/text/sentencepiece.js';

interface Vectors {
  readonly lines: readonly string[];
  readonly models: Readonly<
    Record<string, { readonly model: string; readonly pieces: readonly string[]; readonly decoded: readonly string[] }>
  >;
}

const { lines, models } = JSON.parse(
  readFileSync(new URL('../vectors/sentencepiece.json', import.meta.url), 'utf8'),
) as Vectors;
const modelOf = (name: string): Uint8Array => new Uint8Array(Buffer.from(models[name].model, 'base64'));
const config = {
  language: 'en',
  lowercase: false,
  normalize: false,
  tokenizer: { kind: 'sentencepiece' },
} as const;

describe.each([
  ['unigram', 'uni'],
  ['byte pair encoding with bytes for unknown characters', 'bpe'],
  ['unigram with spaces at the ends of words', 'suf'],
  ['unigram with rules of normalisation', 'map'],
])('a SentencePiece model: %s', (_, name) => {
  const tokenizer = sentencePieceTokenizer(modelOf(name));

  it('gives the pieces of spm_encode', () => {
    for (const [i, line] of lines.entries()) expect(tokenizer.tokenize(line).join(' ')).toBe(models[name].pieces[i]);
  });

  it('gives the text of spm_decode', () => {
    for (const [i, decoded] of models[name].decoded.entries()) {
      const pieces = models[name].pieces[i].split(' ').filter((piece) => piece !== '');
      // A space at the end of the last word is the model's, not the text's.
      expect(tokenizer.join(pieces)).toBe(name === 'suf' ? decoded.replace(/ $/, '') : decoded);
    }
  });

  it('gives the same word by word and in a line, written piece by piece and at once', async () => {
    const pipeline = await textPipeline(config, { sentencePiece: modelOf(name) });
    const text = fc
      .array(fc.constantFrom(...'ab eo thn-w 犬ẞ☃A<sep>😀\t'), { maxLength: 30 })
      .map((characters) => characters.join(''));
    fc.assert(
      fc.property(text, (line) => {
        const whole = pipeline.encode(line);
        const encoder = pipeline.wordEncoder();
        const words = line.split(/\s+/u).filter((word) => word !== '');
        expect([...words.flatMap((word) => encoder.push(word)), ...encoder.end()]).toEqual(whole);
        const decoder = pipeline.textDecoder();
        const written = whole.map((piece) => decoder.push(piece)).join('') + decoder.end();
        expect(written).toBe(pipeline.decode(whole));
      }),
      { numRuns: 200 },
    );
  });

  it('is refused when it is cut off, and never read beyond its end', () => {
    const bytes = modelOf(name);
    const cuts = fc.record({ length: fc.nat({ max: bytes.length - 1 }), at: fc.nat(), byte: fc.nat({ max: 255 }) });
    fc.assert(
      fc.property(cuts, ({ length, at, byte }) => {
        const damaged = bytes.slice(0, length);
        if (length > 0) damaged[at % length] = byte;
        try {
          sentencePieceTokenizer(damaged, 'm.model').tokenize('wait for it');
        } catch (error) {
          expect(error).toBeInstanceOf(InputError);
        }
      }),
      { numRuns: 300 },
    );
    expect(() => sentencePieceTokenizer(new Uint8Array(), 'm.model')).toThrow(
      'm.model: not a SentencePiece model: it has no pieces',
    );
  });
});

describe('the vocabulary of a SentencePiece model', () => {
  it('has its pieces in their order, without its special symbols, and knows what spm_encode gives', () => {
    const { vocabulary, tokenize } = sentencePieceTokenizer(modelOf('uni'));
    // spm_train puts <unk>, <s>, </s> first, then symbols of the user's own, then pieces by score.
    expect(vocabulary.tokens.slice(4, 6)).toEqual(['<sep>', '▁']);
    expect(tokenize(lines[0]).map((piece) => vocabulary.id(piece))).not.toContain(3);
    expect(vocabulary.id('☃')).toBe(3);
  });
});

describe('languages with a SentencePiece model', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tcts-spm-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  it('are saved and loaded with it', async () => {
    const side = (language: string, name: string) => ({
      config: { ...config, language },
      sentencePiece: modelOf(name),
      vocabulary: sentencePieceTokenizer(modelOf(name)).vocabulary,
    });
    saveLanguages(folder, { source: side('en', 'uni'), target: side('de', 'bpe') });
    const { target } = loadLanguages(folder);
    const pipeline = await textPipeline(target.config, target);
    expect(pipeline.encode(lines[6]).join(' ')).toBe(models.bpe.pieces[6]);
    rmSync(join(folder, 'spm.de.model'));
    expect(() => loadLanguages(folder)).toThrow('spm.de.model: the file is missing, text.json refers to it');
  });
});
