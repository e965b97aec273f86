import { parentPort, workerData } from 'node:worker_threads';
import { InputError } from '../errors.js';
import { readingWithin } from '../files.js';
import type { ArrivingWord } from '../translate/text/arriving.js';
import { type LiveModel, type LiveModelOptions, openLiveModel } from './live-model.js';
import { type LiveEvent, LiveSentence } from './live-sentence.js';

export interface ModelThreadData {
  readonly run: string;
  readonly options: LiveModelOptions;
}

/** What the server asks of a model's thread; `id` numbers its sentences. */
export type ToModelThread =
  | { readonly type: 'begin'; readonly id: number; readonly policy: string }
  | { readonly type: 'words'; readonly id: number; readonly words: readonly ArrivingWord[] }
  | { readonly type: 'end'; readonly id: number }
  | { readonly type: 'policy'; readonly id: number; readonly policy: string }
  | { readonly type: 'stop'; readonly id: number }
  /** To be answered when everything asked for so far is done. */
  | { readonly type: 'settle'; readonly id: number; readonly request: number }
  | { readonly type: 'close' };

export type FromModelThread =
  | { readonly type: 'open' }
  | { readonly type: 'failed'; readonly message: string; readonly isInput: boolean }
  | { readonly type: 'begun'; readonly id: number }
  | { readonly type: 'event'; readonly id: number; readonly event: LiveEvent }
  | { readonly type: 'text'; readonly id: number; readonly text: string }
  | { readonly type: 'done'; readonly id: number; readonly endedEarly: boolean }
  | { readonly type: 'error'; readonly id: number; readonly message: string; readonly isInput: boolean }
  | { readonly type: 'settled'; readonly request: number };

/** Entry point of a model's thread: it translates the sentences of all users of the model. */
const { run, options } = workerData as ModelThreadData;
const port = parentPort!;
const sentences = new Map<number, LiveSentence>();
const say = (message: FromModelThread): void => port.postMessage(message);

try {
  for (const module of options.modules ?? []) await import(module);
  const model = await readingWithin(run, () => openLiveModel(run, options));
  port.on('message', (message: ToModelThread) => receive(model, message));
  say({ type: 'open' });
} catch (error) {
  say({ type: 'failed', ...described(error) });
}

function receive(model: LiveModel, message: ToModelThread): void {
  if (message.type === 'close') {
    sentences.clear();
    port.close();
    void model.close();
    return;
  }
  const { id } = message;
  const sentence = sentences.get(id);
  try {
    if (message.type === 'begin') begin(model, id, message.policy);
    else if (message.type === 'settle') void settle(message.request, sentence);
    else if (sentence === undefined)
      return; // it is over
    else if (message.type === 'words') for (const word of message.words) sentence.push(word);
    else if (message.type === 'end') sentence.end();
    else if (message.type === 'policy') sentence.change(model.policy(message.policy));
    else end(id);
  } catch (error) {
    fail(id, error);
  }
}

function begin(model: LiveModel, id: number, policy: string): void {
  const sentence = new LiveSentence(model, model.policy(policy), {
    onEvent: (event) => say({ type: 'event', id, event }),
    onText: (text) => say({ type: 'text', id, text }),
    onDone: (endedEarly) => {
      end(id);
      say({ type: 'done', id, endedEarly });
    },
    onError: (error) => fail(id, error),
  });
  sentences.set(id, sentence);
  say({ type: 'begun', id });
}

async function settle(request: number, sentence: LiveSentence | undefined): Promise<void> {
  await sentence?.settled();
  say({ type: 'settled', request });
}

function end(id: number): void {
  sentences.get(id)?.close();
  sentences.delete(id);
}

function fail(id: number, error: unknown): void {
  end(id);
  say({ type: 'error', id, ...described(error) });
}

function described(error: unknown): { message: string; isInput: boolean } {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return error instanceof InputError ? { message: error.message, isInput: true } : { message: text, isInput: false };
}
