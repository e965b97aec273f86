import { createHash } from 'node:crypto';
import { isAbsolute, join, relative, sep } from 'node:path';
import { Redis } from 'ioredis';
import { z } from 'zod';
import { InputError } from '../../errors.js';
import { compatible, toolVersion } from '../../run/versions.js';
import type { Job } from '../job.js';

/** How BullMQ connects: while the server is away it waits indefinitely instead of failing. */
export interface Connection extends RedisAddress {
  readonly maxRetriesPerRequest: null;
  readonly retryStrategy: (attempt: number) => number;
}

/** Checks that the server answers and lets us in, so that a wrong address gives an error at once. */
export async function connectionTo(url: string): Promise<Connection> {
  const address = parseAddress(url);
  const probe = new Redis({
    ...address,
    lazyConnect: true,
    connectTimeout: CONNECT_MILLISECONDS,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  let reason: Error | undefined;
  probe.on('error', (error) => {
    reason ??= error;
  });
  try {
    await probe.connect();
    await probe.ping();
  } catch (error) {
    throw new InputError(`${redacted(url)}: ${sentence(reason ?? (error as Error), address)}`);
  } finally {
    probe.disconnect();
  }
  return {
    ...address,
    maxRetriesPerRequest: null,
    retryStrategy: (attempt) => Math.min(LONGEST_RETRY_MILLISECONDS, 100 * 2 ** Math.min(attempt, 10)),
  };
}

/** The events of a BullMQ queue or worker that report on its connection. */
interface Connected {
  on(event: 'error', listener: (error: Error) => void): unknown;
}

export interface Outages {
  /** To be called whenever the server has answered. */
  answered(): void;
}

/** Notes once when the server is gone and once when it is back, regardless of the attempts between. */
export function noteOutages(connected: Connected, url: string, note: (line: string) => void): Outages {
  let away = false;
  connected.on('error', (error) => {
    if (!away) note(`Redis at ${redacted(url)} is not working (${redacted(error.message)}); waiting for it`);
    away = true;
  });
  return {
    answered() {
      if (away) note(`Redis at ${redacted(url)} is back`);
      away = false;
    },
  };
}

function sentence(error: Error, { tls }: RedisAddress): string {
  const { code = '', message } = error as NodeJS.ErrnoException;
  if (/WRONGPASS|invalid (username|password)/i.test(message)) return 'Redis refuses this user and password';
  if (/NOAUTH/.test(message)) return 'Redis asks for a password: give redis://user:password@host';
  if (/CERT|SELF_SIGNED|SIGNATURE|ALTNAME/.test(code)) {
    return `the certificate of the server is not accepted (${message}); name your authority in NODE_EXTRA_CA_CERTS`;
  }
  const reason = REASONS[code] ?? message;
  return `cannot connect to Redis: ${reason}${tls ? ' (rediss:// expects a server that speaks TLS)' : ''}`;
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection is refused: no server seems to be running there',
  ECONNRESET: 'the server closed the connection',
  EAI_AGAIN: 'the name of the host cannot be looked up',
  ENOTFOUND: 'there is no host of this name',
  ETIMEDOUT: 'the host does not answer',
};

const CONNECT_MILLISECONDS = 10_000;
const LONGEST_RETRY_MILLISECONDS = 5000;

/** Where a Redis server is, and how to get in. */
export interface RedisAddress {
  readonly host: string;
  readonly port: number;
  /** Number of the database. */
  readonly db: number;
  readonly username?: string;
  readonly password?: string;
  /** Present for `rediss://`: the connection is encrypted and the server's identity is verified. */
  readonly tls?: { readonly servername?: string };
}

/** Reads `redis://[user:password@]host[:port][/database]`, or `rediss://…` for TLS. No error repeats the address. */
export function parseAddress(url: string): RedisAddress {
  let parts: URL;
  try {
    parts = new URL(url);
  } catch {
    throw badAddress('it is not a URL');
  }
  const { protocol, hostname, port, pathname, search, hash } = parts;
  if (protocol !== 'redis:' && protocol !== 'rediss:') throw badAddress(`it begins with ${protocol}//`);
  if (hostname === '') throw badAddress('it names no host');
  if (search !== '' || hash !== '') throw badAddress('it has a part after ? or #');
  const db = /^\/?(\d{0,5})$/.exec(pathname)?.[1];
  if (db === undefined) throw badAddress('the database is not a number');
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const [username, password] = [parts.username, parts.password].map(decoded);
  return {
    host,
    port: port === '' ? 6379 : Number(port),
    db: Number(db),
    ...(username === '' ? {} : { username }),
    ...(password === '' ? {} : { password }),
    // Names are checked against the certificate; a numeric address has no name to send.
    ...(protocol === 'rediss:' ? { tls: host === hostname && !/^[\d.]+$/.test(host) ? { servername: host } : {} } : {}),
  };
}

/**
 * A text, such as a command-line argument, with `***` for anything that may be secret in a Redis address. If
 * the end of the secret is in doubt, too much is hidden rather than too little.
 */
export function redacted(text: string): string {
  return text.replace(/(rediss?:\/\/).*@/gis, '$1***@').replace(/(rediss?:\/\/[^\s?#]*)[?#]\S*/gi, '$1?***');
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw badAddress('a % in the user or password is not followed by two hexadecimal digits');
  }
}

function badAddress(found: string): InputError {
  return new InputError(
    `the address of the queue cannot be used: ${found}; expected redis://[user:password@]host[:port][/database], or rediss:// for TLS`,
  );
}

const schema = z.strictObject({
  /** Version of the tool that queued the run. */
  version: z.string(),
  /** Which shared folder it belongs in, see `SharedFolder.id`. */
  shared: z.string(),
  /** The run folder, relative to the shared one, with / between its parts. */
  folder: z.string().min(1),
  config: z.string(),
  after: z.array(z.array(z.string()).min(1)),
  cores: z.int().min(1),
  /** Updates after which it pauses. */
  until: z.int().min(1).optional(),
  /** The sweep wants it to save its state and stop. */
  stop: z.boolean(),
});

/** A job in the queue: it means the same on every machine, since it names nothing outside the shared folder. */
export type Message = z.output<typeof schema>;

/** A job whose folder lies in the shared folder `runs`, as a message. */
export function messageOf(job: Job, runs: string, shared: string): Message {
  const folder = relative(runs, job.folder);
  if (!isInside(folder)) throw new InputError(`the run is not in the shared folder ${runs}`, { file: job.folder });
  const after = job.after.map((verb) => [...verb]);
  const { config, cores, until } = job;
  const place = { version: toolVersion, shared, folder: folder.split(sep).join('/') };
  return { ...place, config, after, cores, ...(until !== undefined && { until }), stop: false };
}

/** The message as a job on this machine, where the shared folder is `runs`. */
export function jobOf({ folder, config, after, cores, until }: Message, runs: string): Job {
  const place = { name: folder.split('/').at(-1)!, folder: join(runs, ...folder.split('/')) };
  return { ...place, config, after, cores, ...(until !== undefined && { until }) };
}

/**
 * A run has one identity as long as the request is the same: queueing it twice does not run it twice.
 * Its start is readable; BullMQ allows no colon and no bare number, and a file is named after it.
 */
export function jobIdentity({ folder, config, after, until }: Message): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([folder, config, after, ...(until === undefined ? [] : [until])]))
    .digest('hex')
    .slice(0, 16);
  return `${folder.replaceAll(/[^\w.=,+-]/g, '-').slice(-READABLE)}-${hash}`;
}

/** Rejects a sweep of another version of the tool, whose runs this one could not continue. */
export function requireSameVersion(data: unknown): void {
  const { version } = (data ?? {}) as { version?: unknown };
  if (typeof version !== 'string' || compatible(version, toolVersion)) return;
  throw new InputError(
    `the sweep in this queue was started by tcts ${version}, but this worker is tcts ${toolVersion}: install the same version`,
  );
}

/** What was found in the queue, if it is a message that names a folder inside the shared one. */
export function parseJobMessage(data: unknown): Message | undefined {
  const { data: message } = schema.safeParse(data);
  return message !== undefined && isInside(message.folder) ? message : undefined;
}

function isInside(folder: string): boolean {
  return folder !== '' && !isAbsolute(folder) && !folder.split(/[/\\]/).includes('..');
}

const READABLE = 150;

/** Default name of the queue. */
export const QUEUE_NAME = 'runs';

/** Prefix of all keys in Redis. */
export const PREFIX = 'tcts';

/** The failure reason of a job that its sweep asked to stop. */
export const STOPPED = 'stopped by its sweep';
