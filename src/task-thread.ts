import { once } from 'node:events';
import { type MessagePort, Worker } from 'node:worker_threads';
import { builtFile } from './files.js';

/** A worker thread that answers tasks in the order in which they were sent. */
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

  /** Starts a module of the package, by its name in `dist`, that calls `answerTasks` when it is ready. */
  static async start<Task, Result>(file: string, workerData: object, title: string): Promise<TaskThread<Task, Result>> {
    const worker = new Worker(builtFile(file), { workerData });
    await once(worker, 'message');
    const seen = new TaskThread<Task, Result>(worker, title);
    // After adding listeners, which keep the process alive: a process that fails elsewhere must be able to end.
    worker.unref();
    return seen;
  }

  /** Tasks that have been sent and not answered. */
  get pending(): number {
    return this.waiting.length;
  }

  /** @param given buffers of the task to transfer to the thread: they are not copied, and no longer usable here */
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
