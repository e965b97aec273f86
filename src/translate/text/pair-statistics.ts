import { compareCodePoints } from './code-points.js';

/**
 * How often each pair of neighbouring symbols occurs and in which words, with the most frequent pair at hand: an
 * indexed binary heap over the pairs under consideration, ordered by (count, left symbol, right symbol), the largest
 * first.
 *
 * Rare pairs are pruned from the heap and restored when the heap runs low. A pair that is touched again while pruned
 * begins anew at zero; when it is pruned the next time, a loss is subtracted from its remembered count, but a gain
 * replaces it. Subword-nmt keeps its books this way, and merges late in a long list depend on it.
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
