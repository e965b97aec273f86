import { InputError } from '../../errors.js';
import { huggingFaceTokenizer } from './hugging-face.js';
import { jiebaSegmenter } from './jieba.js';
import { mosesDetokenizer } from './moses-detokenizer.js';
import { type MosesOptions, mosesTokenizer, type Surroundings } from './moses-tokenizer.js';

/**
 * How a line is cut into tokens before byte pair encoding.
 * - `moses`: the rules of the Moses scripts.
 * - `none`: the text is tokenised already; tokens are separated by spaces.
 * - `char`: every character is a token, a space is `▁`.
 * - `jieba`: Chinese words.
 * - `huggingface`: a `tokenizer.json`, which also brings its subword units and vocabulary.
 */
export type TokenizerConfig =
  | ({ readonly kind: 'moses' } & MosesOptions)
  | { readonly kind: 'none' | 'char' | 'jieba' | 'huggingface' };

export type TokenizerKind = TokenizerConfig['kind'];

export interface WordTokenizer {
  /** Tokens of a line, or of a part of it within its surroundings. */
  tokenize(text: string, surroundings: Surroundings): string[];
  /** The line that tokens stand for. */
  join(tokens: readonly string[]): string;
  /** The tokens of this word depend on the word after it. */
  readonly looksAhead: (word: string) => boolean;
  /** In `join`, a token may be glued to the word before it, as a comma is. */
  readonly attaches: boolean;
}

/** `tokenizerJson` is the content of `tokenizer.json`, for `huggingface` alone. */
export async function wordTokenizer(
  config: TokenizerConfig,
  language: string,
  tokenizerJson?: string,
): Promise<WordTokenizer> {
  switch (config.kind) {
    case 'moses': {
      const tokenize = mosesTokenizer(language, config);
      const detokenize = mosesDetokenizer(language);
      return {
        tokenize: (text, surroundings) => splitSpaces(tokenize(text, surroundings)),
        join: (tokens) => detokenize(tokens.join(' ')),
        looksAhead: (word) => /[.']$/.test(word),
        attaches: true,
      };
    }
    case 'none':
      return { tokenize: splitSpaces, join: (tokens) => tokens.join(' '), looksAhead: never, attaches: false };
    case 'char':
      return {
        tokenize: (text, { first }) => {
          const inner = text.trim().replace(/\s+/gu, blankMark);
          return inner === '' ? [] : Array.from(first ? inner : blankMark + inner);
        },
        join: (tokens) => tokens.join('').replaceAll(blankMark, ' '),
        looksAhead: never,
        attaches: true,
      };
    case 'jieba':
      return { tokenize: await jiebaSegmenter(), join: joinChinese, looksAhead: never, attaches: true };
    case 'huggingface': {
      if (tokenizerJson === undefined) throw new InputError('the tokenizer huggingface needs a tokenizer.json');
      const tokenizer = huggingFaceTokenizer(tokenizerJson);
      return {
        tokenize: (text, { first }) => tokenizer.tokenize(first ? text : ` ${text}`),
        join: tokenizer.join,
        looksAhead: never,
        attaches: true,
      };
    }
  }
}

const never = (): boolean => false;
const blankMark = '▁';

function splitSpaces(text: string): string[] {
  return text.split(' ').filter((token) => token !== '');
}

/** Chinese is written without spaces; between two words in Latin letters or digits one is needed. */
function joinChinese(words: readonly string[]): string {
  return words.reduce((line, word) => {
    const gap = /[\p{Script=Latin}\p{Nd}]$/u.test(line) && /^[\p{Script=Latin}\p{Nd}]/u.test(word) ? ' ' : '';
    return line + gap + word;
  }, '');
}
