import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { builtFile } from '../files.js';
import { type Executable, type Run, Session, type TypedArray, type Value } from '../tensor/index.js';
import type { Arena, Floats, ParameterSpec } from './arena.js';
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
        arena.trained.map((name) => [gradientName(name), arena.view(grads, name)]),
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

/** Everything one worker needs to compute gradients of shards; sent to it once. */
export interface WorkerSetup {
  readonly executable: Executable;
  readonly parameters: readonly ParameterSpec[];
  readonly dtype: 'f32' | 'f64';
  /** Current parameters, written by the trainer before each step. */
  readonly sharedValues: SharedArrayBuffer;
  /** This worker's gradients, read by the trainer after each step. */
  readonly sharedGrads: SharedArrayBuffer;
}

/** A worker thread with a replica of the model, seen from the trainer. */
export class ReplicaWorker {
  private settle: ((answer: Answer) => void) | undefined;

  private constructor(
    private readonly worker: Worker,
    /** Sum of the gradients of the shards computed last. */
    readonly grads: Float32Array | Float64Array,
  ) {
    worker.on('message', (answer: Answer) => this.settle?.(answer));
    worker.on('error', (error) => this.settle?.({ error: error.message }));
    worker.on('exit', (code) => this.settle?.({ error: `it ended with code ${code}` }));
  }

  static async start({
    gradBytes,
    ...setup
  }: Omit<WorkerSetup, 'sharedGrads'> & { readonly gradBytes: number }): Promise<ReplicaWorker> {
    const sharedGrads = new SharedArrayBuffer(gradBytes);
    const worker = new Worker(builtFile('optim/replica-worker.js'), {
      workerData: { ...setup, sharedGrads } satisfies WorkerSetup,
    });
    await once(worker, 'message');
    const seen = new ReplicaWorker(worker, floatsOver(sharedGrads, setup.dtype));
    // After the listeners, which count as a reason to wait: a process that fails elsewhere must be able to end.
    worker.unref();
    return seen;
  }

  /** Starts shards at once and resolves with the outputs of each; their gradients are then in `grads`. */
  async run(tasks: readonly ShardTask[]): Promise<Record<string, Value>[]> {
    this.worker.ref();
    const answer = new Promise<Answer>((resolve) => {
      this.settle = resolve;
    });
    this.worker.postMessage(tasks);
    const { outputs, error } = await answer;
    this.settle = undefined;
    this.worker.unref();
    if (outputs === undefined) throw new Error(`a training worker failed: ${error}`);
    return outputs;
  }

  async stop(): Promise<void> {
    await this.worker.terminate();
  }
}

/** The whole buffer as numbers of the given type. */
export function floatsOver(buffer: SharedArrayBuffer, dtype: 'f32' | 'f64'): Float32Array | Float64Array {
  return dtype === 'f32' ? new Float32Array(buffer) : new Float64Array(buffer);
}

interface Answer {
  readonly outputs?: Record<string, Value>[];
  readonly error?: string;
}
