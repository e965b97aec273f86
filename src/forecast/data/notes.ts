/** A kind of finding, how often it was made, and the first one in full. */
export interface Note {
  readonly kind: string;
  readonly count: number;
  readonly first: string;
}

/**
 * What a reader noticed and did without stopping: counted by kind, the first of each kept as an example, so that a
 * million odd rows are one line.
 */
export class Notes {
  readonly #found = new Map<string, { count: number; first: string }>();

  add(kind: string, first: string, count = 1): void {
    const note = this.#found.get(kind);
    if (note === undefined) this.#found.set(kind, { count, first });
    else note.count += count;
  }

  list(): Note[] {
    return [...this.#found].map(([kind, note]) => ({ kind, ...note }));
  }

  count(kind: string): number {
    return this.#found.get(kind)?.count ?? 0;
  }

  /** One line a kind: `7 × member without prices (first: …)`. */
  summary(): string[] {
    return this.list().map(({ kind, count, first }) => `${count} × ${kind} (first: ${first})`);
  }
}
