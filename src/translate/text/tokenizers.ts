import { Tokenizer } from '@huggingface/tokenizers';
import { InputError } from '../../errors.js';
import { mosesDetokenizer } from './moses-detokenizer.js';
import { type MosesOptions, mosesTokenizer, type Surroundings } from './moses-tokenizer.js';
import { sentencePieceTokenizer } from './sentencepiece.js';
import { Vocabulary } from './vocabulary.js';

/**
 * How a line is cut into tokens before byte pair encoding.
 * - `moses`: the rules of the Moses scripts.
 * - `none`: the text is tokenised already; tokens are separated by spaces.
 * - `char`: every character is a token, a space is `▁`.
 * - `jieba`: Chinese words.
 * - `huggingface`: a `tokenizer.json`, which also brings its subword units and vocabulary.
 * - `sentencepiece`: a `.model` of SentencePiece, which brings the same.
 */
export type TokenizerConfig =
  | ({ readonly kind: 'moses' } & MosesOptions)
  | { readonly kind: 'none' | 'char' | 'jieba' | 'huggingface' | 'sentencepiece' };

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

/** What tokenisers of other tools need: the content of `tokenizer.json`, of a `.model`. */
export interface TokenizerFiles {
  readonly tokenizerJson?: string;
  readonly sentencePiece?: Uint8Array;
}

export async function wordTokenizer(
  config: TokenizerConfig,
  language: string,
  { tokenizerJson, sentencePiece }: TokenizerFiles = {},
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
    case 'sentencepiece': {
      if (sentencePiece === undefined) throw new InputError('the tokenizer sentencepiece needs a .model');
      const { tokenize, join } = sentencePieceTokenizer(sentencePiece);
      return {
        // Words arrive between white space of any kind.
        tokenize: (text, { first, next }) => tokenize(text.replace(/\s/gu, ' '), { first, last: next === null }),
        join,
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

/** Chinese word segmentation with Jieba's dictionary and its hidden Markov model for unknown words. */
export async function jiebaSegmenter(): Promise<(text: string) => string[]> {
  const { Jieba, dict } = await loadJieba();
  const jieba = Jieba.withDict(dict);
  return (text) => jieba.cut(text, true).filter((word) => word.trim() !== '');
}

async function loadJieba() {
  try {
    const [{ Jieba }, { dict }] = await Promise.all([import('@node-rs/jieba'), import('@node-rs/jieba/dict.js')]);
    return { Jieba, dict };
  } catch {
    throw new InputError('segmenting Chinese needs the optional package @node-rs/jieba: npm install @node-rs/jieba@2');
  }
}

/** A tokenizer that was trained elsewhere and stored as `tokenizer.json`. */
export interface HuggingFaceTokenizer {
  tokenize(text: string): string[];
  join(tokens: readonly string[]): string;
  /**
   * Its tokens in the order of its ids. Its own special tokens are replaced by ours; tokens with a line break cannot
   * occur in a line and are left out.
   */
  readonly vocabulary: Vocabulary;
}

export function huggingFaceTokenizer(json: string, file = 'tokenizer.json'): HuggingFaceTokenizer {
  const tokenizer = parseTokenizer(json, file);
  const specialTokens = new Set<string>();
  for (const token of tokenizer.get_added_tokens_decoder().values())
    if (token.special) specialTokens.add(token.content);
  const entries = [...tokenizer.get_vocab(true)]
    .filter(([token]) => token !== '' && !specialTokens.has(token) && !/[\n\r]/.test(token) && !ownSpecial.has(token))
    .sort(([, a], [, b]) => a - b)
    .map(([token]): [string, number] => [token, 0]);
  return {
    tokenize: (text) => tokenizer.tokenize(text, { add_special_tokens: false }),
    join: (tokens) => {
      const ids = tokens.flatMap((token) => tokenizer.token_to_id(token) ?? []);
      return ids.length === 0 ? '' : tokenizer.decode(ids, { skip_special_tokens: true });
    },
    vocabulary: new Vocabulary(entries),
  };
}

const ownSpecial = new Set(['<s>', '<pad>', '</s>', '<unk>']);

function parseTokenizer(json: string, file: string): Tokenizer {
  let content: unknown;
  try {
    content = JSON.parse(json);
  } catch (error) {
    throw new InputError(`not JSON: ${(error as Error).message}`, { file });
  }
  const model = (content as { model?: { type?: unknown } } | null)?.model;
  if (typeof model !== 'object' || model === null) {
    throw new InputError('expected a Hugging Face tokenizer.json with a `model`', { file });
  }
  try {
    return new Tokenizer(content as object, {});
  } catch (error) {
    throw new InputError(`the tokenizer cannot be used: ${(error as Error).message}`, { file });
  }
}
