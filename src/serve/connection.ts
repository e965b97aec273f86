import type { WebSocket } from 'ws';
import { InputError } from '../errors.js';
import { limits } from './limits.js';
import type { Lease, LiveModels } from './live-models.js';
import { LiveSentence } from './live-sentence.js';
import { type ClientMessage, parseMessage, type ServerMessage } from './messages.js';
import { rateLimit } from './rate-limit.js';

export interface ConnectionContext {
  readonly models: Pick<LiveModels, 'lease'>;
  /** The folder of a run; undefined if there is none of that name. */
  readonly find: (run: string) => string | undefined;
  /** Whether the server can take the sentence that has just been asked for. */
  readonly admit: () => boolean;
}

type SentenceMessage = Exclude<ClientMessage, { type: 'begin' }>;

/** A lane from the moment that it is asked for; its sentence is there once the model is open. */
interface Lane {
  sentence?: LiveSentence;
  lease?: Lease;
  /** What has come in while the model was opened. */
  readonly early: SentenceMessage[];
}

/** A client with its sentences. When the socket closes, all of them are dropped. */
export class Connection {
  private readonly lanes = new Map<string, Lane>();
  private readonly within = rateLimit(limits.messagesPerSecond, limits.messageBurst);

  constructor(
    private readonly socket: WebSocket,
    private readonly context: ConnectionContext,
  ) {
    socket.on('message', (data, isBinary) => this.receive(data.toString(), isBinary));
    socket.on('close', () => this.drop());
    socket.on('error', () => socket.terminate());
  }

  /** Sentences under way. */
  get sentences(): number {
    return this.lanes.size;
  }

  /** Closes the connection when the words that have come are translated. */
  async drain(): Promise<void> {
    await Promise.all([...this.lanes.values()].map(({ sentence }) => sentence?.settled()));
    this.socket.close(GOING_AWAY, 'the server is stopping');
  }

  private receive(text: string, isBinary: boolean): void {
    if (isBinary) this.refuse('expected text');
    else if (!this.within()) this.refuse('too many messages in a second');
    else this.act(parseMessage(text));
  }

  private act(message: ReturnType<typeof parseMessage>): void {
    if (message.type === 'wrong') this.send({ type: 'error', message: message.reason });
    else if (message.type === 'begin') void this.begin(message);
    else this.pass(message);
  }

  private async begin({ lane: name, run, policy }: ClientMessage & { type: 'begin' }): Promise<void> {
    this.end(name);
    const lane: Lane = { early: [] };
    this.lanes.set(name, lane);
    // The client may have gone, or begun anew, whenever something was waited for.
    const current = (): boolean => this.lanes.get(name) === lane;
    try {
      if (this.lanes.size > limits.lanes) throw new InputError(`a page can have ${limits.lanes} sentences at a time`);
      if (!this.context.admit()) {
        throw new InputError('the server has as many sentences under way as it takes; try later');
      }
      const folder = this.context.find(run);
      if (folder === undefined) throw new InputError('there is no such run', { file: run });
      lane.lease = await this.context.models.lease(folder);
      if (!current()) {
        lane.lease.release();
        return;
      }
      lane.sentence = this.sentence(name, lane.lease, policy);
      this.send({ type: 'begun', lane: name });
      for (const message of lane.early) this.pass(message);
    } catch (error) {
      if (current()) this.fail(name, error);
    }
  }

  private sentence(lane: string, { model }: Lease, policy: string): LiveSentence {
    return new LiveSentence(model, model.policy(policy), {
      onEvent: (event) => this.send({ type: 'event', lane, ...event }),
      onText: (text) => this.send({ type: 'text', lane, text }),
      onDone: (endedEarly) => {
        this.end(lane);
        this.send({ type: 'done', lane, endedEarly });
      },
      onError: (error) => this.fail(lane, error),
    });
  }

  /** Hands a message on to its sentence. */
  private pass(message: SentenceMessage): void {
    const lane = this.lanes.get(message.lane);
    if (lane === undefined) return; // of a sentence that is over
    try {
      if (message.type === 'stop') this.end(message.lane);
      else if (lane.sentence !== undefined) tell(lane.sentence, message, lane.lease!);
      else if (lane.early.length < limits.waitingWords) lane.early.push(message);
      else throw new InputError('too many words before the model is open');
    } catch (error) {
      this.fail(message.lane, error);
    }
  }

  private fail(lane: string, error: unknown): void {
    this.end(lane);
    // What is no fault of the input is told to the one who runs the server, not to the network.
    if (!(error instanceof InputError)) console.error(error);
    this.send({ type: 'error', lane, message: error instanceof InputError ? error.message : 'internal error' });
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
    this.drop();
    this.socket.close(POLICY_VIOLATION, reason);
  }

  private send(message: ServerMessage): void {
    const { socket } = this;
    if (socket.readyState !== socket.OPEN) return;
    if (socket.bufferedAmount > limits.unreadBytes) socket.terminate();
    else socket.send(JSON.stringify(message));
  }
}

function tell(sentence: LiveSentence, message: SentenceMessage, { model }: Lease): void {
  if (message.type === 'word') sentence.push(message.word);
  else if (message.type === 'end') sentence.end();
  else if (message.type === 'policy') sentence.change(model.policy(message.policy));
}

const GOING_AWAY = 1001;
const POLICY_VIOLATION = 1008;
