import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer, type Server } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startServer } from '../../src/serve/server.js';
import { temporaryFolder } from '../run/temporary.js';
import { openPage, outcome } from './browser.js';
import { describePage } from './page-server.js';

/** A key and a certificate for localhost; undefined without openssl. */
function certificate(): { key: Buffer; cert: Buffer } | undefined {
  const [key, cert] = ['key.pem', 'cert.pem'].map((name) => join(temporaryFolder(), name));
  const args = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost'];
  if (spawnSync('openssl', [...args, '-keyout', key, '-out', cert]).status !== 0) return undefined;
  return { key: readFileSync(key), cert: readFileSync(cert) };
}

/** A proxy that speaks TLS and hands everything on as it came, upgrades too. */
async function startProxy(port: number, keys: { key: Buffer; cert: Buffer }): Promise<Server> {
  const proxy = createServer(keys, ({ method, url, headers }, response) => {
    const onward = request({ port, method, path: url, headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    });
    onward.end();
  });
  proxy.on('upgrade', ({ method, url, rawHeaders }, socket, head) => {
    const onward = connect(port, '127.0.0.1', () => {
      const lines = rawHeaders.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${rawHeaders[i + 1]}`] : []));
      onward.write(`${method} ${url} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
      onward.write(head);
      onward.pipe(socket).pipe(onward);
    });
    for (const end of [onward, socket]) end.on('error', () => end.destroy());
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  return proxy;
}

describePage('the page behind a proxy that speaks TLS', (served) => {
  it('translates over wss, where the name of the proxy was given, and not otherwise', async (context) => {
    const keys = certificate();
    if (keys === undefined) return context.skip('there is no openssl here');
    for (const names of [['localhost'], []]) {
      const server = await startServer({ folder: served.root, port: 0, names });
      const proxy = await startProxy(Number(new URL(server.url).port), keys);
      const url = `https://localhost:${(proxy.address() as AddressInfo).port}`;
      const { page } = await openPage(served.browser, 'about:blank', { ignoreHTTPSErrors: true });
      const sockets: string[] = [];
      page.on('websocket', (socket) => sockets.push(socket.url()));
      await page.goto(url);
      if (names.length > 0) {
        await page.getByRole('slider', { name: 'pace' }).fill('10');
        await page.getByRole('button', { name: 'Play an example' }).click();
        const written = await outcome(page);
        expect(written).toBe(await served.line(await page.getByRole('textbox').inputValue(), 'wait-k:3'));
        expect(sockets).toEqual([`${url.replace('https', 'wss')}/live`]);
        expect(await page.getByText('start it with --name').count()).toBe(0);
      } else await page.getByText('start it with --name').waitFor();
      await page.close();
      proxy.closeAllConnections();
      proxy.close();
      await server.close();
    }
  });
});
