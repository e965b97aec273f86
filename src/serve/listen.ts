import { createHash, timingSafeEqual } from 'node:crypto';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import { type AddressInfo, isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { Duplex } from 'node:stream';
import { getRequestListener } from '@hono/node-server';
import type { Hono } from 'hono';
import { InputError } from '../errors.js';
import { limits, rateLimitByAddress } from './limits.js';

export interface Address {
  /** Default 127.0.0.1: only this machine can reach it. */
  readonly host?: string;
  /** 0: any free port. */
  readonly port: number;
  /** Additional host names of the server. Default none. */
  readonly names?: readonly string[];
  /** The token that clients need: once in the link, then in a cookie. Default none; beyond loopback a random one. */
  readonly token?: string;
}

export interface ListenOptions {
  /** WebAssembly may run in the page. */
  readonly wasm: boolean;
  /** Whether requests per second are limited for each address. */
  readonly limited: boolean;
}

export interface Listening {
  readonly server: Server;
  readonly url: string;
  /** Why a request is rejected, as a status line; undefined if it may pass. */
  readonly refusal: (request: IncomingMessage) => string | undefined;
}

/** Starts an HTTP server in front of an app; what is rejected here never reaches it. */
export async function listen(app: Hono, address: Address, { wasm, limited }: ListenOptions): Promise<Listening> {
  const { host = LOOPBACK, port, names = [], token } = address;
  const guard = createGuard({ host, names });
  const access = token === undefined ? undefined : tokenAccess(token);
  const within = limited ? rateLimitByAddress(limits.requestsPerSecond, limits.requestBurst) : () => true;
  const headers = securityHeaders(wasm);
  const handle = getRequestListener(app.fetch);

  const refused = (request: IncomingMessage): Refusal | undefined => {
    const foreign = guard(request.headers);
    if (foreign !== undefined) return { status: 403, reason: foreign };
    if (!within(request.socket.remoteAddress ?? '')) return { status: 429, reason: 'too many requests' };
    if (access === undefined || access.isKnown(request.headers)) return undefined;
    const cookie = access.cookieFor(request);
    if (cookie !== undefined) return { status: 303, reason: '', headers: { 'Set-Cookie': cookie, Location: '/' } };
    return { status: 401, reason: 'open the link that "tcts serve" has printed: it holds the token' };
  };
  const protect = (response: ServerResponse): void => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  };
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    protect(response);
    const no = refused(request);
    if (no === undefined) void handle(request, response);
    else response.writeHead(no.status, { 'Content-Type': 'text/plain', ...no.headers }).end(`${no.reason}\n`);
  };

  const server = createServer({ headersTimeout: 10_000, requestTimeout: 30_000 }, answer);
  server.maxConnections = 2 * limits.connections;
  server.on('checkExpectation', (_, response: ServerResponse) => {
    protect(response);
    response.writeHead(417).end();
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    refuseSocket(socket, CLIENT_ERRORS[error.code ?? ''] ?? '400 Bad Request');
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(addressError(error, host, port)));
    server.listen(port, host, resolve);
  });
  const { port: actual } = server.address() as AddressInfo;
  const name = isLoopback(host) ? 'localhost' : reachable(host);
  return {
    server,
    url: `http://${isIP(name) === 6 ? `[${name}]` : name}:${actual}`,
    refusal: (request) => {
      const no = refused(request);
      return no && `${no.status} ${STATUS_CODES[no.status]}`;
    },
  };
}

/** What Node.js itself would answer. */
const CLIENT_ERRORS: Readonly<Record<string, string>> = {
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
};

interface Refusal {
  readonly status: number;
  readonly reason: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Answers a connection that the HTTP server has handed over, and ends it. */
export function refuseSocket(socket: Duplex, status: string): void {
  // Without a listener, a reset by the client would end the process.
  socket.on('error', () => socket.destroy());
  socket.once('finish', () => socket.destroy());
  const own = Object.entries(securityHeaders(false)).map(([name, value]) => `${name}: ${value}\r\n`);
  if (!socket.writable) socket.destroy();
  else socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n${own.join('')}\r\n`);
}

const LOOPBACK = '127.0.0.1';

/** An address that others can open, if a server is bound to all addresses. */
function reachable(host: string): string {
  if (host !== '0.0.0.0' && host !== '::') return host;
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return all.find(({ family, internal }) => family === 'IPv4' && !internal)?.address ?? LOOPBACK;
}

function addressError(error: NodeJS.ErrnoException, host: string, port: number): Error {
  if (error.code === 'EADDRINUSE')
    return new InputError(`port ${port} is in use: choose another one`, { key: '--port' });
  if (error.code === 'EACCES')
    return new InputError(`port ${port} is reserved: choose one from 1024 on`, { key: '--port' });
  if (error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND') {
    return new InputError(`this machine has no address ${host}`, { key: '--host' });
  }
  return error;
}

/** Token check: opening the link with it sets a cookie, which every other request must have. */
function tokenAccess(token: string) {
  const expected = digest(token);
  const isToken = (text: string): boolean => timingSafeEqual(digest(text), expected);
  // Cookies are shared by all ports of a host: the name keeps those of several servers apart.
  const name = `tcts-${expected.toString('hex').slice(0, 12)}`;
  return {
    isKnown({ cookie = '', authorization = '' }: IncomingHttpHeaders): boolean {
      if (authorization.startsWith('Bearer ')) return isToken(authorization.slice('Bearer '.length));
      const pairs = cookie.split(';').map((pair) => pair.trim().split('='));
      return pairs.some(([key, value = '']) => key === name && isToken(decoded(value)));
    },
    /** The cookie for a request of the link, else undefined. */
    cookieFor({ method, url = '' }: IncomingMessage): string | undefined {
      if (method !== 'GET' || !url.startsWith('/?')) return undefined;
      const given = new URLSearchParams(url.slice('/?'.length)).get('token');
      if (given === null || !isToken(given)) return undefined;
      return `${name}=${encodeURIComponent(token)}; Path=/; HttpOnly; SameSite=Lax`;
    },
  };
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}

export interface GuardOptions {
  /** The address that the server is bound to. */
  readonly host: string;
  /** Additional host names. */
  readonly names: readonly string[];
}

/** Why a request is rejected; undefined if it may pass. */
export type Guard = (headers: IncomingHttpHeaders) => string | undefined;

/**
 * Keeps other web sites out. A page of another site can make a browser send requests here, so `Origin` must be ours;
 * and its own name can be made to resolve to this machine (DNS rebinding), so `Host` must be a name that nobody else
 * controls: `localhost`, an IP address, or one that the user has given. Bound to loopback, only loopback addresses
 * count. Behind a proxy that speaks TLS the origin is `https`, which only names that the user has given may have.
 */
export function createGuard({ host, names }: GuardOptions): Guard {
  const given = new Set(names.map((name) => name.toLowerCase()));
  const known = new Set(['localhost', host.toLowerCase(), ...given]);
  const local = isLoopback(host);
  const trusted = (name: string): boolean => known.has(name) || (isIP(name) !== 0 && (!local || isLoopback(name)));
  return (headers) => {
    const host = headers.host ?? '';
    const name = hostName(host);
    if (name === undefined || !trusted(name)) return 'this name is not served here';
    const { origin } = headers;
    const isOwn = origin === `http://${host}` || (given.has(name) && origin === `https://${host}`);
    if (origin !== undefined && !isOwn) return 'requests of other sites are refused';
    const site = headers['sec-fetch-site'];
    if (site === 'cross-site' && headers['sec-fetch-mode'] !== 'navigate') return 'requests of other sites are refused';
    return undefined;
  };
}

/** Whether an address can only be reached from this machine. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** The name in a `Host` header, without port and brackets. */
function hostName(host: string): string | undefined {
  const [, bracketed, plain] = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?$/i.exec(host) ?? [];
  return (bracketed ?? plain)?.toLowerCase();
}

/** Headers of every answer. The page needs nothing but its own files and the server it came from. */
function securityHeaders(wasm: boolean): Readonly<Record<string, string>> {
  const policy = [
    "default-src 'none'",
    // WebAssembly is allowed only if models run in the page.
    `script-src 'self'${wasm ? " 'wasm-unsafe-eval'" : ''}`,
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return {
    'Content-Security-Policy': policy.join('; '),
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
    'Referrer-Policy': 'no-referrer',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Cache-Control': 'no-cache',
  };
}
