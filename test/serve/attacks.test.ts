import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rateLimitByAddress } from '../../src/serve/limits.js';
import { createGuard } from '../../src/serve/listen.js';
import { withoutPaths } from '../../src/serve/run-folders.js';
import { type PageServer, startServer } from '../../src/serve/server.js';
import { LiveClient } from './live-client.js';

const KEY = 'dGhlIHNhbXBsZSBub25jZQ==';

let root: string;
let server: PageServer;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'tcts-attacks-'));
  mkdirSync(join(root, 'runs'));
  writeFileSync(join(root, 'secret.json'), '{"secret":"of the owner"}');
  mkdirSync(join(root, 'outside'));
  writeFileSync(join(root, 'outside', 'run.json'), '{"version":"0.1.0","state":"finished"}');
  writeFileSync(join(root, 'outside', 'config.yaml'), 'secret: of the owner\n');
  symlinkSync(join(root, 'outside'), join(root, 'runs', 'link'));
  server = await startServer({ folder: join(root, 'runs'), port: 0, browser: true });
});

afterAll(async () => {
  await server.close();
  rmSync(root, { recursive: true });
});

/** A request with its path and headers as they are, which `fetch` would tidy up. */
function get(path: string, headers: Record<string, string> = {}, method = 'GET', { url, from }: Sender = {}) {
  const { port } = new URL(url ?? server.url);
  return new Promise<{ status: number; headers: Record<string, unknown>; body: string }>((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', localAddress: from, port, path, method, headers }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (piece) => (body += piece));
      response.on('end', () => resolve({ status: response.statusCode!, headers: response.headers, body }));
    });
    sent.on('error', reject).end();
  });
}

/** The first answer that is a refusal, of as many requests of one address as it takes. */
async function firstRefused(from: string) {
  for (let i = 0; i < 200; i++) {
    const answers = Array.from({ length: 100 }, () => get('/nothing', {}, 'GET', { from }));
    const refused = (await Promise.all(answers)).find(({ status }) => status !== 404);
    if (refused !== undefined) return refused;
  }
  return undefined;
}

interface Sender {
  readonly url?: string;
  /** Address that the request comes from. */
  readonly from?: string;
}

/** What a server answers to bytes that are no request, or none that it takes. */
function raw(bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1', () => socket.write(bytes));
    let answer = '';
    socket.setEncoding('latin1').on('data', (piece) => (answer += piece));
    socket.on('error', reject).on('close', () => resolve(answer));
  });
}

describe('other sites', () => {
  it.each(['evil.example', 'evil.example:8470', 'localhost.evil.example', '192.168.0.7', '127.0.0.1.evil.example'])(
    'cannot reach the server under the name "%s"',
    async (host) => {
      expect((await get('/', { host })).status).toBe(403);
      await expect(LiveClient.connect(server.url, { host })).rejects.toThrow('403');
    },
  );

  it.each(['http://evil.example', 'null', 'https://localhost', 'http://localhost:1'])(
    'cannot send requests from the origin %s',
    async (origin) => {
      expect((await get('/api/runs', { origin })).status).toBe(403);
      await expect(LiveClient.connect(server.url, { origin })).rejects.toThrow('403');
    },
  );

  it('cannot embed what the server answers', async () => {
    expect((await get('/api/runs', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' })).status).toBe(403);
  });

  it('are told apart from the page itself', async () => {
    expect((await get('/api/runs', { host: new URL(server.url).host, origin: server.url })).status).toBe(200);
    const client = await LiveClient.connect(server.url, { origin: server.url });
    await client.close();
  });
});

describe('the guard', () => {
  const port = fc.constantFrom('', ':80', ':8470');

  it('bound to loopback, lets no name pass but those of this machine', () => {
    const guard = createGuard({ host: '127.0.0.1', names: ['box.example'] });
    const own = ['localhost', 'LOCALHOST', '127.0.0.1', '127.1.2.3', '[::1]', 'box.example'];
    for (const host of own) expect(guard({ host: `${host}:8470` })).toBeUndefined();
    expect(guard({})).toBeDefined();
    const foreign = fc.oneof(
      fc.domain(),
      fc.ipV4().filter((ip) => !ip.startsWith('127.')),
      fc.string(),
    );
    fc.assert(
      fc.property(foreign, port, (name, end) => {
        fc.pre(!own.includes(name.toLowerCase()) && !/^(localhost|127\.)/i.test(name));
        return guard({ host: name + end }) !== undefined;
      }),
    );
  });

  it('bound to the network, lets addresses pass, which nobody can rebind, and no names', () => {
    const guard = createGuard({ host: '0.0.0.0', names: [] });
    fc.assert(fc.property(fc.ipV4(), port, (ip, end) => guard({ host: ip + end }) === undefined));
    fc.assert(fc.property(fc.domain(), port, (name, end) => guard({ host: name + end }) !== undefined));
  });
});

describe('behind a proxy that speaks TLS', () => {
  it('the page has the origin https under a name that was given, and under no other', () => {
    const guard = createGuard({ host: '127.0.0.1', names: ['box.example'] });
    expect(guard({ host: 'box.example', origin: 'https://box.example' })).toBeUndefined();
    expect(guard({ host: 'localhost:8470', origin: 'https://localhost:8470' })).toBeDefined();
    expect(guard({ host: 'box.example', origin: 'https://evil.example' })).toBeDefined();
  });
});

describe('a token', () => {
  let guarded: PageServer;
  beforeAll(async () => {
    guarded = await startServer({ folder: join(root, 'runs'), port: 0, token: 'open sesame' });
  });
  afterAll(() => guarded.close());

  const ask = (path: string, headers = {}) => get(path, headers, 'GET', { url: guarded.url });

  it('is needed for everything', async () => {
    for (const path of ['/', '/page/main.js', '/api/runs', '/?token=open', '/?token=']) {
      expect((await ask(path)).status).toBe(401);
    }
    await expect(LiveClient.connect(guarded.url)).rejects.toThrow('401');
    expect((await ask('/', { authorization: 'Bearer open' })).status).toBe(401);
    expect((await ask('/', { authorization: 'Bearer open sesame' })).status).toBe(200);
  });

  it('is in the link, which gives a cookie that scripts and other sites do not get', async () => {
    const { pathname, search } = new URL(guarded.link);
    const { status, headers } = await ask(pathname + search);
    expect([status, headers.location]).toEqual([303, '/']);
    const [cookie] = headers['set-cookie'] as string[];
    expect(cookie).toMatch(/; HttpOnly; SameSite=Lax$/);
    const sent = { cookie: `other=1; ${cookie.split(';')[0]}` };
    expect((await ask('/api/runs', sent)).status).toBe(200);
    expect((await ask('/api/runs', { cookie: sent.cookie.replace('open', 'close') })).status).toBe(401);
    await (await LiveClient.connect(guarded.url, sent)).close();
    expect((await ask(pathname + search, { host: 'evil.example' })).status).toBe(403);
  });

  it('is made where none is given and other machines can reach the server', async () => {
    const open = await startServer({ folder: root, port: 0, host: '0.0.0.0' });
    const again = await startServer({ folder: root, port: 0, host: '0.0.0.0' });
    const tokens = [open, again].map(({ link }) => new URL(link).searchParams.get('token'));
    expect(tokens[0]).toMatch(/^[\w-]{22}$/);
    expect(tokens[1]).not.toBe(tokens[0]);
    expect((await get('/', {}, 'GET', { url: open.url })).status).toBe(401);
    await Promise.all([open.close(), again.close()]);
    await expect(startServer({ folder: root, port: 0, token: 'short' })).rejects.toThrow('at least 8 characters');
  });
});

describe('a client that asks too much', () => {
  it('is refused for a while, and nobody else is', async () => {
    // Loopback has many addresses: each is a client.
    expect((await firstRefused('127.0.0.2'))?.status).toBe(429);
    expect((await get('/page/style.css', {}, 'GET', { from: '127.0.0.3' })).status).toBe(200);
  });

  it('is told from others by its address', () => {
    let now = 0;
    const within = rateLimitByAddress(1, 2, () => now);
    expect(['a', 'a', 'a', 'b', 'b', 'b'].map(within)).toEqual([true, true, false, true, true, false]);
    now = 1000;
    expect(['a', 'a'].map(within)).toEqual([true, false]);
  });
});

describe('sentences for clients', () => {
  it('have no absolute paths in them', () => {
    const part = fc.stringMatching(/^[a-z0-9_.-]{1,8}$/).filter((text) => !/^\.+$/.test(text));
    fc.assert(
      fc.property(fc.array(part, { minLength: 2, maxLength: 6 }), part, (folders, file) => {
        const folder = `/${folders.join('/')}`;
        for (const message of [`${folder}/${file}: expected x`, `cannot read "${folder}/${file}"`]) {
          expect(withoutPaths(message)).not.toContain(folder);
          expect(withoutPaths(message)).toContain(file);
        }
      }),
    );
    const inRun = withoutPaths('/home/x/runs/one/evaluation/a/scores.json: expected scores', '/home/x/runs/one');
    expect(inRun).toBe('evaluation/a/scores.json: expected scores');
    expect(withoutPaths('expected 0/1 or a and/or b, found km/h/s')).toBe('expected 0/1 or a and/or b, found km/h/s');
  });
});

describe('files', () => {
  it.each([
    '/../secret.json',
    '/page/../../secret.json',
    '/page/..%2f..%2fsecret.json',
    '/page/%2e%2e/%2e%2e/package.json',
    '/page/....//package.json',
    '/page\\..\\..\\package.json',
    '/lib/../../package.json',
    '/tcts/../../package.json',
    '/tcts/cli/main.js',
    '//etc/passwd',
    '/page/main.js%00.css',
    '/page/',
    '/model',
    '/model?run=../outside&file=config.yaml',
    '/model?run=link&file=config.yaml',
    '/api/run?run=../outside',
    '/api/run?run=link',
    '/api/run?run=..%2f..%2foutside',
    '/api/run?run=/etc',
  ])('outside what the page needs are not served: %s', async (path) => {
    const { status, body } = await get(path);
    expect([400, 404]).toContain(status);
    expect(body).not.toContain('of the owner');
  });

  it('behind links are not listed', async () => {
    expect((await get('/api/runs')).body).toBe('[]');
  });

  it('of the page are served, by GET alone', async () => {
    expect((await get('/page/main.js')).headers['content-type']).toContain('text/javascript');
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      expect((await get('/page/main.js', {}, method)).status).toBe(405);
    }
  });
});

describe('the page', () => {
  it('may load nothing from elsewhere, nor run what is written into it', async () => {
    const { headers, body } = await get('/');
    const policy = String(headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toMatch(/unsafe-inline|'unsafe-eval'|https?:|\*/);
    expect(headers['x-content-type-options']).toBe('nosniff');
    expect(body).not.toMatch(/https?:\/\//);
  });

  const PROTECTING = {
    'content-security-policy': expect.stringContaining("default-src 'none'"),
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'cache-control': 'no-cache',
  };

  it('is protected by every answer, whatever it says', async () => {
    const guarded = await startServer({ folder: join(root, 'runs'), port: 0, token: 'open sesame' });
    const { headers } = await get('/page/main.js');
    const gzip = { 'accept-encoding': 'gzip' };
    const answers = [
      await get('/'),
      await get('/page/style.css', gzip),
      await get('/page/style.css', {}, 'HEAD'),
      await get('/page/ort-wasm.wasm', gzip),
      await get('/api/runs'),
      await get('/page/main.js', { 'if-none-match': String(headers.etag) }),
      await get('/nothing'),
      await get('/live'),
      await get('/api/run?run=x'),
      await get('/model?run=x'),
      await get('/', { host: 'evil.example' }),
      await get('/', {}, 'POST'),
      await get('/', { expect: 'a miracle' }),
      await get('/', {}, 'GET', { url: guarded.url }),
      await get('/?token=open%20sesame', {}, 'GET', { url: guarded.url }),
      await firstRefused('127.0.0.4'),
    ];
    await guarded.close();
    expect(answers.map((answer) => answer?.status)).toEqual([
      ...[200, 200, 200, 200, 200, 304],
      ...[404, 404, 404, 404, 403, 405, 417, 401, 303, 429],
    ]);
    for (const answer of answers) expect(answer?.headers).toMatchObject(PROTECTING);
  });

  it('is protected the same way where there is no request to answer', async () => {
    const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
    for (const [bytes, status] of [
      ['no request at all\r\n\r\n', 400],
      [`GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
      [`GET /live HTTP/1.1\r\nHost: evil.example\r\n${upgrade}`, 403],
      [`GET /other HTTP/1.1\r\nHost: localhost\r\n${upgrade}`, 404],
      [`GET /live HTTP/1.1\r\nHost: localhost\r\n${upgrade}`, 400],
      [`GET /live HTTP/1.1\r\nHost: localhost\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n`, 400],
      [
        `GET /live HTTP/1.1\r\nHost: localhost\r\nSec-WebSocket-Key: ${KEY}\r\nSec-WebSocket-Version: 7\r\n${upgrade}`,
        426,
      ],
      [`POST /live HTTP/1.1\r\nHost: localhost\r\nSec-WebSocket-Key: ${KEY}\r\n${upgrade}`, 400],
    ] as const) {
      const answer = await raw(bytes);
      expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
      const sent = [...answer.matchAll(/^([\w-]+): (.*?)\r$/gm)].map(([, name, value]) => [name.toLowerCase(), value]);
      expect(Object.fromEntries(sent)).toMatchObject(PROTECTING);
    }
  });

  it('comes compressed, and once: the second time nothing is sent', async () => {
    for (const path of ['/', '/page/main.js', '/page/style.css', '/page/ort-wasm.wasm']) {
      const plain = await fetch(server.url + path, { headers: { 'accept-encoding': 'identity' } });
      const packed = await fetch(server.url + path, { headers: { 'accept-encoding': 'gzip' } });
      expect(packed.headers.get('content-encoding')).toBe('gzip');
      expect(Buffer.from(await packed.arrayBuffer()).equals(Buffer.from(await plain.arrayBuffer()))).toBe(true);
      const again = await fetch(server.url + path, { headers: { 'if-none-match': packed.headers.get('etag')! } });
      expect([again.status, await again.text()]).toEqual([304, '']);
    }
  });
});

describe('an address that cannot be had', () => {
  it('is refused with a sentence', async () => {
    const port = Number(new URL(server.url).port);
    await expect(startServer({ folder: root, port })).rejects.toThrow(`port ${port} is in use`);
    await expect(startServer({ folder: root, port: 0, host: '203.0.113.7' })).rejects.toThrow('no address 203.0.113.7');
  });
});
