import type { MaskKey } from '../kernels.js';
import { type Executable, Session, type TypedArray, type Value } from '../tensor/index.js';
import type { Arena } from './arena.js';
import { parameterFeeds } from './inference.js';

/** A shard of a batch to compute the gradients of. */
export interface ShardTask {
  readonly feeds: Readonly<Record<string, Value>>;
  readonly dropoutKey?: MaskKey;
}

/** Name of the program's output that holds a parameter's gradient. */
export const gradientName = (parameter: string): string => `gradient:${parameter}`;

/** A training program with the parameters of an arena, into which it writes their gradients. */
export class Replica {
  private constructor(
    readonly arena: Arena,
    private readonly session: Session,
  ) {}

  static async create(executable: Executable, arena: Arena, threads: number): Promise<Replica> {
    return new Replica(arena, await Session.create(executable, { threads }));
  }

  /**
   * Sets the arena's gradients to the sum of those of the shards, which belong to batches of one step, and returns the
   * other outputs of each. More than one shard needs a slot in the arena: the last is overwritten.
   */
  async run(tasks: readonly ShardTask[]): Promise<Record<string, Value>[]> {
    const { arena } = this;
    const results: Record<string, Value>[] = [];
    for (const { feeds, dropoutKey } of tasks) {
      const first = results.length === 0;
      const target = (name: string): TypedArray => (first ? arena.grad(name) : arena.slot(arena.slots - 1, name));
      const into = Object.fromEntries(arena.names.map((name) => [gradientName(name), target(name)]));
      const outputs = await this.session.run({ ...feeds, ...parameterFeeds(arena) }, { into, dropoutKey });
      if (!first) addScratch(arena);
      results.push(Object.fromEntries(Object.entries(outputs).filter(([name]) => !(name in into))));
    }
    return results;
  }

  close(): Promise<void> {
    return this.session.close();
  }
}

/** Adds the last slot of an arena to the gradients. */
export function addScratch({ kernels, address, length, slots }: Arena): void {
  kernels.axpy(address.grads, address.slots[slots - 1], length, 1);
}
