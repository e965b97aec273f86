import { Redis } from 'ioredis';
import { InputError } from '../../errors.js';
import { parseAddress, type RedisAddress, redacted } from './address.js';

/** How BullMQ shall connect: it waits for a server that is away, however long, instead of failing. */
export interface Connection extends RedisAddress {
  readonly maxRetriesPerRequest: null;
  readonly retryStrategy: (attempt: number) => number;
}

/** Makes sure that the server answers and lets us in: a wrong address shall end in a sentence, not in waiting. */
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

/** The events of a BullMQ queue or worker that tell how its connection is. */
interface Connected {
  on(event: 'error', listener: (error: Error) => void): unknown;
}

export interface Outages {
  /** To be called whenever the server has answered. */
  answered(): void;
}

/** Tells once when the server is gone and once when it is back, however many attempts lie between. */
export function noteOutages(connected: Connected, url: string, note: (line: string) => void): Outages {
  let away = false;
  connected.on('error', (error) => {
    if (!away)
      note(`Redis at ${redacted(url)} is of no use at the moment (${redacted(error.message)}); waiting for it`);
    away = true;
  });
  return {
    answered() {
      if (away) note(`Redis at ${redacted(url)} answers again`);
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
  ECONNREFUSED: 'the connection is refused, so that no server seems to be running there',
  ECONNRESET: 'the server broke off the connection',
  EAI_AGAIN: 'the name of the host cannot be looked up',
  ENOTFOUND: 'there is no host of this name',
  ETIMEDOUT: 'the host does not answer',
};

const CONNECT_MILLISECONDS = 10_000;
const LONGEST_RETRY_MILLISECONDS = 5000;
