import type { LiveEvent } from 'tcts/serve/messages.js';

export type { LiveEvent };

/** What is heard of a sentence while it is translated. */
export interface SessionListener {
  onEvent(event: LiveEvent): void;
  onText(text: string): void;
  onDone(endedEarly: boolean): void;
  onError(message: string): void;
}

/** A sentence under way, wherever its model runs. */
export interface Session {
  /** The model is open. Never rejects: what goes wrong is told to the listener. */
  readonly ready: Promise<void>;
  push(word: string): void;
  end(): void;
  changePolicy(spec: string): void;
  stop(): void;
}

export type BeginSession = (run: string, policy: string, listener: SessionListener) => Session;
