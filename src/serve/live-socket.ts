import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type RawData, type WebSocket, WebSocketServer } from 'ws';
import { z } from 'zod';
import { InputError } from '../errors.js';
import type { ArrivingWord } from '../translate/text/arriving.js';
import { limits, rateLimit, rateLimitByAddress } from './limits.js';
import { refuseSocket } from './listen.js';
import type { LiveModels, ModelLease, ThreadSentence } from './live-models.js';
import type { LiveEvent } from './live-sentence.js';
import { withoutPaths } from './run-folders.js';

/** The WebSocket side of the server: at `/live`, one `Connection` per client. */
export class LiveSocket {
  private readonly connections = new Map<WebSocket, Connection>();
  /** Connections of each address. */
  private readonly addresses = new Map<string, number>();
  /** Clients that have sent something, if only a pong, since the last ping. */
  private readonly responsive = new WeakSet<WebSocket>();
  private readonly server = new WebSocketServer({
    noServer: true,
    maxPayload: limits.messageBytes,
    perMessageDeflate: false,
  });
  /** Many connections of a client together may not do what one of them may not. */
  private readonly withinAddress = rateLimitByAddress(limits.addressMessagesPerSecond, limits.addressMessageBurst);
  private readonly heartbeat = setInterval(() => this.endSilent(), limits.silence / 2).unref();
  private stopping = false;

  constructor(
    private readonly refuse: (request: IncomingMessage) => string | undefined,
    private readonly context: Omit<ConnectionContext, 'admit' | 'within'>,
  ) {
    // An invalid handshake is answered like every other rejection.
    this.server.on('wsClientError', (_, socket, { headers }) => {
      const isVersion = !['13', '8', undefined].includes(headers['sec-websocket-version']);
      refuseSocket(socket, isVersion ? '426 Upgrade Required' : '400 Bad Request');
    });
  }

  /** Sentences under way. */
  get sentences(): number {
    return [...this.connections.values()].reduce((sum, connection) => sum + connection.sentences, 0);
  }

  readonly upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const status = this.refusal(request);
    if (status !== undefined) refuseSocket(socket, status);
    else {
      const address = request.socket.remoteAddress ?? '';
      this.server.handleUpgrade(request, socket, head, (client) => this.accept(client, address));
    }
  };

  /** Finishes translating the words received so far, then closes all connections. */
  async close(): Promise<void> {
    this.stopping = true;
    clearInterval(this.heartbeat);
    const drained = Promise.all([...this.connections.values()].map((connection) => connection.drain()));
    await Promise.race([drained, new Promise((resolve) => setTimeout(resolve, DRAIN).unref())]);
    for (const client of this.connections.keys()) client.terminate();
    this.server.close();
  }

  private refusal(request: IncomingMessage): string | undefined {
    const refused = this.refuse(request);
    if (refused !== undefined) return refused;
    if (request.url !== '/live') return '404 Not Found';
    if (this.stopping || this.connections.size >= limits.connections) return '503 Service Unavailable';
    const of = this.addresses.get(request.socket.remoteAddress ?? '') ?? 0;
    return of >= limits.connectionsOfAddress ? '429 Too Many Requests' : undefined;
  }

  private accept(client: WebSocket, address: string): void {
    this.count(address, 1);
    const admit = (): boolean => this.sentences <= limits.streams;
    const own = rateLimit(limits.messagesPerSecond, limits.messageBurst);
    const within = (): boolean => own() && this.withinAddress(address);
    this.connections.set(client, new Connection(client, { ...this.context, admit, within }));
    this.responsive.add(client);
    client.on('pong', () => this.responsive.add(client));
    client.on('message', () => this.responsive.add(client));
    client.on('close', () => {
      this.connections.delete(client);
      this.count(address, -1);
    });
  }

  private count(address: string, change: number): void {
    const count = (this.addresses.get(address) ?? 0) + change;
    if (count === 0) this.addresses.delete(address);
    else this.addresses.set(address, count);
  }

  private endSilent(): void {
    for (const client of this.connections.keys()) {
      if (!this.responsive.delete(client)) client.terminate();
      else client.ping();
    }
  }
}

/** Milliseconds that a stop waits for current translations. */
const DRAIN = 5000;

interface ConnectionContext {
  readonly models: Pick<LiveModels, 'lease'>;
  /** The folder of a run; undefined if there is none of that name. */
  readonly find: (run: string) => Promise<string | undefined>;
  /** Whether the server can accept the requested sentence. */
  readonly admit: () => boolean;
  /** Whether the client may send another message. */
  readonly within: () => boolean;
}

type SentenceMessage = Exclude<ClientMessage, { type: 'begin' }>;

/** A lane from the moment it is requested; its sentence exists once the model is open. */
interface Lane {
  sentence?: ThreadSentence;
  folder?: string;
  lease?: ModelLease;
  /** Messages received while the model was being opened. */
  readonly early: SentenceMessage[];
}

/** A client with its sentences. When the socket closes, all of them are dropped. */
class Connection {
  private readonly lanes = new Map<string, Lane>();
  private isRefused = false;

  constructor(
    private readonly socket: WebSocket,
    private readonly context: ConnectionContext,
  ) {
    socket.on('message', (data, isBinary) => this.receive(data, isBinary));
    socket.on('close', () => this.drop());
    socket.on('error', () => socket.terminate());
  }

  /** Sentences under way. */
  get sentences(): number {
    return this.lanes.size;
  }

  /** Closes the connection once the words received so far are translated. */
  async drain(): Promise<void> {
    await Promise.all([...this.lanes.values()].map(({ sentence }) => sentence?.settled()));
    this.socket.close(GOING_AWAY, 'the server is stopping');
  }

  private receive(data: RawData, isBinary: boolean): void {
    // What was in progress when the connection was rejected.
    if (this.isRefused) return;
    if (isBinary) this.refuse('expected text');
    else if (!this.context.within()) this.refuse('too many messages in a second');
    else this.act(parseClientMessage(data.toString()));
  }

  private act(message: ReturnType<typeof parseClientMessage>): void {
    if (message.type === 'wrong') this.send({ type: 'error', message: message.reason });
    else if (message.type === 'begin') void this.begin(message);
    else this.pass(message);
  }

  private async begin({ lane: name, run, policy }: ClientMessage & { type: 'begin' }): Promise<void> {
    this.end(name);
    const lane: Lane = { early: [] };
    this.lanes.set(name, lane);
    // The client may have gone, or restarted, during any await.
    const current = (): boolean => this.lanes.get(name) === lane;
    try {
      if (this.lanes.size > limits.lanes) throw new InputError(`a page can have ${limits.lanes} sentences at a time`);
      if (!this.context.admit()) {
        throw new InputError('the server is translating the maximum number of sentences; try later');
      }
      const folder = await this.context.find(run);
      if (!current()) return;
      if (folder === undefined) throw new InputError('there is no such run', { file: run });
      lane.folder = folder;
      lane.lease = await this.context.models.lease(folder);
      if (!current()) {
        lane.lease.release();
        return;
      }
      lane.sentence = this.sentence(name, lane.lease, policy);
      for (const message of lane.early) this.pass(message);
    } catch (error) {
      if (current()) this.fail(name, error);
    }
  }

  private sentence(lane: string, { model }: ModelLease, policy: string): ThreadSentence {
    return model.begin(policy, {
      onBegun: () => this.send({ type: 'begun', lane }),
      onEvent: (event) => this.send({ type: 'event', lane, ...event }),
      onText: (text) => this.send({ type: 'text', lane, text }),
      onDone: (endedEarly) => {
        this.end(lane);
        this.send({ type: 'done', lane, endedEarly });
      },
      onError: (error) => this.fail(lane, error),
    });
  }

  /** Forwards a message to its sentence. */
  private pass(message: SentenceMessage): void {
    const lane = this.lanes.get(message.lane);
    if (lane === undefined) return; // of a sentence that is over
    try {
      if (message.type === 'stop') this.end(message.lane);
      else if (lane.sentence !== undefined) tell(lane.sentence, message);
      else if (lane.early.length < limits.waitingWords) lane.early.push(message);
      else throw new InputError('too many words before the model is open');
    } catch (error) {
      this.fail(message.lane, error);
    }
  }

  private fail(lane: string, error: unknown): void {
    const folder = this.lanes.get(lane)?.folder;
    this.end(lane);
    // Internal errors are logged here and not shown to clients.
    if (!(error instanceof InputError)) console.error(error);
    const message = error instanceof InputError ? withoutPaths(error.message, folder) : 'internal error';
    this.send({ type: 'error', lane, message });
  }

  private end(name: string): void {
    const lane = this.lanes.get(name);
    this.lanes.delete(name);
    lane?.sentence?.close();
    lane?.lease?.release();
  }

  private drop(): void {
    for (const name of [...this.lanes.keys()]) this.end(name);
  }

  private refuse(reason: string): void {
    this.isRefused = true;
    this.drop();
    this.socket.close(POLICY_VIOLATION, reason);
    // Nothing more is read from it, not even the client's close.
    this.socket.pause();
    setTimeout(() => this.socket.terminate(), GOODBYE).unref();
  }

  private send(message: ServerMessage): void {
    const { socket } = this;
    if (socket.readyState !== socket.OPEN) return;
    if (socket.bufferedAmount > limits.unreadBytes) socket.terminate();
    else socket.send(JSON.stringify(message));
  }
}

function tell(sentence: ThreadSentence, message: SentenceMessage): void {
  if (message.type === 'word') sentence.push([arrivingWord(message.word)]);
  else if (message.type === 'words') sentence.push(message.words.map(arrivingWord));
  else if (message.type === 'end') sentence.end();
  else if (message.type === 'policy') sentence.changePolicy(message.policy);
}

function arrivingWord(word: z.output<typeof sourceWord>): ArrivingWord {
  return typeof word === 'string' ? { word } : word;
}

/** Milliseconds in which a rejected client can read why. */
const GOODBYE = 1000;

const GOING_AWAY = 1001;
const POLICY_VIOLATION = 1008;

const laneName = z.string().regex(/^[a-z0-9-]{1,16}$/);
const policyText = z.string().min(1).max(200);
const sourceWord = z.union([
  z.string().regex(/^\S+$/u, 'expected a word without spaces').max(limits.wordLength),
  /** A character that follows the one before it without a space. */
  z.strictObject({ word: z.string().regex(/^\S$/u, 'expected one character'), joined: z.literal(true) }),
]);

const clientMessage = z.discriminatedUnion('type', [
  /** A new sentence in a lane; one that is in progress there is dropped. */
  z.strictObject({ type: z.literal('begin'), lane: laneName, run: z.string().min(1).max(500), policy: policyText }),
  z.strictObject({ type: z.literal('word'), lane: laneName, word: sourceWord }),
  /** Words that arrive together, such as pasted text. */
  z.strictObject({
    type: z.literal('words'),
    lane: laneName,
    words: z.array(sourceWord).min(1).max(limits.wordsOfMessage),
  }),
  /** The sentence is complete. */
  z.strictObject({ type: z.literal('end'), lane: laneName }),
  /** Continue with another policy. */
  z.strictObject({ type: z.literal('policy'), lane: laneName, policy: policyText }),
  z.strictObject({ type: z.literal('stop'), lane: laneName }),
]);

/** What the page says to the server. */
export type ClientMessage = z.output<typeof clientMessage>;

/** What the server says to the page. */
export type ServerMessage =
  /** The model is open, and words can come. */
  | { readonly type: 'begun'; readonly lane: string }
  | ({ readonly type: 'event'; readonly lane: string } & LiveEvent)
  /** Final text of the translation, to append. */
  | { readonly type: 'text'; readonly lane: string; readonly text: string }
  /** The translation is complete. */
  | { readonly type: 'done'; readonly lane: string; readonly endedEarly: boolean }
  | { readonly type: 'error'; readonly lane?: string; readonly message: string };

/** The message in a text, or what is wrong with it. */
function parseClientMessage(text: string): ClientMessage | { readonly type: 'wrong'; readonly reason: string } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { type: 'wrong', reason: 'expected a message in JSON' };
  }
  const parsed = clientMessage.safeParse(value);
  if (parsed.success) return parsed.data;
  const [{ path, message }] = parsed.error.issues;
  return { type: 'wrong', reason: `${path.length > 0 ? `${path.join('.')}: ` : ''}${message}` };
}
