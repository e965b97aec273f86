import { Worker } from 'node:worker_threads';
import { InputError } from '../errors.js';
import { builtFile } from '../files.js';
import type { CheckpointChoice } from '../translate/index.js';

/** What the thread can be asked for, and what it answers. */
export interface RunQuestions {
  /** The folder of a run; undefined if there is none of that name. */
  folder(id: string): string | undefined;
  /** JSON of every run in a line. */
  list(): string;
  /** JSON of all that the page shows of a run. */
  report(id: string): string;
  /** JSON of what the scheduler of a run prefers. */
  scheduler(id: string): string;
  /** JSON of what can be translated with. */
  translation(): string;
  /** Writes a run's model for a device of the page into its own folder below the given one. */
  exportModel(id: string, into: string, device: ExportDevice): ExportedModel;
}

/** What a model in the page is written for: WebAssembly takes the CPU's form. */
export type ExportDevice = 'cpu' | 'webgpu';

/** The model of a run as files that are compressed with gzip. */
export interface ExportedModel {
  /** Changes with the checkpoint. */
  readonly stamp: string;
  readonly folder: string;
  readonly files: readonly string[];
}

export interface RunQuestion {
  readonly request: number;
  readonly name: keyof RunQuestions;
  readonly values: readonly string[];
}

export interface RunAnswer {
  readonly request: number;
  readonly value?: unknown;
  readonly error?: { readonly message: string; readonly isInput: boolean };
}

/** A model that comes with the tool. */
export interface BuiltInModel {
  /** Its run folder; nothing is written to it. */
  readonly folder: string;
  /** What it was trained on, in words that follow its name. */
  readonly about: string;
}

export interface RunThreadData {
  /** It need not be there yet. */
  readonly folder: string;
  readonly builtIn?: BuiltInModel;
  readonly browser: boolean;
  readonly checkpoint?: CheckpointChoice;
  /** As `LiveModelOptions` has them. */
  readonly modules?: readonly string[];
}

/**
 * Reads run folders in its own thread: whatever lies in them, a huge log or configuration or thousands of runs,
 * sentences under way and other requests continue meanwhile. The thread starts with the first
 * question.
 */
export class RunReader {
  private worker: Worker | undefined;
  private readonly waiting = new Map<number, { resolve(value: never): void; reject(error: Error): void }>();
  private count = 0;
  private failure: Error | undefined;

  constructor(private readonly data: RunThreadData) {}

  private start(): Worker {
    const worker = new Worker(builtFile('serve/run-thread.js'), { workerData: this.data });
    worker.on('message', ({ request, value, error }: RunAnswer) => {
      const { resolve, reject } = this.waiting.get(request) ?? {};
      this.waiting.delete(request);
      if (error === undefined) resolve?.(value as never);
      else reject?.(error.isInput ? new InputError(error.message) : new Error(error.message));
    });
    worker.on('error', (error) => this.fail(error));
    worker.on('exit', () => this.fail(new Error('the thread that reads the runs has ended')));
    return worker;
  }

  ask<K extends keyof RunQuestions>(
    name: K,
    ...values: Parameters<RunQuestions[K]>
  ): Promise<ReturnType<RunQuestions[K]>> {
    if (this.failure !== undefined) return Promise.reject(this.failure);
    if (this.waiting.size >= MOST) return Promise.reject(new InputError('the server is busy reading runs; try later'));
    return new Promise((resolve, reject) => {
      const request = ++this.count;
      this.waiting.set(request, { resolve, reject });
      this.worker ??= this.start();
      this.worker.postMessage({ request, name, values } satisfies RunQuestion);
    });
  }

  async close(): Promise<void> {
    this.failure ??= new Error('the server is stopping');
    await this.worker?.terminate();
  }

  private fail(error: Error): void {
    this.failure ??= error;
    for (const { reject } of this.waiting.values()) reject(error);
    this.waiting.clear();
  }
}

/** Questions that may wait for an answer. */
const MOST = 500;
