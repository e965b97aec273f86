import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';
import type { ClientMessage, ServerMessage } from '../../src/serve/live-socket.js';

/** A client of the page's WebSocket. */
export class LiveClient {
  readonly messages: ServerMessage[] = [];
  /** Code with which the connection was closed. */
  readonly closed: Promise<number>;

  private constructor(readonly socket: WebSocket) {
    socket.on('message', (data) => this.messages.push(JSON.parse(data.toString())));
    this.closed = once(socket, 'close').then(([code]) => code as number);
    this.closed.catch(() => {});
  }

  /** `from`: the address that it comes from; loopback has many. */
  static async connect(url: string, headers: Record<string, string> = {}, from?: string): Promise<LiveClient> {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/live`, { headers, localAddress: from });
    await once(socket, 'open');
    return new LiveClient(socket);
  }

  send(message: ClientMessage): void {
    this.socket.send(JSON.stringify(message));
  }

  /** Sends a whole sentence. */
  sentence(lane: string, run: string, policy: string, words: readonly string[]): void {
    this.send({ type: 'begin', lane, run, policy });
    for (const word of words) this.send({ type: 'word', lane, word });
    this.send({ type: 'end', lane });
  }

  /** The first message, also of those that have come already, that is as wanted. */
  async until(wanted: (message: ServerMessage) => boolean): Promise<ServerMessage> {
    for (;;) {
      const found = this.messages.find(wanted);
      if (found !== undefined) return found;
      await Promise.race([
        once(this.socket, 'message'),
        this.closed.then((code) => Promise.reject(new Error(`closed with ${code}`))),
      ]);
    }
  }

  /** When a lane is done, or has failed: what was written in it. */
  async text(lane: string): Promise<string> {
    const last = await this.until((m) => (m.type === 'done' || m.type === 'error') && m.lane === lane);
    if (last.type === 'error') throw new Error(last.message);
    return this.messages.map((m) => (m.type === 'text' && m.lane === lane ? m.text : '')).join('');
  }

  /** `READ a`, `WRITE b`, … of a lane. */
  events(lane: string): string[] {
    return this.messages.flatMap((m) => (m.type === 'event' && m.lane === lane ? [`${m.action} ${m.token}`] : []));
  }

  /** What becomes of a sentence whose words arrive one by one, over a connection of its own. */
  static async wordByWord(url: string, from: string, words: readonly string[]): Promise<string> {
    const client = await LiveClient.connect(url, {}, from);
    client.send({ type: 'begin', lane: 'a', run: 'run', policy: 'wait-k:2' });
    for (const word of words) {
      client.send({ type: 'word', lane: 'a', word });
      await sleep(20);
    }
    client.send({ type: 'end', lane: 'a' });
    const text = await client.text('a');
    await client.close();
    return text;
  }

  close(): Promise<number> {
    this.socket.close();
    return this.closed;
  }
}
