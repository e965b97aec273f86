import { type BpeCodes, endOfWord } from './bpe-codes.js';
import { PairStatistics } from './pair-statistics.js';

export interface BpeLearning {
  /** Number of merge operations to learn. */
  readonly symbols: number;
  /** Stop when no pair occurs this often. Default 2. */
  readonly minFrequency?: number;
  /** `symbols` counts the characters too, an estimate of the vocabulary's size. Default false. */
  readonly totalSymbols?: boolean;
}

/**
 * Learns byte pair encoding from word counts: the most frequent pair of neighbouring symbols becomes a new symbol,
 * again and again. Joint learning is learning from the summed counts of both languages.
 *
 * The result is the one of subword-nmt 0.3.8 to the byte. Two traits of its bookkeeping influence which pair is next
 * and are therefore kept: see `PairStatistics` for its pruning, and `recount` below. (It differs in words that contain
 * Unicode spaces, at which subword-nmt's pattern matching sees a symbol boundary.)
 */
export function learnBpe(counts: ReadonlyMap<string, number>, options: BpeLearning): BpeCodes {
  const { minFrequency = 2, totalSymbols = false } = options;
  const symbols = new SymbolTable();
  const words = splitWords(counts, symbols);
  const statistics = new PairStatistics(symbols.names);
  for (let w = 0; w < words.length; w++) {
    const { symbols: word, count } = words[w];
    for (let i = 1; i < word.length; i++) statistics.change(word[i - 1], word[i], count, w, 1);
  }
  statistics.remember();

  const merges: [string, string][] = [];
  const limit = options.symbols - (totalSymbols ? symbols.names.length : 0);
  let threshold = statistics.largest() / 10;
  for (let i = 0; i < limit && statistics.pairs > 0; i++) {
    if (statistics.size === 0 || (i > 0 && statistics.largest() < threshold)) {
      statistics.prune(threshold);
      statistics.restore();
      threshold = (statistics.largest() * i) / (i + 10000);
      statistics.prune(threshold);
    }
    if (statistics.largest() < minFrequency) break;
    const { left, right, words: holders } = statistics.take();
    merges.push([symbols.names[left], symbols.names[right]]);
    const merged = symbols.id(symbols.names[left] + symbols.names[right]);
    for (const w of holders) {
      const before = words[w].symbols;
      const after = mergePair(before, left, right, merged);
      words[w].symbols = after;
      recount(statistics, before, after, left, right, merged, words[w].count, w);
    }
    statistics.clear(left, right);
    if (i % 100 === 0) statistics.prune(threshold);
  }
  return { version: '0.2', merges };
}

interface Word {
  symbols: readonly number[];
  readonly count: number;
}

class SymbolTable {
  readonly names: string[] = [];
  private readonly ids = new Map<string, number>();

  id(name: string): number {
    let id = this.ids.get(name);
    if (id === undefined) {
      id = this.names.length;
      this.ids.set(name, id);
      this.names.push(name);
    }
    return id;
  }
}

function splitWords(counts: ReadonlyMap<string, number>, symbols: SymbolTable): Word[] {
  const words: Word[] = [];
  for (const [text, count] of counts) {
    const characters = Array.from(text);
    characters[characters.length - 1] += endOfWord;
    words.push({ symbols: characters.map((character) => symbols.id(character)), count });
  }
  return words;
}

/** Replaces every `left right` by `merged`, from left to right. */
function mergePair(word: readonly number[], left: number, right: number, merged: number): number[] {
  const result: number[] = [];
  for (let i = 0; i < word.length; i++) {
    if (word[i] === left && word[i + 1] === right) {
      result.push(merged);
      i++;
    } else {
      result.push(word[i]);
    }
  }
  return result;
}

/**
 * Updates the statistics around a merge: in A B C D, merging B C takes one from A B and C D and gives one to A BC and
 * BC D. The gains are counted at every BC of the new word. Where a BC existed already (made by another merge, th+e and
 * t+he), its neighbours are counted once more: subword-nmt does so, and the order of merges depends on it.
 */
function recount(
  statistics: PairStatistics,
  before: readonly number[],
  after: readonly number[],
  left: number,
  right: number,
  merged: number,
  count: number,
  w: number,
): void {
  for (let i = 0; i + 1 < before.length; i++) {
    if (before[i] !== left || before[i + 1] !== right) continue;
    if (i > 0) statistics.change(before[i - 1], left, -count, w, -1);
    // In B C B C the pair C B is taken once, as the left neighbour of the second occurrence.
    const followed = before[i + 2] === left && before[i + 3] === right;
    if (i + 2 < before.length && !followed) statistics.change(right, before[i + 2], -count, w, -1);
    i++;
  }
  for (let i = 0; i < after.length; i++) {
    if (after[i] !== merged) continue;
    if (i > 0) statistics.change(after[i - 1], merged, count, w, 1);
    if (i + 1 < after.length && after[i + 1] !== merged) statistics.change(merged, after[i + 1], count, w, 1);
  }
}
