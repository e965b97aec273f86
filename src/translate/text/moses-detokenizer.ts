export interface DetokenizerOptions {
  /** Make the first letter of the sentence upper case. Default false. */
  readonly uppercaseFirst?: boolean;
}

/**
 * The rules of Moses' detokenizer.perl for a language: entities and `@-@` are undone, punctuation moves to its
 * word, quotes open and close in turn. It works from left to right, so that the text of the first words of a sentence
 * is the beginning of the text of the sentence (contractions of French and Italian and dashed words of Czech look one
 * or two words ahead).
 *
 * Beyond Moses, which takes the punctuation of Chinese and Japanese for words of another script and leaves spaces around
 * it, that of these two languages is set without.
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
  /** The word is glued to the one before it. */
  readonly left: (words: readonly string[], i: number) => boolean;
  /** The word after it is glued to this one. */
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
