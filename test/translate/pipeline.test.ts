import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { InputError } from '../../src/errors.js';
import { learnBpe } from '../../src/translate/text/bpe-learning.js';
import { loadLanguages, saveLanguages } from '../../src/translate/text/languages.js';
import { type PipelineConfig, type TextPipeline, textPipeline } from '../../src/translate/text/pipeline.js';
import { huggingFaceTokenizer, type TokenizerConfig } from '../../src/translate/text/tokenizers.js';
import { buildVocabulary } from '../../src/translate/text/vocabulary.js';

const config = (tokenizer: TokenizerConfig, more: Partial<PipelineConfig> = {}): PipelineConfig => ({
  language: 'en',
  lowercase: false,
  normalize: false,
  tokenizer,
  ...more,
});

const codes = learnBpe(
  new Map([
    ['lower', 5],
    ['lowest', 3],
    ['newer', 4],
  ]),
  { symbols: 6 },
);

describe('a text pipeline', () => {
  it('applies lower case, punctuation, tokeniser and byte pair encoding in this order', async () => {
    const pipeline = await textPipeline(
      config({ kind: 'moses' }, { lowercase: true, normalize: true, bpe: { glossaries: ['tom'] } }),
      { codes },
    );
    const tokens = pipeline.encode('“Tom isn’t”');
    expect(pipeline.join(tokens)).toEqual(['&quot;', 'tom', 'isn', '&apos;t', '&quot;']);
    expect(tokens).toContain('tom');
    expect(pipeline.decode(tokens)).toBe('"tom isn\'t"');
  });

  it('passes tokenised text through', async () => {
    const pipeline = await textPipeline(config({ kind: 'none' }));
    expect(pipeline.encode(' a  &apos;s b-c . ')).toEqual(['a', '&apos;s', 'b-c', '.']);
    expect(pipeline.decode(['a', '.'])).toBe('a .');
  });

  it('cuts into characters and back', async () => {
    const pipeline = await textPipeline(config({ kind: 'char' }));
    expect(pipeline.encode('你好 𠮷')).toEqual(['你', '好', '▁', '𠮷']);
    expect(pipeline.decode(['你', '好', '▁', '𠮷'])).toBe('你好 𠮷');
  });

  it('segments Chinese with Jieba and writes it without spaces', async () => {
    const pipeline = await textPipeline(config({ kind: 'jieba' }, { language: 'zh' }));
    // The example of Jieba's own documentation (accurate mode).
    expect(pipeline.encode('我来到北京清华大学')).toEqual(['我', '来到', '北京', '清华大学']);
    expect(pipeline.decode(['我', '用', 'Visual', 'Studio', '。'])).toBe('我用Visual Studio。');
  });

  it('keeps the spaces beside words of another script where Jieba is told to', async () => {
    const pipeline = await textPipeline(config({ kind: 'jieba', spaces: true }, { language: 'zh' }));
    const line = '我用 Python 3.8 写machine learning代码';
    expect(pipeline.encode(line)).toEqual(['我用', '▁', 'Python', '3.8', '▁', '写', 'machine', 'learning', '代码']);
    expect(pipeline.encode('今天 天气 好')).not.toContain('▁');
    const piece = fc.constantFrom(
      '我',
      '代码',
      '，',
      '。',
      'Python',
      '3.8',
      '50%',
      'Zürich',
      "don't",
      '(a)',
      'e\u0301',
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(piece, fc.constantFrom('', ' ')), { maxLength: 9 }), (pieces) => {
        const text = pieces.flat().join('').trim();
        const tokens = pipeline.encode(text);
        // Chinese itself is written without spaces.
        expect(pipeline.decode(tokens)).toBe(text.replace(/(?<=[我代码，。]) (?=[我代码，。])/gu, ''));
        const encoder = pipeline.wordEncoder();
        expect([...text.split(' ').flatMap((word) => encoder.push(word)), ...encoder.end()]).toEqual(tokens);
        expect(byCharacter(pipeline, text).flat()).toEqual(tokens);
        const decoder = pipeline.textDecoder();
        expect(tokens.map((token) => decoder.push(token)).join('') + decoder.end()).toBe(pipeline.decode(tokens));
      }),
    );
  });

  it('reads Chinese by characters and gives the words that Jieba finds in the line, as soon as they are sure', async () => {
    const pipeline = await textPipeline(config({ kind: 'jieba' }, { language: 'zh' }));
    expect(pipeline.byCharacter).toBe(true);
    // 我来, 到北 and 京清 are no beginnings of words in Jieba's dictionary, but 我 and 来到 alone are not sure either: a
    // run of single characters may be a name. 来到 is sure with 北, 北京 with 清; 清华大学 waits for what follows.
    expect(byCharacter(pipeline, '我来到北京清华大学。')).toEqual([
      ...[[], [], [], ['我', '来到'], [], ['北京'], [], [], [], ['清华大学'], ['。']],
    ]);
    // 杭研 is in no dictionary: the hidden Markov model finds it. (Jieba's own documentation.)
    expect(byCharacter(pipeline, '他来到了网易杭研大厦').flat()).toEqual(['他', '来到', '了', '网易', '杭研', '大厦']);

    // Of a long run of single characters nothing is sure before its end; it must not take longer for it than others.
    const began = performance.now();
    expect(byCharacter(pipeline, '啊'.repeat(3000)).flat().join('')).toBe('啊'.repeat(3000));
    expect(performance.now() - began).toBeLessThan(5000);

    // Random text of characters that make words of one to four, some of them only together with the next.
    const character = fc.constantFrom(...'中华人民共和国大学生前来应聘会研究所有的一个男子在T恤3.5%a ，。');
    fc.assert(
      fc.property(fc.array(character, { maxLength: 25 }), (characters) => {
        const line = characters.join('').trim().replaceAll(/ +/g, ' ');
        expect(byCharacter(pipeline, line).flat()).toEqual(pipeline.encode(line));
      }),
      { numRuns: 300 },
    );
  });

  it('encodes a sentence word by word as it encodes the line', async () => {
    const word = fc.constantFrom(
      'Mr.',
      'No.',
      '5',
      "'tis",
      "dogs'",
      'end.',
      "it's",
      'lower,',
      '"newest',
      'x."',
      'etc.',
      '...',
      'U.S.',
      "ended.'",
    );
    for (const language of ['en', 'de', 'fr']) {
      for (const tokenizer of [{ kind: 'moses' }, { kind: 'none' }, { kind: 'char' }] as const) {
        const pipeline = await textPipeline(config(tokenizer, { language, lowercase: true }), { codes });
        fc.assert(
          fc.property(fc.array(word, { maxLength: 8 }), (words) => {
            const encoder = pipeline.wordEncoder();
            const tokens = [...words.flatMap((w) => encoder.push(w)), ...encoder.end()];
            expect(tokens).toEqual(pipeline.encode(words.join(' ')));
          }),
        );
      }
    }
  });

  it('holds a word back only where the next one decides about it', async () => {
    const encoder = (await textPipeline(config({ kind: 'moses' }))).wordEncoder();
    expect(encoder.push('Hello')).toEqual(['Hello']);
    expect(encoder.push('Dr.')).toEqual([]);
    expect(encoder.push('Who')).toEqual(['Dr.', 'Who']);
    expect(encoder.push('there.')).toEqual([]);
    expect(encoder.end()).toEqual(['there', '.']);
  });

  it('writes text while tokens arrive: never inside a word, together the whole line', async () => {
    const pipeline = await textPipeline(config({ kind: 'moses' }), { codes });
    const decoder = pipeline.textDecoder();
    expect(['lo@@', 'wer', ',', '&quot;', 'a@@', 'b', '&quot;', '.'].map((token) => decoder.push(token))).toEqual([
      '',
      'lower',
      ',',
      ' "',
      '',
      'ab',
      '"',
      '.',
    ]);
    expect(decoder.end()).toBe('');
    decoder.push('a@@');
    expect(decoder.end()).toBe('a');
  });

  it('loses no word where the detokeniser joins what is already written', async () => {
    const pipeline = await textPipeline(config({ kind: 'moses' }, { language: 'cs' }));
    const decoder = pipeline.textDecoder();
    const tokens = ['pošli', 'e', '-', 'mail', 'dnes'];
    expect(pipeline.decode(tokens)).toBe('pošli e-mail dnes');
    expect(tokens.map((token) => decoder.push(token)).join('')).toBe('pošli e - mail dnes');
  });

  it('takes a language without rules of its own', async () => {
    const pipeline = await textPipeline(config({ kind: 'moses' }, { language: 'constructor' }));
    expect(pipeline.encode('Mr. X: "ok".')).toEqual(['Mr.', 'X', ':', '&quot;', 'ok', '&quot;', '.']);
  });

  it('handles a line of 10,000 words and a word of 5,000 characters', async () => {
    const pipeline = await textPipeline(config({ kind: 'moses' }, { normalize: true, lowercase: true }), { codes });
    expect(pipeline.words('lower, '.repeat(10_000))).toHaveLength(20_000);
    const word = 'newerlowest'.repeat(455);
    expect(pipeline.join(pipeline.encode(word))).toEqual([word]);
  });
});

describe('a Hugging Face tokenizer', () => {
  const vocab = { '[UNK]': 0, '[PAD]': 1, un: 2, '##happi': 3, '##ness': 4, is: 5 };
  const json = JSON.stringify({
    version: '1.0',
    added_tokens: ['[UNK]', '[PAD]'].map((content, id) => ({
      id,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: { type: 'Lowercase' },
    pre_tokenizer: { type: 'Whitespace' },
    post_processor: null,
    decoder: { type: 'WordPiece', prefix: '##', cleanup: true },
    model: {
      type: 'WordPiece',
      unk_token: '[UNK]',
      continuing_subword_prefix: '##',
      max_input_chars_per_word: 100,
      vocab,
    },
  });

  it('gives its tokens, and a vocabulary in the order of its ids without its special tokens', async () => {
    const { vocabulary } = huggingFaceTokenizer(json);
    expect(vocabulary.tokens.slice(4)).toEqual(['un', '##happi', '##ness', 'is']);
    const pipeline = await textPipeline(config({ kind: 'huggingface' }), { tokenizerJson: json });
    const tokens = pipeline.encode('Unhappiness is');
    expect(tokens).toEqual(['un', '##happi', '##ness', 'is']);
    expect(pipeline.decode(tokens)).toBe('unhappiness is');
    const encoder = pipeline.wordEncoder();
    expect([...encoder.push('Unhappiness'), ...encoder.push('is'), ...encoder.end()]).toEqual(tokens);
  });

  it('is refused when it is not one', () => {
    expect(() => huggingFaceTokenizer('{', 't.json')).toThrow(/^t.json: not JSON/);
    expect(() => huggingFaceTokenizer('{}', 't.json')).toThrow(InputError);
  });
});

describe('the languages of a corpus', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tcts-languages-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  it('are read back as they were saved', () => {
    const vocabulary = buildVocabulary(
      new Map([
        ['lo@@', 4],
        ['wer', 2],
      ]),
    );
    const units = new Map([
      ['lo@@', 4],
      ['wer', 2],
    ]);
    const source = {
      config: config({ kind: 'moses', escape: false }, { bpe: { threshold: 2 } }),
      codes,
      units,
      vocabulary,
    };
    const target = { config: config({ kind: 'char' }, { language: 'zh' }), vocabulary };
    saveLanguages(folder, { source, target });
    const loaded = loadLanguages(folder);
    expect(loaded.source.config).toEqual(source.config);
    expect(loaded.source.codes).toEqual(codes);
    expect(loaded.source.units).toEqual(units);
    expect(loaded.target.config).toEqual(target.config);
    expect(loaded.target.codes).toBeUndefined();
    expect(loaded.target.vocabulary.tokens).toEqual(vocabulary.tokens);
  });

  it('are refused when a file they need is gone', () => {
    rmSync(join(folder, 'units.en'));
    expect(() => loadLanguages(folder)).toThrow(/units\.en: the file is missing/);
    rmSync(join(folder, 'codes.en'));
    expect(() => loadLanguages(folder)).toThrow(/codes\.en: the file is missing/);
  });

  it('are refused with the key that is wrong', () => {
    writeFileSync(join(folder, 'text.json'), JSON.stringify({ source: { language: 'en' }, target: {} }));
    expect(() => loadLanguages(folder)).toThrow(/text\.json: source\.lowercase: /);
  });
});

describe('a prefix of every line', () => {
  it('comes before the tokens of a line with words, whole or word by word, and is no text', async () => {
    const pipeline = await textPipeline(config({ kind: 'none' }, { prefix: ['__en__'] }));
    expect(pipeline.encode('a dog')).toEqual(['__en__', 'a', 'dog']);
    expect(pipeline.encode(' ')).toEqual([]);
    const encoder = pipeline.wordEncoder();
    for (const line of [1, 2]) {
      expect([line, encoder.push('a'), encoder.push('dog'), encoder.end()]).toEqual([
        line,
        ['__en__', 'a'],
        ['dog'],
        [],
      ]);
    }
    expect(pipeline.decode(['__en__', 'a', 'dog'])).toBe('a dog');
    const decoder = pipeline.textDecoder();
    expect(['__en__', 'a', 'dog'].map((token) => decoder.push(token))).toEqual(['', 'a', ' dog']);
  });
});

/** Tokens that each character of a line settles, and its end. */
function byCharacter(pipeline: TextPipeline, line: string): string[][] {
  const encoder = pipeline.wordEncoder();
  const settled = line.split(' ').flatMap((word) => Array.from(word, (character, i) => encoder.push(character, i > 0)));
  return [...settled, encoder.end()];
}
