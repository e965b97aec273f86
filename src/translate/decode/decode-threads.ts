import { TaskThread } from '../../task-thread.js';
import type { DecodeOptions } from './batch.js';
import type { Decoded } from './search.js';
import type { OpenOptions } from './translator.js';

/** What a thread opens. */
export interface DecodeSetup {
  readonly run: string;
  readonly options: OpenOptions;
  /** Runs of further models. */
  readonly more: readonly string[];
}

/** Sentences for a thread. */
export interface DecodeTask {
  readonly sources: readonly ArrayLike<number>[];
  /** As `parsePolicies` reads it. */
  readonly policy: string;
  readonly options: Omit<DecodeOptions, 'onProgress'>;
}

type Helper = TaskThread<DecodeTask, Decoded[]>;

/** Threads that translate beside this one, each with its own copy of the models. The first sentences start them. */
export class DecodeThreads {
  private starting: Promise<Helper>[] | undefined;

  constructor(
    readonly count: number,
    private readonly setup: DecodeSetup,
  ) {}

  /**
   * Translates parts of a text, here and in the threads: whoever is free takes the next one. Nobody waits for a thread
   * that is still opening its models.
   *
   * @param translate translates a part here
   * @param onPart called with the place of a part and its translations
   */
  async share(
    parts: readonly DecodeTask[],
    translate: (part: DecodeTask) => Promise<Decoded[]>,
    onPart: (place: number, decoded: readonly Decoded[]) => void,
  ): Promise<void> {
    let next = 0;
    const work = async (one: (part: DecodeTask) => Promise<Decoded[]>): Promise<void> => {
      while (next < parts.length) {
        const place = next++;
        onPart(place, await one(parts[place]));
      }
    };
    this.starting ??= Array.from({ length: this.count }, () =>
      TaskThread.start<DecodeTask, Decoded[]>('translate/decode/decode-thread.js', this.setup, 'decoding thread'),
    );
    const lanes = [work(translate)];
    const join = (lane: Promise<void>): void => {
      lanes.push(lane);
      // It is awaited below, which may be after it has failed.
      lane.catch(() => {});
    };
    for (const helper of this.starting) {
      helper.then(
        (thread) => join(work((part) => thread.run(part))),
        (error) => join(Promise.reject(error)),
      );
    }
    for (let i = 0; i < lanes.length; i++) await lanes[i];
  }

  /** Ends the threads. */
  async stop(): Promise<void> {
    for (const helper of this.starting ?? []) await helper.then((thread) => thread.stop()).catch(() => {});
  }
}
