import { InputError } from '../../errors.js';

/** A space of the text that its neighbours do not imply. */
const blankMark = '▁';

/** Chinese word segmentation with Jieba's dictionary and its hidden Markov model for unknown words; spaces are left out. */
export async function jiebaSegmenter(): Promise<(text: string) => string[]> {
  const pieces = await jiebaPieces();
  return (text) => pieces(text).filter((word) => !isBlank(word));
}

/**
 * The same, such that `joinChinese` restores the text: a space next to a word in Latin letters, digits or ASCII signs is
 * `▁`. Between two Chinese words a space is dropped as before, and between two words in Latin letters or digits it is
 * implied; therefore what Jieba splits inside such a word, as Z ü rich, is joined again.
 *
 * @param before the text before this one, with a space between the two; undefined if there is none
 */
export async function spacedJiebaSegmenter(): Promise<(text: string, before?: string) => string[]> {
  const pieces = await jiebaPieces();
  return (text, before) => {
    const words: string[] = [];
    let last = before?.trimEnd() || undefined;
    let gap = last !== undefined;
    for (const piece of pieces(text)) {
      if (isBlank(piece)) {
        gap = true;
        continue;
      }
      const implied = last !== undefined && needsGap(last, piece);
      const within = words.length > 0 && !gap && (implied || /^\p{M}/u.test(piece));
      const dropped = last === undefined || (endsWide.test(last) && startsWide.test(piece));
      if (within) words[words.length - 1] += piece;
      else if (gap && !implied && !dropped) words.push(blankMark, piece);
      else words.push(piece);
      last = piece;
      gap = false;
    }
    return words;
  };
}

/** Chinese is written without spaces; between two words in Latin letters or digits one is needed, and `▁` is one. */
export function joinChinese(words: readonly string[]): string {
  return words.reduce((line, word) => {
    if (word === blankMark) return `${line} `;
    return line + (needsGap(line, word) ? ' ' : '') + word;
  }, '');
}

function needsGap(before: string, word: string): boolean {
  return /[\p{Script=Latin}\p{Nd}]$/u.test(before) && /^[\p{Script=Latin}\p{Nd}]/u.test(word);
}

const isBlank = (piece: string): boolean => piece.trim() === '';

/** Chinese characters and the punctuation between them. */
const wide = '[\\p{Script=Han}\\u3000-\\u303f\\uff00-\\uff0f\\uff1a-\\uff20\\uff3b-\\uff40\\uff5b-\\uff65“”‘’…—]';
const endsWide = new RegExp(`${wide}$`, 'u');
const startsWide = new RegExp(`^${wide}`, 'u');

/** All of a text in pieces, spaces included. */
async function jiebaPieces(): Promise<(text: string) => string[]> {
  const { Jieba, dict } = await loadJieba();
  const jieba = Jieba.withDict(dict);
  return (text) => jieba.cut(text, true);
}

async function loadJieba() {
  try {
    const [{ Jieba }, { dict }] = await Promise.all([import('@node-rs/jieba'), import('@node-rs/jieba/dict.js')]);
    return { Jieba, dict };
  } catch {
    throw new InputError('segmenting Chinese needs the optional package @node-rs/jieba: npm install @node-rs/jieba@2');
  }
}
