import { type Executable, type Run, Session, type TypedArray, type Value } from '../tensor/index.js';
import type { Arena, Floats } from './arena.js';
import { parameterFeeds } from './inference.js';

/** A shard of a batch to compute the gradients of. */
export interface ShardTask {
  readonly feeds: Readonly<Record<string, Value>>;
  readonly dropoutKey?: Run['dropoutKey'];
}

/** Name of the program's output that holds a parameter's gradient. */
export const gradientName = (parameter: string): string => `gradient:${parameter}`;

/** A training program with the parameters of an arena, into which it writes their gradients. */
export class Replica {
  /** Gradients of a shard on their way into the sum: made when a step has more than one for the first time. */
  private scratch: Floats | undefined;

  private constructor(
    readonly arena: Arena,
    private readonly session: Session,
  ) {}

  static async create(executable: Executable, arena: Arena, threads: number): Promise<Replica> {
    return new Replica(arena, await Session.create(executable, { threads }));
  }

  /**
   * Sets the arena's gradients to the sum of those of the shards, which belong to batches of one step, and returns the
   * other outputs of each.
   */
  async run(tasks: readonly ShardTask[]): Promise<Record<string, Value>[]> {
    const { arena } = this;
    const results: Record<string, Value>[] = [];
    for (const { feeds, dropoutKey } of tasks) {
      const grads = results.length === 0 ? arena.grads : this.ownScratch();
      const into: Record<string, TypedArray> = Object.fromEntries(
        arena.names.map((name) => [gradientName(name), arena.view(grads, name)]),
      );
      const outputs = await this.session.run({ ...feeds, ...parameterFeeds(arena) }, { into, dropoutKey });
      if (grads !== arena.grads) arena.addToGrads(grads);
      results.push(Object.fromEntries(Object.entries(outputs).filter(([name]) => !(name in into))));
    }
    return results;
  }

  close(): Promise<void> {
    return this.session.close();
  }

  private ownScratch(): Floats {
    this.scratch ??= this.arena.newArray();
    return this.scratch;
  }
}
