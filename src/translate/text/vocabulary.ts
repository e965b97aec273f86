import { InputError } from '../../errors.js';

/** Ids of the special tokens, as in fairseq; the vocabulary's own tokens follow from 4. */
export const special = { bos: 0, pad: 1, eos: 2, unk: 3 } as const;

const specialNames = ['<s>', '<pad>', '</s>', '<unk>'] as const;

export interface VocabularyOptions {
  /** Keep tokens that occur at least this often. Default 1. */
  readonly minCount?: number;
  /** Keep at most this many entries, the four special ones included. Default no limit. */
  readonly size?: number;
  /** Pad to a multiple of this with entries that never occur (fairseq uses 8). Default 1, none. */
  readonly paddingFactor?: number;
}

/** The tokens a model knows, numbered. Immutable. */
export class Vocabulary {
  /** Token of each id, the special ones included. */
  readonly tokens: readonly string[];
  private readonly ids: ReadonlyMap<string, number>;

  /** `entries` are the tokens from id 4 on with their counts, in the order of their ids. */
  constructor(private readonly entries: readonly (readonly [string, number])[]) {
    this.tokens = [...specialNames, ...entries.map(([token]) => token)];
    // Text that looks like a special token is unknown, not special: `</s>` in a line does not end the sentence.
    this.ids = new Map(entries.map(([token], i) => [token, i + specialNames.length]));
  }

  get size(): number {
    return this.tokens.length;
  }

  id(token: string): number {
    return this.ids.get(token) ?? special.unk;
  }

  /** Ids of the tokens and of the end of the sentence. */
  encode(tokens: readonly string[]): Int32Array {
    const ids = new Int32Array(tokens.length + 1);
    for (let i = 0; i < tokens.length; i++) ids[i] = this.id(tokens[i]);
    ids[tokens.length] = special.eos;
    return ids;
  }

  /** Tokens up to the end of the sentence; `<s>` and padding are left out, an unknown token is `<unk>`. */
  decode(ids: ArrayLike<number>): string[] {
    const tokens: string[] = [];
    for (let i = 0; i < ids.length && ids[i] !== special.eos; i++) {
      const id = ids[i];
      if (id === special.bos || id === special.pad) continue;
      const token = this.tokens[id];
      if (token === undefined) throw new InputError(`the token id ${id} is outside the vocabulary of ${this.size}`);
      tokens.push(token);
    }
    return tokens;
  }

  /** fairseq's `dict.txt`: lines `token count`, without the special tokens; a repeated token is marked. */
  format(): string {
    const seen = new Set<string>(specialNames);
    const lines = this.entries.map(([token, count]) => {
      const overwrites = seen.has(token) ? ' #fairseq:overwrite' : '';
      seen.add(token);
      return `${token} ${count}${overwrites}\n`;
    });
    return lines.join('');
  }
}

/** The most frequent tokens first, ties in code point order, as fairseq-preprocess numbers them. */
export function buildVocabulary(counts: WordCounts, options: VocabularyOptions = {}): Vocabulary {
  const { minCount = 1, size = Number.POSITIVE_INFINITY, paddingFactor = 1 } = options;
  const entries: [string, number][] = [...counts]
    .filter(([token, count]) => count >= minCount && !(specialNames as readonly string[]).includes(token))
    .sort(([a, n], [b, m]) => m - n || compareCodePoints(a, b))
    .slice(0, Math.max(0, size - specialNames.length));
  for (let i = 0; (entries.length + specialNames.length) % paddingFactor !== 0; i++) {
    entries.push([`madeupword${String(i).padStart(4, '0')}`, 0]);
  }
  return new Vocabulary(entries);
}

/** Reads fairseq's `dict.txt`. A repeated token is an error unless the later line says `#fairseq:overwrite`. */
export function parseVocabulary(text: string, file = 'dict.txt'): Vocabulary {
  const entries: [string, number][] = [];
  const places = new Map<string, number>();
  text.split('\n').forEach((line, i, lines) => {
    if (line === '' && i === lines.length - 1) return;
    const [, token, count, overwrite] = /^(.+) ([0-9]+)( #fairseq:overwrite)?\r?$/su.exec(line) ?? [];
    const where = { file, line: i + 1 };
    if (token === undefined) {
      throw new InputError(`expected a token and its count, found ${JSON.stringify(line)}`, where);
    }
    const special = (specialNames as readonly string[]).includes(token);
    if ((places.has(token) || special) && !overwrite) {
      const reason = special ? 'is a special token that needs no line' : `is already on line ${places.get(token)}`;
      throw new InputError(`the token ${JSON.stringify(token)} ${reason}`, where);
    }
    places.set(token, i + 1);
    entries.push([token, Number(count)]);
  });
  return new Vocabulary(entries);
}

/** How often each token occurs, in the order the tokens were first seen. */
export type WordCounts = Map<string, number>;

/** Adds tokens to the counts, each `times` times. */
export function countWords(counts: WordCounts, tokens: readonly string[], times = 1): void {
  for (const token of tokens) if (token !== '') counts.set(token, (counts.get(token) ?? 0) + times);
}

export function sumCounts(parts: readonly WordCounts[]): WordCounts {
  const sum: WordCounts = new Map();
  for (const part of parts) for (const [word, count] of part) sum.set(word, (sum.get(word) ?? 0) + count);
  return sum;
}

/** Lines `token count`, the most frequent first, ties in the order first seen: the vocabulary of subword-nmt. */
export function formatCounts(counts: WordCounts): string {
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([token, count]) => `${token} ${count}\n`)
    .join('');
}

export function parseCounts(text: string, file = 'vocabulary'): WordCounts {
  const counts: WordCounts = new Map();
  text.split('\n').forEach((line, i, all) => {
    if (line === '' && i === all.length - 1) return;
    const [, token, count] = /^(.+) ([0-9]+)\r?$/.exec(line) ?? [];
    if (token === undefined) {
      throw new InputError(`expected a token and its count, found ${JSON.stringify(line)}`, { file, line: i + 1 });
    }
    counts.set(token, Number(count));
  });
  return counts;
}

/** Order of two strings by code points, as Python compares them; JavaScript's `<` orders UTF-16 units. */
export function compareCodePoints(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

// Surrogates stand for the code points above U+FFFF, so they come after U+E000–U+FFFF.
function rank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
