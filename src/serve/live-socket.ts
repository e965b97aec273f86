import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { Connection, type ConnectionContext } from './connection.js';
import type { Guard } from './guard.js';
import { limits } from './limits.js';

/** The WebSocket side of the server: at `/live`, one `Connection` a client. */
export class LiveSocket {
  private readonly connections = new Map<WebSocket, Connection>();
  private readonly heard = new WeakSet<WebSocket>();
  private readonly server = new WebSocketServer({
    noServer: true,
    maxPayload: limits.messageBytes,
    perMessageDeflate: false,
  });
  private readonly heartbeat = setInterval(() => this.endSilent(), limits.silence / 2).unref();
  private stopping = false;

  constructor(
    private readonly guard: Guard,
    private readonly context: Omit<ConnectionContext, 'admit'>,
  ) {}

  /** Sentences under way. */
  get sentences(): number {
    return [...this.connections.values()].reduce((sum, connection) => sum + connection.sentences, 0);
  }

  readonly upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const status = this.refusal(request);
    if (status !== undefined) {
      // The HTTP server has let go of the socket: without a listener, a reset by the client would end the process.
      socket.on('error', () => socket.destroy());
      socket.once('finish', () => socket.destroy());
      socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
    this.server.handleUpgrade(request, socket, head, (client) => this.accept(client));
  };

  /** Lets everything that has come in be translated, then says goodbye. */
  async close(): Promise<void> {
    this.stopping = true;
    clearInterval(this.heartbeat);
    const drained = Promise.all([...this.connections.values()].map((connection) => connection.drain()));
    await Promise.race([drained, new Promise((resolve) => setTimeout(resolve, DRAIN).unref())]);
    for (const client of this.connections.keys()) client.terminate();
    this.server.close();
  }

  private refusal(request: IncomingMessage): string | undefined {
    if (this.guard(request.headers) !== undefined) return '403 Forbidden';
    if (request.url !== '/live') return '404 Not Found';
    if (this.stopping || this.connections.size >= limits.connections) return '503 Service Unavailable';
    return undefined;
  }

  private accept(client: WebSocket): void {
    const admit = (): boolean => this.sentences <= limits.streams;
    this.connections.set(client, new Connection(client, { ...this.context, admit }));
    this.heard.add(client);
    client.on('pong', () => this.heard.add(client));
    client.on('message', () => this.heard.add(client));
    client.on('close', () => this.connections.delete(client));
  }

  private endSilent(): void {
    for (const client of this.connections.keys()) {
      if (!this.heard.delete(client)) client.terminate();
      else client.ping();
    }
  }
}

/** Milliseconds that a stop waits for translations under way. */
const DRAIN = 5000;
