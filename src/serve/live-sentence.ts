import { InputError } from '../errors.js';
import { instanceLatency } from '../metrics/latency.js';
import type { StreamEvent } from '../translate/decode/stream.js';
import { type TextStream, tokenName } from '../translate/decode/text-stream.js';
import type { Policy } from '../translate/policies/policy.js';
import type { ArrivingWord } from '../translate/text/arriving.js';
import type { WordEncoder } from '../translate/text/pipeline.js';
import { special } from '../translate/text/vocabulary.js';
import { limits } from './limits.js';
import type { LiveModel } from './live-model.js';

/** A READ or a WRITE, and where the sentence stands after it. */
export interface LiveEvent {
  readonly action: 'READ' | 'WRITE';
  readonly token: string;
  /** Source tokens read, without the end of the sentence. */
  readonly read: number;
  /** Target tokens written. */
  readonly written: number;
  /** Average lagging and average proportion so far, in tokens; null before the first WRITE. */
  readonly AL: number | null;
  readonly AP: number | null;
}

export interface SentenceListener {
  onEvent(event: LiveEvent): void;
  onText(text: string): void;
  onDone(endedEarly: boolean): void;
  /** Nothing comes after it. */
  onError(error: unknown): void;
}

/**
 * One sentence being typed or played. Words are processed in order; the policy may change at any
 * time. Closing it frees its caches.
 */
export class LiveSentence {
  private stream: TextStream | undefined;
  private work: Promise<void> = Promise.resolve();
  /** Makes the source tokens as the stream does, to show them, known to the model or not, and to count them. */
  private readonly encoder: WordEncoder;
  private readonly tokens: string[] = [];
  /** Words, or characters. */
  private arrived = 0;
  private waiting = 0;
  private read = 0;
  private written = 0;
  private ended = false;

  constructor(
    private readonly model: LiveModel,
    policy: Policy,
    private readonly listener: SentenceListener,
  ) {
    this.stream = model.stream(policy, (event) => this.report(event));
    this.encoder = model.source.pipeline.wordEncoder();
  }

  /** Neither complete nor closed. */
  get open(): boolean {
    return this.stream !== undefined;
  }

  push({ word, joined }: ArrivingWord): void {
    if (this.ended) throw new InputError('the sentence has ended, no word can follow');
    if (this.waiting >= limits.waitingWords) throw new InputError('words come faster than they can be translated');
    // Jieba may hold characters back, which are then in no token yet.
    if (++this.arrived > limits.sentenceWords) {
      const unit = this.model.source.pipeline.byCharacter ? 'characters' : 'words';
      throw new InputError(`a sentence can have at most ${limits.sentenceWords} ${unit}, this one has more`);
    }
    this.tokens.push(...this.encoder.push(word, joined));
    const most = Math.min(limits.sentenceTokens, this.model.maxPositions - 1);
    if (this.tokens.length > most)
      throw new InputError(`a sentence can have at most ${most} tokens, this one has more`);
    this.waiting++;
    this.later(async (stream) => {
      this.waiting--;
      this.say(await stream.push(word, joined));
    });
  }

  end(): void {
    if (this.ended) return;
    this.ended = true;
    this.tokens.push(...this.encoder.end());
    this.later(async (stream) => {
      this.say(await stream.end());
      if (!this.open) return;
      this.close();
      this.listener.onDone(stream.decoded.endedEarly);
    });
  }

  /** Continues with another policy, from the next word on. */
  change(policy: Policy): void {
    if (this.stream !== undefined) this.stream.policy = policy;
  }

  close(): void {
    this.ended = true;
    this.stream = undefined;
  }

  /** Resolves when everything requested so far is done. */
  settled(): Promise<void> {
    return this.work;
  }

  private later(step: (stream: TextStream) => Promise<void>): void {
    this.work = this.work.then(async () => {
      const { stream } = this;
      if (stream === undefined) return;
      try {
        await step(stream);
      } catch (error) {
        // It was closed in the meantime: nobody is interested in the error.
        if (!this.open) return;
        this.close();
        this.listener.onError(error);
      }
    });
  }

  private say(text: string): void {
    if (text !== '' && this.open) this.listener.onText(text);
  }

  private report({ action, token }: StreamEvent): void {
    const { stream, model } = this;
    if (stream === undefined) return;
    const isEnd = token === special.eos;
    const name = action === 'READ' && !isEnd ? this.tokens[this.read] : tokenName(model.target, token);
    if (action === 'WRITE') this.written++;
    else if (!isEnd) this.read++;
    const delays = stream.decoded.delays.slice(0, this.written);
    const latency = instanceLatency({ delays, sourceLength: this.read }, 'stacl');
    this.listener.onEvent({
      action,
      token: name,
      read: this.read,
      written: this.written,
      AL: latency?.AL ?? null,
      AP: latency?.AP ?? null,
    });
  }
}
