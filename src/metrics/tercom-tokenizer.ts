import { singleSpaced, splitWords, strip, stripEnd } from './whitespace.js';

/** Tercom's text normalisation, as in sacreBLEU. */
export interface TercomOptions {
  /** Split punctuation off the words. Default false. */
  readonly normalized?: boolean;
  /** Remove punctuation. Default false. */
  readonly noPunctuation?: boolean;
  /** With `normalized` and `noPunctuation`: also CJK characters and punctuation. Default false. */
  readonly asian?: boolean;
  /** Default false: text is lowercased. */
  readonly caseSensitive?: boolean;
}

/** The words TER edits (`Normalizer.java` of Tercom, in sacreBLEU's reading). */
export function tercomWords(line: string, options: TercomOptions = {}): string[] {
  let text = stripEnd(line);
  if (!options.caseSensitive) text = text.toLowerCase();
  if (options.normalized && text !== '') {
    text = normalizeWestern(text);
    if (options.asian) text = normalizeAsian(text);
    text = strip(singleSpaced(text));
  }
  if (options.noPunctuation) {
    text = text.replace(/[.,?:;!"()]/g, '');
    if (options.asian) text = text.replace(ASIAN_PUNCTUATION, '').replace(FULL_WIDTH_PUNCTUATION, '');
  }
  return splitWords(text);
}

function normalizeWestern(text: string): string {
  const plain = text.replaceAll('&quot;', '"').replaceAll('&amp;', '&').replaceAll('&lt;', '<').replaceAll('&gt;', '>');
  return ` ${plain} `
    .replace(/[{-~[-` -&(-+:-@/]/g, ' $& ')
    .replaceAll("'s ", " 's ")
    .replace(/([^0-9])([.,])/g, '$1 $2 ')
    .replace(/([.,])([^0-9])/g, ' $1 $2')
    .replace(/([0-9])(-)/g, '$1 $2 ');
}

function normalizeAsian(text: string): string {
  // Tercom also has rules for runs of kana, but anchored to the ends of a line that here begins and ends with a space:
  // they never apply.
  return text
    .replace(/[\u4e00-\u9fff\u3400-\u4dbf]/g, ' $& ')
    .replace(/[\u31c0-\u31ef\u2e80-\u2eff]/g, ' $& ')
    .replace(/[\u3300-\u33ff\uf900-\ufaff\ufe30-\ufe4f]/g, ' $& ')
    .replace(/[\u3200-\u3f22]/g, ' $& ')
    .replace(ASIAN_PUNCTUATION, ' $& ')
    .replace(FULL_WIDTH_PUNCTUATION, ' $& ');
}

const ASIAN_PUNCTUATION = /[\u3001\u3002\u3008-\u3011\u3014-\u301f\uff61-\uff65\u30fb]/g;
const FULL_WIDTH_PUNCTUATION = /[\uff0e\uff0c\uff1f\uff1a\uff1b\uff01\uff02\uff08\uff09]/g;
