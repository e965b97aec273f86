/** The tokenisers of sacreBLEU offered for BLEU. */
export type TokenizerName = '13a' | 'zh' | 'char' | 'intl' | 'none';

/** All tokenizers. */
export const TOKENIZER_NAMES: readonly TokenizerName[] = ['13a', 'zh', 'char', 'intl', 'none'];

/**
 * Splits a line into the tokens BLEU counts, exactly as sacreBLEU 2.6 does.
 *
 * - `13a`: mteval-v13a, the WMT standard for languages written with spaces;
 * - `zh`: every Chinese character its own token, the rest as 13a;
 * - `char`: every code point;
 * - `intl`: mteval-v14, any Unicode punctuation and symbol;
 * - `none`: white space only, for text that is tokenised already.
 */
export const tokenizers: Readonly<Record<TokenizerName, (line: string) => string[]>> = {
  '13a': (line) => splitWestern(` ${unescapeEntities(line.replaceAll('<skipped>', ''))} `),
  zh: (line) => splitWestern(strip(line).replace(CHINESE, ' $& ')),
  char: (line) => splitWords(Array.from(line).join(' ')),
  intl: (line) =>
    splitWords(
      line
        .replace(/(\P{N})(\p{P})/gu, '$1 $2 ')
        .replace(/(\p{P})(\P{N})/gu, ' $1 $2')
        .replace(/\p{S}/gu, ' $& '),
    ),
  none: splitWords,
};

// In this order: `&amp;quot;` becomes `&quot;`, as in mteval.
function unescapeEntities(line: string): string {
  if (!line.includes('&')) return line;
  return line.replaceAll('&quot;', '"').replaceAll('&amp;', '&').replaceAll('&lt;', '<').replaceAll('&gt;', '>');
}

// The language-dependent part of mteval-v13a: ASCII punctuation apart, except . and , within and - outside numbers.
function splitWestern(line: string): string[] {
  return splitWords(
    line
      .replace(/[{-~[-` -&(-+:-@/]/g, ' $& ')
      .replace(/([^0-9])([.,])/g, '$1 $2 ')
      .replace(/([.,])([^0-9])/g, ' $1 $2')
      .replace(/([0-9])(-)/g, '$1 $2 '),
  );
}

// sacreBLEU's table. It writes CJK Extension B as '\u20000'–'\u2a6d6', which Python reads as U+2000 '0' – U+2A6D '6':
// in effect U+2001–U+2A6D (curly quotes, dashes, arrows …) are split and the real extension (astral) is not.
const CHINESE = new RegExp(
  '[\\u3400-\\u4db5\\u4e00-\\u9fbb\\uf900-\\ufa2d\\ufa30-\\ufa6a\\ufa70-\\ufad9\\u2001-\\u2a6d\\u2f81-\\u2fa1' +
    '\\uff00-\\uffef\\u2e80-\\u2eff\\u3000-\\u303f\\u31c0-\\u31ef\\u2f00-\\u2fdf\\u2ff0-\\u2fff\\u3100-\\u312f' +
    '\\u31a0-\\u31bf\\ufe10-\\ufe1f\\ufe30-\\ufe4f\\u3200-\\u33ff]',
  'g',
);

// Python's idea of white space (`str.isspace`), which the reference scorers inherit. It differs from JavaScript's `\s`:
// it has U+001C–U+001F and U+0085, and lacks U+FEFF.
const SPACE = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';

const RUN = new RegExp(`[${SPACE}]+`);
const RUNS = new RegExp(`[${SPACE}]+`, 'g');
const LEADING = new RegExp(`^[${SPACE}]+`);
const ONE = new RegExp(`[${SPACE}]`);

/** Python's `text.split()`: the words between runs of white space, never an empty one. */
export function splitWords(text: string): string[] {
  const words = text.split(RUN);
  if (words[words.length - 1] === '') words.pop();
  if (words[0] === '') words.shift();
  return words;
}

/** Python's `text.rstrip()`. */
export function stripEnd(text: string): string {
  // Not /\s+$/: a backtracking engine spends quadratic time on a long run of spaces inside the line.
  let end = text.length;
  while (end > 0 && ONE.test(text[end - 1])) end--;
  return end === text.length ? text : text.slice(0, end);
}

/** Python's `text.strip()`. */
export function strip(text: string): string {
  return stripEnd(text.replace(LEADING, ''));
}

/** Python's `re.sub(r'\s+', ' ', text)`. */
export function singleSpaced(text: string): string {
  return text.replace(RUNS, ' ');
}

/** Python's `''.join(text.split())`. */
export function withoutSpaces(text: string): string {
  return text.replace(RUNS, '');
}

/** What the latency of an output is counted in; SimulEval's `--eval-latency-unit`. */
export type LatencyUnit = 'word' | 'char';

/** All units. */
export const LATENCY_UNITS: readonly LatencyUnit[] = ['word', 'char'];

const CHINESE_CODES = ['zh', 'zho', 'cmn', 'yue'];
/** Languages that are written without spaces between words. */
const WITHOUT_SPACES = [...CHINESE_CODES, 'ja', 'jpn', 'th', 'tha', 'lo', 'lao', 'km', 'khm', 'my', 'mya'];
/** Written with spaces, but by far not between all that counts as a word. */
const KOREAN = ['ko', 'kor'];

/** Characters for languages that are written without spaces, else words. `language` is a code such as `ja` or `zh-TW`. */
export function latencyUnit(language: string): LatencyUnit {
  return WITHOUT_SPACES.includes(primary(language)) ? 'char' : 'word';
}

/**
 * The tokeniser of sacreBLEU for a language: `zh`; `char` where sacreBLEU itself would ask for MeCab (Japanese, Korean)
 * and for other languages without spaces; else `13a`.
 */
export function bleuTokenizer(language: string): TokenizerName {
  const code = primary(language);
  if (CHINESE_CODES.includes(code)) return 'zh';
  return WITHOUT_SPACES.includes(code) || KOREAN.includes(code) ? 'char' : '13a';
}

/** How many delays SimulEval records for an output: a character is a code point, and the space is none. */
export function outputLength(text: string, unit: LatencyUnit): number {
  return unit === 'word' ? splitWords(text).length : Array.from(text.replaceAll(' ', '')).length;
}

/**
 * The length of a reference as SimulEval counts it: split at every single space, so that an empty one counts 1; or
 * all its characters, those spaces included.
 */
export function referenceLength(text: string, unit: LatencyUnit): number {
  return unit === 'word' ? text.split(' ').length : Array.from(strip(text)).length;
}

const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/gu;

/** Most letters of these lines belong to scripts that are written without spaces. */
export function isWithoutSpaces(lines: readonly string[]): boolean {
  const count = (pattern: RegExp): number => lines.reduce((sum, line) => sum + (line.match(pattern)?.length ?? 0), 0);
  return count(UNSPACED) > count(/\p{L}/gu) / 2;
}

function primary(language: string): string {
  return language.toLowerCase().split(/[-_]/)[0];
}
