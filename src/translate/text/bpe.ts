import { InputError } from '../../errors.js';

/** Ends every subword unit but the last of a word. */
export const separator = '@@';

export interface BpeOptions {
  /** Use this many merge operations. Default all. */
  readonly merges?: number;
  /** Units (with `@@` if they end inside a word) that may be produced; others are split again. Default all. */
  readonly vocabulary?: ReadonlySet<string>;
  /** Patterns of words or parts of words that stay whole. Default none. */
  readonly glossaries?: readonly string[];
}

/** Splits one word into subword units, each but the last ending in `@@`. */
export type BpeSegmenter = (word: string) => readonly string[];

// A bound on memory, not a tuning knob: beyond it the cache is emptied.
const cachedWords = 1 << 18;

/** Applies byte pair encoding as subword-nmt's apply-bpe does, with a cache of the words seen. */
export function bpeSegmenter(codes: BpeCodes, options: BpeOptions = {}): BpeSegmenter {
  const merging = mergeTable(codes, options.merges);
  const isolate = glossaryIsolator(options.glossaries ?? []);
  const cache = new Map<string, readonly string[]>();

  const encode = (part: string, whole: boolean): readonly string[] => {
    const characters = Array.from(part);
    if (whole || characters.length === 1) return [part];
    const units = applyMerges(characters, merging);
    return options.vocabulary ? splitUnknown(units, merging.parents, options.vocabulary) : units;
  };

  return (word) => {
    let units = cache.get(word);
    if (units === undefined) {
      const parts = isolate(word).flatMap(({ text, whole }) => encode(text, whole));
      units = parts.map((unit, i) => (i + 1 < parts.length ? unit + separator : unit));
      if (cache.size >= cachedWords) cache.clear();
      cache.set(word, units);
    }
    return units;
  };
}

/** Joins units into words; a unit left open at the end counts as complete. */
export function joinUnits(units: readonly string[]): string[] {
  const words: string[] = [];
  let open = '';
  for (const unit of units) {
    if (unit.endsWith(separator)) {
      open += unit.slice(0, -separator.length);
    } else {
      words.push(open + unit);
      open = '';
    }
  }
  if (open !== '') words.push(open);
  return words;
}

interface MergeTable {
  readonly version: BpeCodes['version'];
  readonly ids: ReadonlyMap<string, number>;
  readonly names: readonly string[];
  /** Key of a pair of symbols → its rank (order of learning). */
  readonly ranks: ReadonlyMap<number, number>;
  /** Rank → the symbol the merge makes. */
  readonly results: Int32Array;
  /** Symbol → the two symbols its merge joined, for undoing it. */
  readonly parents: ReadonlyMap<string, readonly [string, string]>;
}

// Symbols are numbered from 1; 0 is any character that no merge knows.
const pairKey = (left: number, right: number): number => left * 2 ** 26 + right;

function mergeTable(codes: BpeCodes, limit = codes.merges.length): MergeTable {
  const ids = new Map<string, number>();
  const names: string[] = [''];
  const id = (name: string): number => {
    let found = ids.get(name);
    if (found === undefined) {
      found = names.length;
      ids.set(name, found);
      names.push(name);
    }
    return found;
  };
  const merges = codes.merges.slice(0, limit);
  const ranks = new Map<number, number>();
  const results = new Int32Array(merges.length);
  const parents = new Map<string, readonly [string, string]>();
  merges.forEach(([left, right], rank) => {
    const key = pairKey(id(left), id(right));
    if (ranks.has(key)) return;
    ranks.set(key, rank);
    results[rank] = id(left + right);
  });
  // Of several ways to make a symbol, subword-nmt undoes the one learned first.
  for (let rank = merges.length - 1; rank >= 0; rank--) parents.set(merges[rank].join(''), merges[rank]);
  return { version: codes.version, ids, names, ranks, results, parents };
}

/**
 * Repeats: take the pair of lowest rank and merge all its occurrences from left to right. A queue ordered by rank and
 * position over a linked list keeps a word of n characters at O(n log n), so a line without spaces costs no more
 * than its words would.
 */
function applyMerges(characters: readonly string[], table: MergeTable): string[] {
  const symbols = [...characters];
  if (table.version === '0.2') symbols[symbols.length - 1] += endOfWord;
  else symbols.push(endOfWord);
  const n = symbols.length;
  const current = new Int32Array(n);
  const next = new Int32Array(n);
  const previous = new Int32Array(n);
  for (let i = 0; i < n; i++) {
    current[i] = table.ids.get(symbols[i]) ?? 0;
    next[i] = i + 1;
    previous[i] = i - 1;
  }
  const rankAt = (i: number): number | undefined =>
    next[i] < n ? table.ranks.get(pairKey(current[i], current[next[i]])) : undefined;

  const queue = new RankQueue(n);
  for (let i = 0; i < n; i++) queue.add(rankAt(i), i);
  while (queue.size > 0) {
    const rank = queue.rank();
    const touched: number[] = [];
    while (queue.size > 0 && queue.rank() === rank) {
      const i = queue.pop();
      if (current[i] < 0 || rankAt(i) !== rank) continue; // merged away or changed since it was queued
      const absorbed = next[i];
      current[i] = table.results[rank];
      current[absorbed] = -1;
      next[i] = next[absorbed];
      if (next[i] < n) previous[next[i]] = i;
      symbols[i] = table.names[current[i]];
      touched.push(i);
    }
    for (const i of touched) {
      if (current[i] < 0) continue;
      queue.add(rankAt(i), i);
      if (previous[i] >= 0) queue.add(rankAt(previous[i]), previous[i]);
    }
  }

  const units: string[] = [];
  for (let i = 0; i < n; i = next[i]) units.push(symbols[i]);
  const last = units[units.length - 1];
  if (last === endOfWord) units.pop();
  else if (last.endsWith(endOfWord)) units[units.length - 1] = last.slice(0, -endOfWord.length);
  return units;
}

/** A binary heap of positions, smallest (rank, position) first; both in one number. */
class RankQueue {
  private readonly heap: number[] = [];

  constructor(private readonly positions: number) {}

  get size(): number {
    return this.heap.length;
  }

  rank(): number {
    return Math.floor(this.heap[0] / this.positions);
  }

  add(rank: number | undefined, position: number): void {
    if (rank === undefined) return;
    const { heap } = this;
    const key = rank * this.positions + position;
    let i = heap.push(key) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (heap[parent] <= key) break;
      heap[i] = heap[parent];
      i = parent;
    }
    heap[i] = key;
  }

  pop(): number {
    const { heap } = this;
    const top = heap[0];
    const key = heap.pop()!;
    if (heap.length > 0) {
      let i = 0;
      for (;;) {
        let child = 2 * i + 1;
        if (child >= heap.length) break;
        if (child + 1 < heap.length && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= key) break;
        heap[i] = heap[child];
        i = child;
      }
      heap[i] = key;
    }
    return top % this.positions;
  }
}

/** Undoes merges until every unit is in the vocabulary or cannot be split further. */
function splitUnknown(
  units: readonly string[],
  parents: ReadonlyMap<string, readonly [string, string]>,
  vocabulary: ReadonlySet<string>,
): string[] {
  const result: string[] = [];
  const pending = units.map((text, i) => ({ text, final: i === units.length - 1 })).reverse();
  while (pending.length > 0) {
    const { text, final } = pending.pop()!;
    const halves = vocabulary.has(final ? text : text + separator)
      ? undefined
      : parents.get(final ? text + endOfWord : text);
    if (halves === undefined) {
      result.push(text);
      continue;
    }
    const [left, right] = halves;
    if (right !== endOfWord) pending.push({ text: final ? right.slice(0, -endOfWord.length) : right, final });
    pending.push({ text: left, final: false });
  }
  return result;
}

interface Part {
  readonly text: string;
  readonly whole: boolean;
}

function glossaryIsolator(glossaries: readonly string[]): (word: string) => Part[] {
  if (glossaries.length === 0) return (word) => [{ text: word, whole: false }];
  const patterns = glossaries.map((glossary) => {
    try {
      return { exact: new RegExp(`^(?:${glossary})$`, 'u'), inside: new RegExp(glossary, 'gu') };
    } catch {
      throw new InputError(`the glossary ${JSON.stringify(glossary)} is not a regular expression`);
    }
  });
  return (word) => {
    let parts = [word];
    for (const { exact, inside } of patterns) {
      parts = parts.flatMap((part) => (exact.test(part) ? [part] : cutOut(part, inside)));
    }
    return parts.map((text) => ({ text, whole: patterns.some(({ exact }) => exact.test(text)) }));
  };
}

/** `1934USABUSA` with the glossary `USA` → 1934, USA, B, USA. */
function cutOut(text: string, glossary: RegExp): string[] {
  const parts: string[] = [];
  let end = 0;
  for (const match of text.matchAll(glossary)) {
    parts.push(text.slice(end, match.index), match[0]);
    end = match.index + match[0].length;
  }
  parts.push(text.slice(end));
  return parts.filter((part) => part !== '');
}

/** Merge operations of byte pair encoding in the order they were learned (Sennrich et al. 2016). */
export interface BpeCodes {
  /**
   * How the end of a word is written: 0.2 marks its last character (`n</w>`), 0.1, which files without a header
   * have, adds its own symbol (`n </w>`).
   */
  readonly version: '0.1' | '0.2';
  readonly merges: readonly (readonly [string, string])[];
}

export const endOfWord = '</w>';

/** Reads subword-nmt's file format: a `#version` header, then two symbols per line. */
export function parseBpeCodes(text: string, file = 'BPE codes'): BpeCodes {
  const lines = text.replace(/\n+$/, '').split('\n');
  const header = /^#version:\s*(\S+)/.exec(lines[0]);
  if (header && header[1] !== '0.1' && header[1] !== '0.2') {
    throw new InputError(`BPE codes of version ${header[1]} are not known, expected 0.1 or 0.2`, { file, line: 1 });
  }
  const first = header ? 1 : 0;
  const merges = lines.slice(first).map((line, i): [string, string] => {
    const symbols = line.replace(/^[\r ]+|[\r ]+$/g, '').split(' ');
    if (symbols.length !== 2 || symbols.includes('')) {
      throw new InputError(`expected two subword units separated by a space, found ${JSON.stringify(line)}`, {
        file,
        line: first + i + 1,
      });
    }
    return [symbols[0], symbols[1]];
  });
  return { version: header?.[1] === '0.2' ? '0.2' : '0.1', merges };
}

export function formatBpeCodes(codes: BpeCodes): string {
  const header = codes.version === '0.2' ? '#version: 0.2\n' : '';
  return header + codes.merges.map(([left, right]) => `${left} ${right}\n`).join('');
}
