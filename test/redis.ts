import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, it, onTestFinished } from 'vitest';
import { temporaryFolder } from './run/temporary.js';

const present = spawnSync('redis-server', ['--version']).status === 0;
if (!present && process.env.CI) throw new Error('CI must have redis-server (of the Debian package redis-server)');
if (!present) console.warn('there is no redis-server: the tests that need one are skipped');

/** `describe`, skipped where there is no Redis server (a user's machine); in CI absence is an error. */
export function describeWithRedis(name: string, body: () => void): void {
  if (present) describe(name, body);
  else describe.skip(name, () => it('needs redis-server', () => {}));
}

export interface RedisServerOptions {
  /** Whether it remembers everything when it is started again. Default true. */
  readonly persistent?: boolean;
  /** Whether it speaks TLS, and nothing else; the arguments then say with which certificate. Default false. */
  readonly tls?: boolean;
  /** More arguments of redis-server. */
  readonly args?: readonly string[];
}

/** A Redis server of one test's own. */
export interface RedisServer {
  readonly port: number;
  readonly url: string;
  start(): Promise<void>;
  /** As if the power had failed. */
  kill(): Promise<void>;
}

export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  const { persistent = true, tls = false, args = [] } = options;
  const folder = temporaryFolder();
  const port = await freePort();
  const disk = persistent ? ['--appendonly', 'yes', '--appendfsync', 'always'] : ['--appendonly', 'no'];
  const ports = tls ? ['--port', '0', '--tls-port', String(port)] : ['--port', String(port)];
  const command = [...ports, '--bind', '127.0.0.1', '--dir', folder, '--save', '', ...disk, ...args];
  let server: ChildProcess | undefined;
  const kill = async () => {
    if (server?.exitCode !== null || server.signalCode !== null) return;
    server.kill('SIGKILL');
    await once(server, 'exit');
  };
  const start = async () => {
    server = spawn('redis-server', command, { stdio: 'ignore' });
    await untilListening(port);
  };
  onTestFinished(kill);
  await start();
  return { port, url: `redis://127.0.0.1:${port}`, start, kill };
}

async function untilListening(port: number): Promise<void> {
  for (const began = performance.now(); performance.now() - began < 10_000; await sleep(20)) {
    const socket = connect(port, '127.0.0.1');
    const listening = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (listening) return;
  }
  throw new Error('redis-server does not start');
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}
