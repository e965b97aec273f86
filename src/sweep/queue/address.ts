import { InputError } from '../../errors.js';

/** Where a Redis server is, and how to get in. */
export interface RedisAddress {
  readonly host: string;
  readonly port: number;
  /** Number of the database. */
  readonly db: number;
  readonly username?: string;
  readonly password?: string;
  /** Present for `rediss://`: the connection is encrypted and the server has to prove that it is this one. */
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
    // Names are checked against the certificate; an address in numbers has no name to send.
    ...(protocol === 'rediss:' ? { tls: host === hostname && !/^[\d.]+$/.test(host) ? { servername: host } : {} } : {}),
  };
}

/**
 * A text, such as an argument of the command line, with `***` for whatever may be secret in an address of Redis. Where
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
