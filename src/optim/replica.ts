import { once } from 'node:events';
import { type MessagePort, Worker } from 'node:worker_threads';
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

/** A worker thread that answers tasks one after the other, in the order in which they were sent. */
export class TaskThread<Task, Result> {
  private readonly waiting: ((answer: Answer<Result>) => void)[] = [];
  private failure: string | undefined;

  private constructor(
    private readonly worker: Worker,
    private readonly title: string,
  ) {
    worker.on('message', (answer: Answer<Result>) => this.settle(answer));
    worker.on('error', ({ message }) => this.fail(message));
    worker.on('exit', (code) => this.fail(`it ended with code ${code}`));
  }

  /** Starts a module of the build, which says 'ready' when it is. */
  static async start<Task, Result>(
    module: string,
    workerData: object,
    title: string,
  ): Promise<TaskThread<Task, Result>> {
    const worker = new Worker(builtFile(module), { workerData });
    await once(worker, 'message');
    const seen = new TaskThread<Task, Result>(worker, title);
    // After the listeners, which count as a reason to wait: a process that fails elsewhere must be able to end.
    worker.unref();
    return seen;
  }

  /** Tasks that have been sent and not answered. */
  get pending(): number {
    return this.waiting.length;
  }

  /** @param given buffers of the task that the thread may have: they are not copied, and gone from here */
  async run(task: Task, given: readonly ArrayBuffer[] = []): Promise<Result> {
    const answer = new Promise<Answer<Result>>((resolve) => {
      if (this.failure === undefined) this.waiting.push(resolve);
      else resolve({ error: this.failure });
    });
    this.worker.ref();
    this.worker.postMessage(task, [...given]);
    const { result, error } = await answer;
    if (result === undefined) throw new Error(`a ${this.title} failed: ${error}`);
    return result;
  }

  async stop(): Promise<void> {
    await this.worker.terminate();
  }

  private settle(answer: Answer<Result>): void {
    this.waiting.shift()?.(answer);
    if (this.waiting.length === 0) this.worker.unref();
  }

  private fail(error: string): void {
    this.failure ??= error;
    for (const resolve of this.waiting.splice(0)) resolve({ error });
  }
}

/** What a `TaskThread` sends back. */
export interface Answer<Result> {
  readonly result?: Result;
  readonly error?: string;
}

/** The thread's side of a `TaskThread`: answers each task with its result, or with the error's message. */
export function answerTasks<Task, Result>(port: MessagePort, work: (task: Task) => Promise<Result>): void {
  let last = Promise.resolve();
  const send = (answer: Answer<Result>): void => port.postMessage(answer);
  port.on('message', (task: Task) => {
    last = last
      .then(() => work(task))
      .then(
        (result) => send({ result }),
        (error: unknown) => send({ error: error instanceof Error ? error.message : String(error) }),
      );
  });
  port.postMessage('ready');
}

/** A worker thread with a replica of the model, seen from the trainer. */
export class ReplicaWorker {
  private constructor(
    private readonly thread: TaskThread<readonly ShardTask[], Record<string, Value>[]>,
    /** Sum of the gradients of the shards computed last. */
    readonly grads: Float32Array | Float64Array,
  ) {}

  static async start({
    gradBytes,
    ...setup
  }: Omit<WorkerSetup, 'sharedGrads'> & { readonly gradBytes: number }): Promise<ReplicaWorker> {
    const sharedGrads = new SharedArrayBuffer(gradBytes);
    const data: WorkerSetup = { ...setup, sharedGrads };
    const thread = await TaskThread.start<readonly ShardTask[], Record<string, Value>[]>(
      'optim/replica-worker.js',
      data,
      'training worker',
    );
    return new ReplicaWorker(thread, floatsOver(sharedGrads, setup.dtype));
  }

  /** Starts shards at once and resolves with the outputs of each; their gradients are then in `grads`. */
  run(tasks: readonly ShardTask[]): Promise<Record<string, Value>[]> {
    return this.thread.run(tasks);
  }

  stop(): Promise<void> {
    return this.thread.stop();
  }
}

/** The whole buffer as numbers of the given type. */
export function floatsOver(buffer: SharedArrayBuffer, dtype: 'f32' | 'f64'): Float32Array | Float64Array {
  return dtype === 'f32' ? new Float32Array(buffer) : new Float64Array(buffer);
}
