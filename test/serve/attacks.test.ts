import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGuard } from '../../src/serve/guard.js';
import { type PageServer, startServer } from '../../src/serve/server.js';
import { LiveClient } from './live-client.js';

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
function get(path: string, headers: Record<string, string> = {}, method = 'GET') {
  const { port } = new URL(server.url);
  return new Promise<{ status: number; headers: Record<string, unknown>; body: string }>((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, method, headers }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (piece) => (body += piece));
      response.on('end', () => resolve({ status: response.statusCode!, headers: response.headers, body }));
    });
    sent.on('error', reject).end();
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

  it('is protected the same way where something goes wrong', async () => {
    for (const path of ['/nothing', '/api/run?run=x']) {
      expect((await get(path)).headers['content-security-policy']).toContain("default-src 'none'");
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
