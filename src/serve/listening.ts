import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import type { Hono } from 'hono';
import { InputError } from '../errors.js';
import { createGuard, type Guard, isLoopback } from './guard.js';

export interface Address {
  /** Default 127.0.0.1: only this machine can reach it. */
  readonly host?: string;
  /** 0: any that is free. */
  readonly port: number;
  /** Further names under which the server may be reached. Default none. */
  readonly names?: readonly string[];
}

export interface Listening {
  readonly server: Server;
  readonly url: string;
  readonly guard: Guard;
}

/** Starts an HTTP server in front of an app; what the guard refuses never reaches it. */
export async function listen(app: Hono, { host = LOOPBACK, port, names = [] }: Address): Promise<Listening> {
  const guard = createGuard({ host, names });
  const handle = getRequestListener(app.fetch);
  const server = createServer({ headersTimeout: 10_000, requestTimeout: 30_000 }, (request, response) => {
    const refused = guard(request.headers);
    if (refused === undefined) void handle(request, response);
    else response.writeHead(403, { 'Content-Type': 'text/plain' }).end(`${refused}\n`);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(refusal(error, host, port)));
    server.listen(port, host, resolve);
  });
  const { port: actual } = server.address() as AddressInfo;
  const name = isLoopback(host) ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  return { server, guard, url: `http://${name}:${actual}` };
}

const LOOPBACK = '127.0.0.1';

function refusal(error: NodeJS.ErrnoException, host: string, port: number): Error {
  if (error.code === 'EADDRINUSE')
    return new InputError(`port ${port} is in use: choose another one`, { key: '--port' });
  if (error.code === 'EACCES')
    return new InputError(`port ${port} is reserved: choose one from 1024 on`, { key: '--port' });
  if (error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND') {
    return new InputError(`this machine has no address ${host}`, { key: '--host' });
  }
  return error;
}
