import type { Value } from '../../tensor/index.js';

/** The output of a program that holds the new steps of a cache's tensor. */
export function newName(name: string): string {
  return `new.${name}`;
}

/**
 * Keys and values of attention that are computed once and kept: several tensors [length, B, D] under their names, one
 * column for each sentence. Time-major, so that a new step is appended in place and the rest is handed to the runtime
 * without a copy.
 */
export class Cache {
  private steps = 0;

  /** @param arrays where to keep the steps; they are replaced by larger ones where they do not suffice */
  constructor(
    readonly names: readonly string[],
    readonly width: number,
    readonly batch: number,
    private capacity = 0,
    private readonly arrays: Float32Array[] = names.map(() => new Float32Array(capacity * batch * width)),
  ) {}

  /** Steps that are kept. */
  get length(): number {
    return this.steps;
  }

  /** The arrays, for another cache once this one is not used any more. */
  get storage(): Float32Array[] {
    return this.arrays;
  }

  /** What is kept, or its first steps, as inputs of a program. The views are valid until the next `append`. */
  feeds(steps = this.steps): Record<string, Value> {
    const size = steps * this.batch * this.width;
    const shape = [steps, this.batch, this.width];
    return Object.fromEntries(this.names.map((name, i) => [name, { data: this.arrays[i].subarray(0, size), shape }]));
  }

  /** Where a program can write the next `added` steps before they are appended, so that nothing has to be copied. */
  room(added: number): Record<string, Float32Array> {
    const row = this.batch * this.width;
    this.reserve(this.steps + added);
    const [from, to] = [this.steps * row, (this.steps + added) * row];
    return Object.fromEntries(this.names.map((name, i) => [newName(name), this.arrays[i].subarray(from, to)]));
  }

  /** Takes new steps [n, B, D] from the outputs of a program: `new.<name>` for each tensor of the cache. */
  append(outputs: Readonly<Record<string, Value>>): void {
    const row = this.batch * this.width;
    const added = outputs[newName(this.names[0])].shape[0];
    this.reserve(this.steps + added);
    this.names.forEach((name, i) => {
      const { data } = outputs[newName(name)];
      if (data.buffer !== this.arrays[i].buffer) this.arrays[i].set(data as Float32Array, this.steps * row);
    });
    this.steps += added;
  }

  /** An empty cache in arrays that others have left. */
  static within(names: readonly string[], width: number, batch: number, arrays: Float32Array[]): Cache {
    return new Cache(names, width, batch, Math.floor((arrays[0]?.length ?? 0) / (batch * width)), arrays);
  }

  /**
   * A cache with the given columns of this one, in that order; a column may be taken several times. With `arrays` to keep
   * them in, which are not those of this cache.
   */
  select(columns: ArrayLike<number>, arrays?: Float32Array[]): Cache {
    const taken =
      arrays === undefined
        ? new Cache(this.names, this.width, columns.length, this.capacity)
        : Cache.within(this.names, this.width, columns.length, arrays);
    taken.reserve(this.steps + 1);
    taken.steps = this.steps;
    for (let step = 0; step < this.steps; step++) {
      for (let to = 0; to < columns.length; to++) this.copyStep(step, columns[to], taken, step, to);
    }
    return taken;
  }

  /**
   * A cache with the given columns of this one, in rising order. The others are closed up in place, without a new array:
   * this object must not be used any more.
   */
  narrowed(columns: readonly number[]): Cache {
    const { width, batch, arrays, steps } = this;
    const runs = consecutive(columns);
    for (const array of arrays) {
      let to = 0;
      for (let step = 0; step < steps; step++) {
        for (const [first, count] of runs) {
          const from = (step * batch + first) * width;
          array.copyWithin(to, from, from + count * width);
          to += count * width;
        }
      }
    }
    const capacity = Math.floor(arrays[0].length / (columns.length * width));
    const narrow = new Cache(this.names, width, columns.length, capacity, arrays);
    narrow.steps = steps;
    return narrow;
  }

  /**
   * Caches of one sentence each side by side. Aligned at the `end`, shorter ones have zeros before their first step, so
   * that the next step of every sentence is appended in the same place; aligned at the `start`, after their last. With
   * `arrays` to keep them in, what they held before may stand in place of the zeros.
   */
  static join(caches: readonly Cache[], aligned: 'start' | 'end', arrays?: Float32Array[]): Cache {
    const [{ names, width }] = caches;
    const batch = caches.length;
    const length = Math.max(...caches.map((cache) => cache.length));
    const joined =
      arrays === undefined ? new Cache(names, width, batch, length + 1) : Cache.within(names, width, batch, arrays);
    joined.reserve(length + 1);
    joined.steps = length;
    caches.forEach((cache, column) => {
      const gap = aligned === 'end' ? length - cache.length : 0;
      for (let step = 0; step < cache.length; step++) cache.copyStep(step, 0, joined, step + gap, column);
    });
    return joined;
  }

  /** Forgets all but the first `length` steps. */
  truncate(length: number): void {
    this.steps = Math.min(this.steps, length);
  }

  /** Appends `count` steps of a column of another cache, from step `first` on, to this one of one sentence. */
  appendColumn(from: Cache, column: number, first: number, count: number): void {
    this.reserve(this.steps + count);
    for (let step = first; step < first + count; step++) from.copyStep(step, column, this, this.steps++, 0);
  }

  private copyStep(step: number, column: number, to: Cache, toStep: number, toColumn: number): void {
    const { width } = this;
    const from = (step * this.batch + column) * width;
    const target = (toStep * to.batch + toColumn) * width;
    for (let i = 0; i < this.arrays.length; i++) {
      to.arrays[i].set(this.arrays[i].subarray(from, from + width), target);
    }
  }

  /** Makes room for this many steps. */
  reserve(steps: number): void {
    if (steps <= this.capacity) return;
    this.capacity = Math.max(steps, 2 * this.capacity, 16);
    const size = this.capacity * this.batch * this.width;
    for (let i = 0; i < this.names.length; i++) {
      const larger = new Float32Array(size);
      // There may be room for part of a step behind the last one.
      if (this.steps > 0) larger.set(this.arrays[i].subarray(0, this.steps * this.batch * this.width));
      this.arrays[i] = larger;
    }
  }
}

/** Rising numbers as runs of neighbours: the first of each run, and how many there are. */
function consecutive(numbers: readonly number[]): [first: number, count: number][] {
  const runs: [number, number][] = [];
  for (const number of numbers) {
    const last = runs.at(-1);
    if (last !== undefined && last[0] + last[1] === number) last[1]++;
    else runs.push([number, 1]);
  }
  return runs;
}
