import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { builtFile } from '../built-file.js';
import type { Value } from '../tensor/index.js';
import { floatsOver, type ReplicaSetup, type ShardTask } from './replica.js';

/** A worker thread with a replica of the model, seen from the trainer. It computes one shard at a time. */
export class ReplicaWorker {
  private settle: ((answer: Answer) => void) | undefined;

  private constructor(
    private readonly worker: Worker,
    /** Gradients of the shard computed last. */
    readonly grads: Float32Array | Float64Array,
  ) {
    worker.on('message', (answer: Answer) => this.settle?.(answer));
    worker.on('error', (error) => this.settle?.({ error: error.message }));
    worker.on('exit', (code) => this.settle?.({ error: `it ended with code ${code}` }));
  }

  static async start(setup: Omit<ReplicaSetup, 'sharedGrads'>): Promise<ReplicaWorker> {
    const sharedGrads = new SharedArrayBuffer(setup.sharedValues.byteLength);
    const worker = new Worker(builtFile('optim/replica-worker.js'), {
      workerData: { ...setup, sharedGrads } satisfies ReplicaSetup,
    });
    await once(worker, 'message');
    worker.unref();
    return new ReplicaWorker(worker, floatsOver(sharedGrads, setup.dtype));
  }

  /** Starts a shard at once and resolves with its outputs; its gradients are then in `grads`. */
  async run(task: ShardTask): Promise<Record<string, Value>> {
    this.worker.ref();
    const answer = new Promise<Answer>((resolve) => {
      this.settle = resolve;
    });
    this.worker.postMessage(task);
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

interface Answer {
  readonly outputs?: Record<string, Value>;
  readonly error?: string;
}
