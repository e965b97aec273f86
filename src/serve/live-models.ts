import { Worker } from 'node:worker_threads';
import { InputError } from '../errors.js';
import { builtFile } from '../files.js';
import type { ArrivingWord } from '../translate/text/arriving.js';
import type { LiveModelOptions } from './live-model.js';
import type { SentenceListener } from './live-sentence.js';
import type { FromModelThread, ModelThreadData, ToModelThread } from './model-thread.js';
import { checkpointStamp } from './run-folders.js';

/** A sentence that a model's thread is translating. After `close` its listener is not called again. */
export interface ThreadSentence {
  push(words: readonly ArrivingWord[]): void;
  end(): void;
  changePolicy(policy: string): void;
  close(): void;
  /** Resolves when everything requested so far is done. */
  settled(): Promise<void>;
}

export interface ThreadListener extends SentenceListener {
  /** The policy was accepted. */
  onBegun(): void;
}

/**
 * A model in its own thread. Opening it, tokenising words and running it never block the server,
 * and a model that fails affects only its own sentences.
 */
export class ThreadModel {
  private readonly sentences = new Map<number, ThreadListener>();
  private readonly settling = new Map<number, () => void>();
  private readonly worker: Worker;
  private readonly ended: Promise<void>;
  /** Number of the last sentence or request to settle. */
  private count = 0;
  private isOver = false;

  private constructor(data: ModelThreadData) {
    this.worker = new Worker(builtFile('serve/model-thread.js'), { workerData: data });
    this.ended = new Promise((resolve) => this.worker.once('exit', () => resolve()));
    this.worker.on('error', (error) => this.failAll(error));
    this.worker.once('exit', (code) => this.failAll(new Error(`the thread of a model ended with code ${code}`)));
  }

  static open(run: string, options: LiveModelOptions): Promise<ThreadModel> {
    return new Promise((resolve, reject) => {
      const { beam, earlyEnd, lengthPenalty, speculate, threads, device, checkpoint, modules } = options;
      const sent = { beam, earlyEnd, lengthPenalty, speculate, threads, device, checkpoint, modules };
      const model = new ThreadModel({ run, options: sent });
      model.worker.once('error', reject);
      model.worker.on('message', (message: FromModelThread) => {
        if (message.type === 'open') resolve(model);
        else if (message.type === 'failed') reject(errorOf(message));
        else model.receive(message);
      });
    });
  }

  begin(policy: string, listener: ThreadListener): ThreadSentence {
    const id = ++this.count;
    this.sentences.set(id, listener);
    this.send({ type: 'begin', id, policy });
    const forSentence = (message: ToModelThread): void => {
      if (this.sentences.has(id)) this.send(message);
    };
    return {
      push: (words) => forSentence({ type: 'words', id, words }),
      end: () => forSentence({ type: 'end', id }),
      changePolicy: (spec) => forSentence({ type: 'policy', id, policy: spec }),
      close: () => {
        forSentence({ type: 'stop', id });
        this.sentences.delete(id);
      },
      settled: () =>
        new Promise((resolve) => {
          if (!this.sentences.has(id) || this.isOver) return resolve();
          const request = ++this.count;
          this.settling.set(request, resolve);
          this.send({ type: 'settle', id, request });
        }),
    };
  }

  async close(): Promise<void> {
    this.send({ type: 'close' });
    await this.ended;
  }

  private send(message: ToModelThread): void {
    if (!this.isOver) this.worker.postMessage(message);
  }

  private receive(message: Exclude<FromModelThread, { type: 'open' | 'failed' }>): void {
    if (message.type === 'settled') {
      this.settling.get(message.request)?.();
      this.settling.delete(message.request);
      return;
    }
    const listener = this.sentences.get(message.id);
    if (message.type === 'done' || message.type === 'error') this.sentences.delete(message.id);
    if (message.type === 'begun') listener?.onBegun();
    else if (message.type === 'event') listener?.onEvent(message.event);
    else if (message.type === 'text') listener?.onText(message.text);
    else if (message.type === 'done') listener?.onDone(message.endedEarly);
    else listener?.onError(errorOf(message));
  }

  private failAll(error: unknown): void {
    this.isOver = true;
    const listeners = [...this.sentences.values()];
    this.sentences.clear();
    for (const listener of listeners) listener.onError(error);
    for (const resolve of this.settling.values()) resolve();
    this.settling.clear();
  }

  /** Its thread has ended. */
  get over(): boolean {
    return this.isOver;
  }
}

function errorOf({ message, isInput }: { message: string; isInput: boolean }): Error {
  return isInput ? new InputError(message) : new Error(message);
}

/** A model while it is in use. */
export interface ModelLease {
  readonly model: ThreadModel;
  release(): void;
}

interface Entry {
  readonly opening: Promise<ThreadModel>;
  /** Distinguishes its parameters from those that training may write later. */
  readonly stamp: string;
  users: number;
  /** Once it is open. */
  model?: ThreadModel;
}

/** The open models: at most `most`, each shared by all its users, the least recently used closed first. */
export class LiveModels {
  /** In the order of their last use. */
  private readonly entries = new Map<string, Entry>();
  private readonly closing = new Set<Promise<void>>();

  constructor(
    private readonly most: number,
    private readonly options: LiveModelOptions = {},
  ) {}

  /** Sentences that hold a model. */
  get users(): number {
    return [...this.entries.values()].reduce((sum, { users }) => sum + users, 0);
  }

  async lease(run: string): Promise<ModelLease> {
    const entry = this.entries.get(run) ?? this.open(run);
    const current = this.isCurrent(run, entry) ? entry : this.reopen(run, entry);
    this.entries.delete(run);
    this.entries.set(run, current);
    current.users++;
    try {
      const model = await current.opening;
      let held = true;
      const release = (): void => {
        if (held) current.users--;
        held = false;
      };
      return { model, release };
    } catch (error) {
      current.users--;
      if (this.entries.get(run) === current) this.entries.delete(run);
      throw error;
    }
  }

  async close(): Promise<void> {
    for (const entry of this.entries.values()) this.end(entry);
    this.entries.clear();
    await Promise.all(this.closing);
  }

  private isCurrent(run: string, { users, stamp, model }: Entry): boolean {
    if (model?.over) return false;
    return users > 0 || stamp === checkpointStamp(run, this.options);
  }

  private open(run: string): Entry {
    if (this.entries.size >= this.most) {
      const idle = [...this.entries].find(([, { users }]) => users === 0);
      if (idle === undefined) throw new InputError(`${this.most} models are in use, the maximum`);
      this.entries.delete(idle[0]);
      this.end(idle[1]);
    }
    // The stamp first: if parameters are written in the meantime, it no longer matches.
    const stamp = checkpointStamp(run, this.options);
    const entry: Entry = { opening: ThreadModel.open(run, this.options), stamp, users: 0 };
    entry.opening.then(
      (model) => {
        entry.model = model;
      },
      () => {},
    );
    return entry;
  }

  /** Training has saved other parameters since, or the thread has failed. */
  private reopen(run: string, old: Entry): Entry {
    this.entries.delete(run);
    this.end(old);
    return this.open(run);
  }

  private end({ opening }: Entry): void {
    const closed = opening.then(
      (model) => model.close(),
      () => {},
    );
    this.closing.add(closed);
    void closed.then(() => this.closing.delete(closed));
  }
}
