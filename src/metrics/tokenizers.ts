import { splitWords, strip } from './whitespace.js';

/** The tokenisers of sacreBLEU offered for BLEU. */
export type TokenizerName = '13a' | 'zh' | 'char' | 'intl' | 'none';

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
