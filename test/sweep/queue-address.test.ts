import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseAddress, redacted } from '../../src/sweep/queue/connection.js';

describe('the address of a queue', () => {
  it('may be a host alone', () => {
    expect(parseAddress('redis://queue')).toEqual({ host: 'queue', port: 6379, db: 0 });
  });

  it('may have a port, a database, a user and a password with escaped characters', () => {
    expect(parseAddress('redis://ann:p%40ss%2F1@10.0.0.7:6380/3')).toEqual({
      host: '10.0.0.7',
      port: 6380,
      db: 3,
      username: 'ann',
      password: 'p@ss/1',
    });
    expect(parseAddress('redis://:secret@queue/')).toEqual({ host: 'queue', port: 6379, db: 0, password: 'secret' });
  });

  it('asks for TLS with rediss://, with the name that the certificate must have', () => {
    expect(parseAddress('rediss://queue.example.org').tls).toEqual({ servername: 'queue.example.org' });
    expect(parseAddress('rediss://[::1]:7000')).toEqual({ host: '::1', port: 7000, db: 0, tls: {} });
    expect(parseAddress('rediss://10.0.0.7').tls).toEqual({});
  });

  it.each([
    ['queue-host', 'it is not a URL'],
    ['http://ann:secret@queue', 'it begins with http://'],
    ['redis://', 'it names no host'],
    ['redis://ann:secret@queue/main', 'the database is not a number'],
    ['redis://queue?password=secret', 'it has a part after ? or #'],
    ['redis://ann:%E0%secret@queue', 'a % in the user or password'],
    ['redis//ann:secret@queue', 'it is not a URL'],
  ])('%s is refused without repeating what may be secret', (url, reason) => {
    const parse = () => parseAddress(url);
    expect(parse).toThrow(`the address of the queue cannot be used: ${reason}`);
    expect(parse).not.toThrow('secret');
  });
});

describe('what is shown of an address', () => {
  it('is everything but user, password and what follows a question mark', () => {
    expect(redacted('redis://queue:6380/2')).toBe('redis://queue:6380/2');
    expect(redacted('rediss://ann:secret@queue:6380/2')).toBe('rediss://***@queue:6380/2');
    expect(redacted('--queue=redis://:secret@queue')).toBe('--queue=redis://***@queue');
    expect(redacted('redis://queue?password=secret')).toBe('redis://queue?***');
    expect(redacted('REDIS://ann:secret@queue')).toBe('REDIS://***@queue');
  });

  it('leaves other texts alone', () => {
    expect(redacted('mail ann@example.org about runs?all')).toBe('mail ann@example.org about runs?all');
  });

  // Capital letters occur in nothing else of the address.
  const secret = fc.stringMatching(/^[A-Z@/?#:%" ]{1,20}$/).filter((text) => /[A-Z]/.test(text));

  it('never contains a letter of any user or password, escaped or not, wherever the address stands', () => {
    fc.assert(
      fc.property(secret, secret, fc.boolean(), (user, password, escaped) => {
        const [a, b] = escaped ? [user, password].map(encodeURIComponent) : [user, password];
        expect(redacted(`before rediss://${a}:${b}@queue:1/0 after`)).not.toMatch(/[A-Z]/);
      }),
    );
  });

  it('is that of the address that is connected to', () => {
    fc.assert(
      fc.property(secret, secret, (user, password) => {
        const url = `redis://${encodeURIComponent(user)}:${encodeURIComponent(password)}@queue`;
        expect(parseAddress(url)).toMatchObject({ username: user, password, host: 'queue' });
        expect(redacted(url)).toBe('redis://***@queue');
      }),
    );
  });
});
