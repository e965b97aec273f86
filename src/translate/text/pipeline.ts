import { latencyUnit } from '../../metrics/tokenizers.js';
import { type BpeCodes, type BpeSegmenter, bpeSegmenter, joinUnits, separator } from './bpe.js';
import { type TokenizerConfig, type TokenizerFiles, type WordTokenizer, wordTokenizer } from './tokenizers.js';
import type { WordCounts } from './vocabulary.js';

/** How the text of one language becomes tokens: lower case, punctuation, tokeniser, byte pair encoding, in this order. */
export interface PipelineConfig {
  /** ISO 639 code; selects abbreviations and rules. Unknown languages get the general rules. */
  readonly language: string;
  /** Default false. */
  readonly lowercase: boolean;
  /** Normalise punctuation as Moses does. Default false. */
  readonly normalize: boolean;
  readonly tokenizer: TokenizerConfig;
  readonly bpe?: {
    /** Patterns that stay whole. */
    readonly glossaries?: readonly string[];
    /** Units that occur less often than this in `PipelineData.units` are split again. Default no threshold. */
    readonly threshold?: number;
  };
  /** Tokens before those of every line, such as a language code. Default none. */
  readonly prefix?: readonly string[];
}

/** What a pipeline needs besides its config, read from files. */
export interface PipelineData extends TokenizerFiles {
  readonly codes?: BpeCodes;
  /** Subword units of this language's training text, for `bpe.threshold`. */
  readonly units?: WordCounts;
}

export interface TextPipeline {
  readonly config: PipelineConfig;
  /** In `decode`, a token such as a comma may be attached to the previous word: a word is complete when the next begins. */
  readonly attaches: boolean;
  /** Its text arrives character by character: the language has no spaces, and characters or Jieba's words are its tokens. */
  readonly byCharacter: boolean;
  /** Tokens before byte pair encoding. */
  words(line: string): string[];
  /** Byte pair encoding of such tokens, after the prefix of every line, if there is one; nothing for no tokens. */
  segment(words: readonly string[]): string[];
  /** Tokens of a line, as the vocabulary numbers them: `segment(words(line))`. */
  encode(line: string): string[];
  /** Undoes byte pair encoding and removes the prefix: the tokenised text that multi-bleu compares. */
  join(tokens: readonly string[]): string[];
  /** The line represented by tokens. */
  decode(tokens: readonly string[]): string;
  /**
   * Encodes a sentence while its words arrive. The tokens are those of `encode` for the whole line, except where a rule
   * looks beyond a word: punctuation that normalising moves across a space, and protected patterns with spaces.
   */
  wordEncoder(): WordEncoder;
  /**
   * Writes a sentence while its tokens arrive: the pieces together are `decode` of all tokens. (Where a detokeniser
   * joins words that were already output, as in Czech e - mail, the pieces keep their spaces.)
   */
  textDecoder(): TokenDecoder;
}

export interface WordEncoder {
  /**
   * Tokens that become final with the next word. A word ending in a full stop or an apostrophe may be the end of the sentence or
   * not, which Moses treats differently, so it is held back until the next word or the end; so is a Jieba word until
   * nothing that follows can change it. `joined`: there is no space before it, as between characters that arrive one by
   * one (`TextPipeline.byCharacter`).
   */
  push(word: string, joined?: boolean): string[];
  end(): string[];
}

export interface TokenDecoder {
  /** Text that becomes final with this token; empty inside a word. */
  push(token: string): string;
  end(): string;
}

export async function textPipeline(config: PipelineConfig, data: PipelineData = {}): Promise<TextPipeline> {
  const tokenizer = await wordTokenizer(config.tokenizer, config.language, data);
  const normalize = config.normalize ? punctuationNormalizer(config.language) : undefined;
  const clean = (text: string): string => {
    const cased = config.lowercase ? lowercase(text) : text;
    return normalize ? normalize(cased) : cased;
  };
  const segmenter = data.codes ? bpeSegmenter(data.codes, bpeOptions(config, data)) : undefined;
  const { prefix = [] } = config;
  const join = (tokens: readonly string[]): string[] => {
    const own = prefix.length === 0 ? tokens : tokens.filter((token) => !prefix.includes(token));
    return segmenter ? joinUnits(own) : [...own];
  };
  const decode = (tokens: readonly string[]): string => tokenizer.join(join(tokens));
  const units = (tokens: readonly string[]): string[] => segmentAll(tokens, segmenter);
  const segment = (tokens: readonly string[]): string[] =>
    tokens.length === 0 ? [] : [...prefix, ...segmentAll(tokens, segmenter)];
  const words = (line: string): string[] => tokenizer.tokenize(clean(line), { first: true, next: null });
  return {
    config,
    attaches: tokenizer.attaches,
    byCharacter: isReadByCharacter(config),
    words,
    segment,
    encode: (line) => segment(words(line)),
    join,
    decode,
    wordEncoder: () => {
      const { arriving } = tokenizer;
      return wordEncoder(arriving ? asItArrives(arriving) : wordByWord(tokenizer), clean, units, prefix);
    },
    textDecoder: () => textDecoder(decode, segmenter !== undefined),
  };
}

/** `TextPipeline.byCharacter` of a pipeline that need not be opened. */
export function isReadByCharacter({ tokenizer, language }: PipelineConfig): boolean {
  return /^(char|jieba)$/.test(tokenizer.kind) && latencyUnit(language) === 'char';
}

function bpeOptions({ bpe }: PipelineConfig, { units }: PipelineData) {
  const { glossaries, threshold } = bpe ?? {};
  if (threshold === undefined || units === undefined) return { glossaries };
  return { glossaries, vocabulary: new Set([...units].filter(([, n]) => n >= threshold).map(([unit]) => unit)) };
}

function segmentAll(words: readonly string[], segment: BpeSegmenter | undefined): string[] {
  if (!segment) return [...words];
  const tokens: string[] = [];
  for (const word of words) for (const unit of segment(word)) tokens.push(unit);
  return tokens;
}

/** Tokens of a sentence, before byte pair encoding, while its words arrive. */
interface ArrivingTokens {
  push(word: string, joined: boolean): string[];
  end(): string[];
}

function wordEncoder(
  arriving: ArrivingTokens,
  clean: (text: string) => string,
  segment: (words: readonly string[]) => string[],
  prefix: readonly string[],
): WordEncoder {
  let begun = false;
  const encode = (words: readonly string[]): string[] => {
    if (words.length === 0) return [];
    const tokens = segment(words);
    if (begun) return tokens;
    begun = true;
    return [...prefix, ...tokens];
  };
  return {
    push(word, joined = false) {
      const current = clean(word).trim();
      return current === '' ? [] : encode(arriving.push(current, joined));
    },
    end() {
      const tokens = encode(arriving.end());
      begun = false;
      return tokens;
    },
  };
}

/** Words are cut one by one; those that depend on the next one wait for it. */
function wordByWord({ tokenize, looksAhead }: WordTokenizer): ArrivingTokens {
  let first = true;
  let held: string | null = null;
  let previous: string | undefined;
  const cut = (word: string, next: string | null, joined = false): string[] => {
    const before = first || joined ? undefined : previous;
    const tokens = tokenize(word, { first: first || joined, next, previous: before });
    first = false;
    previous = word;
    return tokens;
  };
  return {
    push(word, joined) {
      const tokens = held === null ? [] : cut(held, word);
      held = null;
      if (looksAhead(word)) held = word;
      else tokens.push(...cut(word, 'X', joined));
      return tokens;
    },
    end() {
      const tokens = held === null ? [] : cut(held, null);
      held = null;
      first = true;
      return tokens;
    },
  };
}

/** The tokeniser itself cuts the text as it arrives. */
function asItArrives(begin: NonNullable<WordTokenizer['arriving']>): ArrivingTokens {
  let text: ReturnType<typeof begin> | undefined;
  return {
    push(word, joined) {
      if (text !== undefined) return text.push(joined ? word : ` ${word}`);
      text = begin();
      return text.push(word);
    },
    end() {
      const tokens = text?.end() ?? [];
      text = undefined;
      return tokens;
    },
  };
}

function textDecoder(decode: (tokens: readonly string[]) => string, hasUnits: boolean): TokenDecoder {
  let tokens: string[] = [];
  let used = 0;
  let written = '';
  const advance = (): string => {
    const text = decode(tokens);
    const piece = text.startsWith(written) ? text.slice(written.length) : ` ${decode(tokens.slice(used))}`;
    used = tokens.length;
    written = text;
    return piece;
  };
  return {
    push(token) {
      tokens.push(token);
      return hasUnits && token.endsWith(separator) ? '' : advance();
    },
    end() {
      const piece = used < tokens.length ? advance() : '';
      tokens = [];
      used = 0;
      written = '';
      return piece;
    },
  };
}

/**
 * The rules of Moses' normalize-punctuation.perl for a language: typographic quotes, dashes and ellipses become
 * ASCII, spaces around brackets and before signs are regularised, quotation marks and commas take the order usual in
 * the language.
 */
export function punctuationNormalizer(language: string): (line: string) => string {
  const rules = [...general, ...quotationOrder(language), ...digitGroups(language)];
  return (line) => {
    // A rule about a full stop and a quote needs a character after them; at the end of a line it is the line feed.
    let text = `${line}\n`;
    for (const [needed, pattern, replacement] of rules) {
      // Most lines have little punctuation: searching for a string is cheaper than matching a pattern.
      if (text.includes(needed)) text = text.replaceAll(pattern, replacement);
    }
    return text.slice(0, -1);
  };
}

/** A string without which the rule does nothing, a pattern, its replacement. */
type Rule = readonly [needed: string, pattern: string | RegExp, replacement: string];

const nbsp = '\u00a0';
const literal = (text: string, replacement: string): Rule => [text, text, replacement];
const singleSpaces: Rule = ['  ', / +/g, ' '];

const general: readonly Rule[] = [
  literal('\r', ''),
  literal('(', ' ('),
  literal(')', ') '),
  singleSpaces,
  [') ', /\) ([.!:?;,])/g, ')$1'],
  literal('( ', '('),
  literal(' )', ')'),
  [' %', /([0-9]) %/g, '$1%'],
  literal(' :', ':'),
  literal(' ;', ';'),
  literal('`', "'"),
  literal("''", ' " '),
  literal('„', '"'),
  literal('“', '"'),
  literal('”', '"'),
  literal('–', '-'),
  literal('—', ' - '),
  singleSpaces,
  literal('´', "'"),
  ['‘', /([a-z])‘([a-z])/gi, "$1'$2"],
  ['’', /([a-z])’([a-z])/gi, "$1'$2"],
  literal('‘', "'"),
  literal('‚', "'"),
  literal('’', '"'),
  literal("''", '"'),
  literal('…', '...'),
  literal(`${nbsp}«${nbsp}`, ' "'),
  literal(`«${nbsp}`, '"'),
  literal('«', '"'),
  literal(`${nbsp}»${nbsp}`, '" '),
  literal(`${nbsp}»`, '"'),
  literal('»', '"'),
  literal(`${nbsp}%`, '%'),
  literal(`nº${nbsp}`, 'nº '),
  literal(`${nbsp}:`, ':'),
  literal(`${nbsp}ºC`, ' ºC'),
  literal(`${nbsp}cm`, ' cm'),
  literal(`${nbsp}?`, '?'),
  literal(`${nbsp}!`, '!'),
  literal(`${nbsp};`, ';'),
  literal(`,${nbsp}`, ', '),
  singleSpaces,
];

function quotationOrder(language: string): readonly Rule[] {
  if (language === 'en') return [['"', /"([,.]+)/g, '$1"']];
  if (language === 'cs' || language === 'cz') return [];
  return [literal(',"', '",'), ['."', /(\.+)"([\t-\r ]*[^<])/g, '"$1$2']];
}

/** A no-break space between digits becomes the sign that groups or separates digits. */
function digitGroups(language: string): readonly Rule[] {
  const sign = ['de', 'es', 'cz', 'cs', 'fr'].includes(language) ? ',' : '.';
  return [[nbsp, new RegExp(`([0-9])${nbsp}([0-9])`, 'g'), `$1${sign}$2`]];
}

/**
 * Lower case, letter by letter: unlike `toLowerCase` on a whole string, a Greek sigma at the end of a word becomes σ,
 * as in Perl and Python's older tools, so a word has one form wherever it is split.
 */
export function lowercase(text: string): string {
  const lowered = text.toLowerCase();
  return text.includes('Σ') ? Array.from(text, (letter) => letter.toLowerCase()).join('') : lowered;
}
