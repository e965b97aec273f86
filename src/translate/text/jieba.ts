import { InputError } from '../../errors.js';

/** A space of the text that its neighbours do not imply. */
const blankMark = '▁';

/** Segments Chinese text into words. */
export interface ChineseSegmenter {
  /** Words of a text. `before`: the text before it, with a space between the two; undefined if there is none. */
  cut(text: string, before?: string): string[];
  /** Words of a sentence as its characters arrive; together they equal those of `cut`. */
  arriving(): ArrivingChinese;
}

export interface ArrivingChinese {
  /** Words that become final with these characters: nothing that follows changes Jieba's segmentation of them. */
  push(text: string): string[];
  end(): string[];
}

/**
 * Segmentation with Jieba's dictionary and its hidden Markov model for unknown words. Spaces are left out.
 *
 * With `spaces`, `joinChinese` restores the text: a space next to a word in Latin letters, digits or ASCII signs is
 * `▁`. Between two Chinese words a space is dropped as before, and between two words in Latin letters or digits it is
 * implied; therefore what Jieba splits inside such a word, as Z ü rich, is joined again.
 */
export async function chineseSegmenter({ spaces = false }: { spaces?: boolean } = {}): Promise<ChineseSegmenter> {
  const jieba = await openJieba();
  const joiner = (before?: string) => (spaces ? new SpacedWords(before) : new BareWords());
  return {
    cut: (text, before) => {
      const words = joiner(before);
      return [...jieba.cut(text).flatMap((piece) => words.push(piece)), ...words.end()];
    },
    arriving: () => {
      const words = joiner();
      const settling = new SettlingPieces(jieba);
      return {
        push: (text) => {
          const settled = settling.push(text);
          return settled.length === 0 ? [] : [...settled.flatMap((piece) => words.push(piece)), ...words.settled()];
        },
        end: () => [...settling.end().flatMap((piece) => words.push(piece)), ...words.end()],
      };
    },
  };
}

/** Joins Jieba's pieces into words. */
interface WordJoiner {
  push(piece: string): string[];
  /** What is complete if no combining mark follows. */
  settled(): string[];
  end(): string[];
}

class BareWords implements WordJoiner {
  push(piece: string): string[] {
    return isBlank(piece) ? [] : [piece];
  }

  settled(): string[] {
    return [];
  }

  end(): string[] {
    return [];
  }
}

class SpacedWords implements WordJoiner {
  /** The last piece, or what precedes the text. */
  private last: string | undefined;
  private gap: boolean;
  /** A word that the next piece may belong to. */
  private open = '';

  constructor(before?: string) {
    this.last = before?.trimEnd() || undefined;
    this.gap = this.last !== undefined;
  }

  push(piece: string): string[] {
    if (isBlank(piece)) {
      this.gap = true;
      return this.end();
    }
    const { last, gap } = this;
    const implied = last !== undefined && needsGap(last, piece);
    const dropped = last === undefined || (endsWide.test(last) && startsWide.test(piece));
    this.last = piece;
    this.gap = false;
    if (this.open !== '' && (implied || /^\p{M}/u.test(piece))) {
      this.open += piece;
      return [];
    }
    const done = this.end();
    if (gap && !implied && !dropped) done.push(blankMark);
    this.open = piece;
    return done;
  }

  settled(): string[] {
    return endsNarrow.test(this.open) ? [] : this.end();
  }

  end(): string[] {
    const { open } = this;
    this.open = '';
    return open === '' ? [] : [open];
  }
}

/**
 * Chinese is written without spaces; between two words in Latin letters or digits one is needed, and `▁` is one, except
 * at the ends of the line.
 */
export function joinChinese(words: readonly string[]): string {
  const text = words.reduce((line, word) => {
    if (word === blankMark) return `${line} `;
    return line + (needsGap(line, word) ? ' ' : '') + word;
  }, '');
  return text.trim();
}

function needsGap(before: string, word: string): boolean {
  return endsNarrow.test(before) && /^[\p{Script=Latin}\p{Nd}]/u.test(word);
}

/** Letters and digits between which a space is written. */
const endsNarrow = /[\p{Script=Latin}\p{Nd}]$/u;

const isBlank = (piece: string): boolean => piece.trim() === '';

/** Chinese characters and the punctuation between them. */
const wide = '[\\p{Script=Han}\\u3000-\\u303f\\uff00-\\uff0f\\uff1a-\\uff20\\uff3b-\\uff40\\uff5b-\\uff65“”‘’…—]';
const endsWide = new RegExp(`${wide}$`, 'u');
const startsWide = new RegExp(`^${wide}`, 'u');

/**
 * Jieba's pieces of a text as it arrives. A piece is final if its end is a wall, which nothing to come can move:
 *
 * - between two characters of which one is punctuation or a space, where Jieba starts afresh;
 * - where no word of the dictionary, not even an incomplete one, reaches across it, so that the most likely path has a
 *   part on each side, and where the path comes to it with a word of several characters. After single characters there is
 *   none, because the hidden Markov model looks at all of a run of them together.
 */
class SettlingPieces {
  private held: string[] = [];
  /** Characters of which it is known how far the words reach that begin at them; what comes changes nothing of it. */
  private known = 0;
  /** How far those words reach. */
  private reached = 0;
  /** The last place that no word reaches across. */
  private part = 0;

  constructor(private readonly jieba: OpenJieba) {}

  push(text: string): string[] {
    for (const character of text) this.held.push(character);
    const wall = this.lastWall();
    if (wall === 0) return [];
    this.known -= wall;
    this.part -= wall;
    this.reached = Math.max(0, this.reached - wall);
    return this.jieba.cut(this.held.splice(0, wall).join(''));
  }

  end(): string[] {
    return this.jieba.cut(this.held.splice(0).join(''));
  }

  /** Characters before the last wall. The one after it must be known: a combining mark belongs to what is before. */
  private lastWall(): number {
    const { held } = this;
    let wall = 0;
    while (this.known + 1 < held.length) {
      const reach = this.reach(this.known);
      if (reach === undefined) break;
      this.reached = Math.max(this.reached, reach);
      const end = ++this.known;
      if (this.reached > end) continue;
      const isBeside = outside.test(held[end - 1]) || outside.test(held[end]);
      const isWall = isBeside || this.endsInWord(held.slice(this.part, end).join(''));
      this.part = end;
      if (isWall && !/\p{M}/u.test(held[end])) wall = end;
    }
    return wall;
  }

  /** Where the longest word of the dictionary ends that begins at `from`; undefined if one may only have begun. */
  private reach(from: number): number | undefined {
    const { held } = this;
    const { words, begun } = this.jieba.dictionary();
    let furthest = from + 1;
    let text = held[from];
    for (let end = from + 1; begun.has(text); end++) {
      if (end === held.length) return undefined;
      if (outside.test(held[end])) break;
      text += held[end];
      if (words.has(text)) furthest = end + 1;
    }
    return furthest;
  }

  /** Whether the most likely path ends with a word of several characters; letters and digits are joined only later. */
  private endsInWord(text: string): boolean {
    const word = this.jieba.path(text).at(-1) ?? '';
    return /^.{2,}$/u.test(word) && /\p{Script=Han}/u.test(word);
  }
}

/** Spaces and punctuation, at which Jieba always splits. */
const outside = /[\s\u3000-\u303f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65“”‘’…—,;:!?()"]/u;

interface OpenJieba {
  /** All of a text in pieces, spaces included. */
  cut(text: string): string[];
  /** The same by the dictionary alone, without the hidden Markov model. */
  path(text: string): string[];
  /** Words of the dictionary, and the beginnings of longer ones. */
  dictionary(): Dictionary;
}

interface Dictionary {
  readonly words: ReadonlySet<string>;
  readonly begun: ReadonlySet<string>;
}

async function openJieba(): Promise<OpenJieba> {
  const { Jieba, dict } = await loadJieba();
  const jieba = Jieba.withDict(dict);
  let read: Dictionary | undefined;
  return {
    cut: (text) => jieba.cut(text, true),
    path: (text) => jieba.cut(text, false),
    dictionary: () => {
      read ??= readDictionary(new TextDecoder().decode(dict));
      return read;
    },
  };
}

/** A line of the dictionary is a word, its frequency and its class. */
function readDictionary(text: string): Dictionary {
  const words = new Set<string>();
  const begun = new Set<string>();
  for (const line of text.split('\n')) {
    const [word] = line.split(' ', 1);
    words.add(word);
    const characters = Array.from(word);
    for (let n = 1; n < characters.length; n++) begun.add(characters.slice(0, n).join(''));
  }
  return { words, begun };
}

async function loadJieba() {
  try {
    const [{ Jieba }, { dict }] = await Promise.all([import('@node-rs/jieba'), import('@node-rs/jieba/dict.js')]);
    return { Jieba, dict };
  } catch {
    throw new InputError('segmenting Chinese needs the optional package @node-rs/jieba: npm install @node-rs/jieba@2');
  }
}
