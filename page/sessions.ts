import { limits } from 'tcts/serve/limits.js';
import type { LiveEvent, LiveSentence } from 'tcts/serve/live-sentence.js';
import type { ClientMessage, ServerMessage } from 'tcts/serve/live-socket.js';
import type { ArrivingWord } from 'tcts/translate/text/arriving.js';

export type { LiveEvent };

/** Called while a sentence is translated. */
export interface SessionListener {
  onEvent(event: LiveEvent): void;
  onText(text: string): void;
  onDone(endedEarly: boolean): void;
  onError(message: string): void;
}

/** A sentence being translated, wherever its model runs. */
export interface SentenceSession {
  /**
   * The model is open; its device, if it runs in this page. Never rejects: errors go to the listener.
   */
  readonly ready: Promise<string | undefined>;
  push(words: readonly ArrivingWord[]): void;
  end(): void;
  changePolicy(spec: string): void;
  stop(): void;
}

export type BeginSession = (run: string, policy: string, listener: SessionListener) => SentenceSession;

/** A sentence that the server translates; all of them share one WebSocket. */
export const beginOnServer: BeginSession = (run, policy, listener) => {
  const lane = String(++count);
  const ready = new Promise<undefined>((resolve) => {
    lanes.set(lane, { listener, resolve: () => resolve(undefined) });
  });
  send({ type: 'begin', lane, run, policy });
  return {
    ready,
    push: (words) => {
      for (const some of portions(words.map(wordOfMessage))) send({ type: 'words', lane, words: some });
    },
    end: () => send({ type: 'end', lane }),
    changePolicy: (spec) => send({ type: 'policy', lane, policy: spec }),
    stop: () => {
      if (lanes.has(lane)) send({ type: 'stop', lane });
      leave(lane);
    },
  };
};

type MessageWord = Extract<ClientMessage, { type: 'words' }>['words'][number];

function wordOfMessage({ word, joined }: ArrivingWord): MessageWord {
  return joined ? { word, joined } : word;
}

/** As many words at a time as a message can hold. */
function portions(words: readonly MessageWord[]): MessageWord[][] {
  const all: MessageWord[][] = [];
  for (const word of words) {
    const last = all.at(-1);
    const isFull = last === undefined || last.length === limits.wordsOfMessage || bytesOf([...last, word]) > ROOM;
    if (isFull) all.push([word]);
    else last.push(word);
  }
  return all;
}

function bytesOf(words: readonly MessageWord[]): number {
  return new TextEncoder().encode(JSON.stringify(words)).length;
}

/** What a message has left for its words. */
const ROOM = limits.messageBytes - 200;

let count = 0;
let socket: WebSocket | undefined;
const lanes = new Map<string, { listener: SessionListener; resolve: () => void }>();

function send(message: ClientMessage): void {
  if (!lanes.has(message.lane)) return; // its sentence is over
  if (socket === undefined || socket.readyState > WebSocket.OPEN) socket = connect();
  const own = socket;
  const text = JSON.stringify(message);
  if (own.readyState === WebSocket.OPEN) own.send(text);
  else own.addEventListener('open', () => own.send(text), { once: true });
}

function connect(): WebSocket {
  const opened = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/live`);
  opened.addEventListener('message', ({ data }) => receive(JSON.parse(data) as ServerMessage));
  opened.addEventListener('close', ({ reason }) => {
    if (socket === opened) socket = undefined;
    failAll(reason === '' ? 'the connection to the server is lost' : `the server has closed the connection: ${reason}`);
  });
  return opened;
}

function receive(message: ServerMessage): void {
  const lane = lanes.get(message.lane ?? '');
  if (message.type === 'error') {
    if (message.lane === undefined) failAll(message.message);
    else leave(message.lane);
    lane?.listener.onError(message.message);
  } else if (message.type === 'begun') lane?.resolve();
  else if (message.type === 'event') lane?.listener.onEvent(message);
  else if (message.type === 'text') lane?.listener.onText(message.text);
  else {
    leave(message.lane);
    lane?.listener.onDone(message.endedEarly);
  }
}

function leave(lane: string): void {
  lanes.get(lane)?.resolve();
  lanes.delete(lane);
}

function failAll(message: string): void {
  for (const [name, { listener }] of [...lanes]) {
    leave(name);
    listener.onError(message);
  }
}

/** A sentence translated in the page itself. The code for that is loaded on first use. */
export const beginInPage: BeginSession = (run, policy, listener) => {
  let stopped = false;
  const fail = (error: unknown) => {
    if (!stopped) listener.onError(error instanceof Error ? error.message : String(error));
  };
  const sentence = import('./page-model.js').then(async ({ openInPage, LiveSentence }) => {
    const model = await openInPage(run);
    return { model, live: new LiveSentence(model, model.policy(policy), { ...listener, onError: fail }) };
  });
  sentence.catch(fail);
  const later = (step: (live: LiveSentence) => void) => {
    sentence.then(({ live }) => step(live)).catch(fail);
  };
  return {
    ready: sentence.then(
      ({ model }) => model.runsOn,
      () => undefined,
    ),
    push: (words) =>
      later((live) => {
        for (const word of words) live.push(word);
      }),
    end: () => later((live) => live.end()),
    changePolicy: (spec) => {
      sentence.then(({ live, model }) => live.change(model.policy(spec))).catch(fail);
    },
    stop: () => {
      stopped = true;
      later((live) => live.close());
    },
  };
};
