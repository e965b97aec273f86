import type { TokenizerName } from './tokenizers.js';
import { splitWords, strip } from './whitespace.js';

/** What the latency of an output is counted in; SimulEval's `--eval-latency-unit`. */
export type LatencyUnit = 'word' | 'char';

export const LATENCY_UNITS: readonly LatencyUnit[] = ['word', 'char'];

const CHINESE = ['zh', 'zho', 'cmn', 'yue'];
/** Languages that are written without spaces between words. */
const WITHOUT_SPACES = [...CHINESE, 'ja', 'jpn', 'th', 'tha', 'lo', 'lao', 'km', 'khm', 'my', 'mya'];
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
  if (CHINESE.includes(code)) return 'zh';
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
