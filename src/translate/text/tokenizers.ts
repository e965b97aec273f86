import { Tokenizer } from '@huggingface/tokenizers';
import { InputError } from '../../errors.js';
import { latencyUnit } from '../../metrics/tokenizers.js';
import { type ArrivingChinese, chineseSegmenter, joinChinese } from './jieba.js';
import { type MosesOptions, mosesTokenizer, type Surroundings } from './moses-tokenizer.js';
import { sentencePieceTokenizer } from './sentencepiece.js';
import { Vocabulary } from './vocabulary.js';

/**
 * How a line is split into tokens before byte pair encoding.
 * - `moses`: the rules of the Moses scripts.
 * - `none`: the text is already tokenised; tokens are separated by spaces.
 * - `char`: every character is a token, a space is `▁`.
 * - `jieba`: Chinese words; with `spaces`, a space next to a word of another script is `▁`, otherwise it is lost.
 * - `huggingface`: a `tokenizer.json`, which includes its subword units and vocabulary.
 * - `sentencepiece`: a SentencePiece `.model`, which includes the same.
 */
export type TokenizerConfig =
  | ({ readonly kind: 'moses' } & MosesOptions)
  | { readonly kind: 'jieba'; readonly spaces?: boolean }
  | { readonly kind: 'none' | 'char' | 'huggingface' | 'sentencepiece' };

export type TokenizerKind = TokenizerConfig['kind'];

export interface WordTokenizer {
  /** Tokens of a line, or of a part of it within its surroundings. */
  tokenize(text: string, surroundings: Surroundings): string[];
  /** The line represented by tokens. */
  join(tokens: readonly string[]): string;
  /** The tokens of this word depend on the word after it. */
  readonly looksAhead: (word: string) => boolean;
  /** Tokens of a line whose characters arrive one by one, where words depend on what comes after them. */
  readonly arriving?: () => ArrivingChinese;
  /** In `join`, a token such as a comma may be attached to the previous word. */
  readonly attaches: boolean;
}

/** Data for other tools' tokenisers: the content of `tokenizer.json` or a `.model`. */
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
        join: (tokens) => {
          const text = tokens.join('').replaceAll(blankMark, ' ');
          // Elsewhere a space at the end says that a word is complete.
          return latencyUnit(language) === 'char' ? text.trim() : text;
        },
        looksAhead: never,
        attaches: true,
      };
    case 'jieba': {
      const { cut, arriving } = await chineseSegmenter(config);
      return {
        tokenize: (text, { previous }) => cut(text, previous),
        arriving,
        join: joinChinese,
        looksAhead: never,
        attaches: true,
      };
    }
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
        // Words are separated by any white space.
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

export interface DetokenizerOptions {
  /** Make the first letter of the sentence upper case. Default false. */
  readonly uppercaseFirst?: boolean;
}

/**
 * The rules of Moses' detokenizer.perl for a language: entities and `@-@` are undone, punctuation moves to its
 * word, quotes open and close alternately. It works from left to right, so the text of the first words of a sentence
 * is the beginning of the text of the sentence (contractions of French and Italian and dashed words of Czech look one
 * or two words ahead).
 *
 * Unlike in Moses, which treats the punctuation of Chinese and Japanese as words of another script and leaves spaces around
 * it, there are no spaces around that of these two languages.
 */
export function mosesDetokenizer(language: string, options: DetokenizerOptions = {}): (line: string) => string {
  const joins = joinRules(language);
  return (line) => {
    if (/^<.+>$/u.test(line) || /^\s*$/u.test(line)) return line;
    const text = attach(unescapeEntities(` ${line} `).replace(/ +$/, '').split(' '), joins, language)
      .replace(/ +/g, ' ')
      .replace(/^ | $/g, '');
    return options.uppercaseFirst ? text.replace(firstLetter, (found) => found.toUpperCase()) : text;
  };
}

const firstLetter = /^[\p{P}$+<=>^`|~\s]*\p{Alphabetic}/u;

const entities: readonly (readonly [RegExp, string])[] = [
  [/ @-@ /g, '-'],
  [/&bar;|&#124;/g, '|'],
  [/&lt;/g, '<'],
  [/&gt;/g, '>'],
  [/&bra;/g, '['],
  [/&ket;/g, ']'],
  [/&quot;/g, '"'],
  [/&apos;/g, "'"],
  [/&#91;/g, '['],
  [/&#93;/g, ']'],
  [/&amp;/g, '&'],
];

function unescapeEntities(text: string): string {
  return entities.reduce((result, [pattern, character]) => result.replace(pattern, character), text);
}

interface Joins {
  /** The word is attached to the previous one. */
  readonly left: (words: readonly string[], i: number) => boolean;
  /** The next word is attached to this one. */
  readonly right: (words: readonly string[], i: number) => boolean;
}

const none = (): boolean => false;

function joinRules(language: string): Joins {
  switch (language) {
    case 'en':
      return {
        left: (words, i) =>
          i > 0 && /^'\p{Alphabetic}/u.test(words[i]) && /[\p{Alphabetic}\p{Nd}]$/u.test(words[i - 1]),
        right: none,
      };
    case 'cs':
      return {
        left: (words, i) =>
          i > 1 && /^[0-9]+$/.test(words[i - 2]) && /^[.,]$/.test(words[i - 1]) && /^[0-9]+$/.test(words[i]),
        right: none,
      };
    case 'fr':
    case 'it':
      return {
        left: none,
        right: (words, i) =>
          i <= words.length - 2 && /\p{Alphabetic}'$/u.test(words[i]) && /^\p{Alphabetic}/u.test(words[i + 1]),
      };
    default:
      return { left: none, right: none };
  }
}

function attach(words: readonly string[], joins: Joins, language: string): string {
  let text = '';
  let gap = ' ';
  const isWide = language === 'zh' || language === 'ja';
  const opened = new Map<string, number>();
  for (let i = 0; i < words.length; i++) {
    const word = words[i];
    const left = (): void => {
      text += word;
      gap = ' ';
    };
    const right = (): void => {
      text += gap + word;
      gap = '';
    };
    const afterCjk = i > 0 && (endsWithCjk.test(words[i - 1]) || (isWide && wideMarks.test(words[i - 1])));
    if (isWide && wideOpening.test(word)) {
      text += afterCjk ? word : gap + word;
      gap = '';
    } else if (isWide && wideMarks.test(word)) {
      left();
    } else if (startsWithCjk.test(word)) {
      text += afterCjk ? word : gap + word;
      gap = ' ';
    } else if (opening.test(word)) {
      right();
    } else if (closing.test(word)) {
      if (language === 'fr' && /^[?!:;\\%]$/.test(word)) text += '\u00a0';
      left();
    } else if (joins.left(words, i)) {
      left();
    } else if (joins.right(words, i)) {
      right();
    } else if (language === 'cs' && isDashedCzech(words, i)) {
      text += gap + word + words[++i];
      gap = '';
    } else if (quotes.test(word)) {
      const kind = /^[„“”]+$/.test(word) ? '"' : word;
      if (language === 'cs' && word === '„') opened.set(kind, 0);
      if (language === 'cs' && word === '“') opened.set(kind, 1);
      const count = opened.get(kind) ?? 0;
      const possessive = language === 'en' && word === "'" && i > 0 && words[i - 1].endsWith('s');
      if (count % 2 === 0 && possessive) {
        left();
        continue;
      }
      if (count % 2 === 0) right();
      else left();
      opened.set(kind, count + 1);
    } else {
      text += gap + word;
      gap = ' ';
    }
  }
  return text;
}

// Of Chinese and Japanese: 。 、 「 and the like, the forms of , . ! ( in the width of a character, and curly quotes.
const wideOpening = /^[「『【《〈〔〖（［｛“‘]+$/u;
const wideMarks =
  /^[\u3001-\u3003\u3008-\u3011\u3014-\u301f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff64“”‘’…—]+$/u;
const opening = /^[\p{Sc}([{¿¡]+$/u;
const closing = /^[,.?!:;\\%}\])]+$/;
const quotes = /^['"„“`]+$/;

function isDashedCzech(words: readonly string[], i: number): boolean {
  return (
    i < words.length - 3 &&
    /\p{Alphabetic}$/u.test(words[i]) &&
    /^[-–]$/.test(words[i + 1]) &&
    /^li$|^mail.*/i.test(words[i + 2])
  );
}

// Blocks of Chinese, Japanese and Korean script, between whose words no space is written.
const cjk =
  '\\u1100-\\u11ff\\u2e80-\\ua4cf\\ua840-\\ua87f\\uac00-\\ud7af\\uf900-\\ufaff\\ufe30-\\ufe4f\\uff65-\\uffdc' +
  '\\u{20000}-\\u{2ffff}';
const startsWithCjk = new RegExp(`^[${cjk}]`, 'u');
const endsWithCjk = new RegExp(`[${cjk}]$`, 'u');
