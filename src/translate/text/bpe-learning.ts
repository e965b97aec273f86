import { type BpeCodes, endOfWord } from './bpe.js';
import { compareCodePoints } from './vocabulary.js';

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
 * The result equals that of subword-nmt 0.3.8 byte for byte. Two traits of its bookkeeping affect which pair is next
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

/**
 * How often each pair of neighbouring symbols occurs and in which words, and the most frequent pair: an
 * indexed binary heap over the pairs under consideration, ordered by (count, left symbol, right symbol), the largest
 * first.
 *
 * Rare pairs are pruned from the heap and restored when the heap runs low. A pair that is touched again while pruned
 * restarts at zero; when it is pruned the next time, a loss is subtracted from its remembered count, but a gain
 * replaces it. Subword-nmt does so, and merges late in a long list depend on it.
 */
export class PairStatistics {
  private readonly ids = new Map<number, number>();
  private readonly left: number[] = [];
  private readonly right: number[] = [];
  private readonly count: number[] = [];
  private readonly remembered: number[] = [];
  /** Words that gained (w) or lost (~w) an occurrence, in order of time. */
  private readonly changes: number[][] = [];
  private heap: number[] = [];
  /** Position of a pair in the heap, −1 when it is not there. */
  private readonly position: number[] = [];

  constructor(private readonly names: readonly string[]) {}

  /** Pairs ever seen. */
  get pairs(): number {
    return this.left.length;
  }

  /** Pairs under consideration. */
  get size(): number {
    return this.heap.length;
  }

  /** Count of the most frequent pair. */
  largest(): number {
    return this.heap.length === 0 ? 0 : this.count[this.heap[0]];
  }

  /** The most frequent pair and the words that hold it. */
  take(): { left: number; right: number; words: number[] } {
    const pair = this.heap[0];
    const occurrences = new Map<number, number>();
    for (const change of this.changes[pair]) {
      const word = change < 0 ? ~change : change;
      occurrences.set(word, (occurrences.get(word) ?? 0) + (change < 0 ? -1 : 1));
    }
    this.changes[pair] = [];
    const words: number[] = [];
    for (const [word, n] of occurrences) if (n > 0) words.push(word);
    return { left: this.left[pair], right: this.right[pair], words };
  }

  change(left: number, right: number, amount: number, word: number, occurrences: 1 | -1): void {
    const pair = this.pair(left, right);
    this.changes[pair].push(occurrences > 0 ? word : ~word);
    if (this.position[pair] < 0) {
      this.count[pair] = 0;
      this.position[pair] = this.heap.length;
      this.heap.push(pair);
    }
    this.count[pair] += amount;
    this.settle(this.position[pair]);
  }

  /** The pair has been merged everywhere. */
  clear(left: number, right: number): void {
    const pair = this.pair(left, right);
    this.count[pair] = 0;
    this.settle(this.position[pair]);
  }

  remember(): void {
    for (let pair = 0; pair < this.pairs; pair++) this.remembered[pair] = this.count[pair];
  }

  prune(threshold: number): void {
    const kept: number[] = [];
    for (const pair of this.heap) {
      const count = this.count[pair];
      if (count >= threshold) {
        kept.push(pair);
      } else {
        this.remembered[pair] = count < 0 ? this.remembered[pair] + count : count;
        this.position[pair] = -1;
      }
    }
    this.build(kept);
  }

  restore(): void {
    for (let pair = 0; pair < this.pairs; pair++) this.count[pair] = this.remembered[pair];
    this.build(Array.from({ length: this.pairs }, (_, pair) => pair));
  }

  private pair(left: number, right: number): number {
    const key = left * 2 ** 26 + right;
    let pair = this.ids.get(key);
    if (pair === undefined) {
      pair = this.left.length;
      this.ids.set(key, pair);
      this.left.push(left);
      this.right.push(right);
      this.count.push(0);
      this.remembered.push(0);
      this.changes.push([]);
      this.position.push(-1);
    }
    return pair;
  }

  private build(heap: number[]): void {
    this.heap = heap;
    for (let i = 0; i < heap.length; i++) this.position[heap[i]] = i;
    for (let i = (heap.length >> 1) - 1; i >= 0; i--) this.sink(i);
  }

  private settle(i: number): void {
    if (i > 0 && this.precedes(this.heap[i], this.heap[(i - 1) >> 1])) this.rise(i);
    else this.sink(i);
  }

  private rise(start: number): void {
    const { heap, position } = this;
    const pair = heap[start];
    let i = start;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!this.precedes(pair, heap[parent])) break;
      heap[i] = heap[parent];
      position[heap[i]] = i;
      i = parent;
    }
    heap[i] = pair;
    position[pair] = i;
  }

  private sink(start: number): void {
    const { heap, position } = this;
    const pair = heap[start];
    let i = start;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && this.precedes(heap[child + 1], heap[child])) child++;
      if (!this.precedes(heap[child], pair)) break;
      heap[i] = heap[child];
      position[heap[i]] = i;
      i = child;
    }
    heap[i] = pair;
    position[pair] = i;
  }

  private precedes(a: number, b: number): boolean {
    const difference = this.count[a] - this.count[b];
    if (difference !== 0) return difference > 0;
    const { left, right, names } = this;
    if (left[a] !== left[b]) return compareCodePoints(names[left[a]], names[left[b]]) > 0;
    return compareCodePoints(names[right[a]], names[right[b]]) > 0;
  }
}
