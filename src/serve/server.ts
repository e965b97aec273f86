import { createHash, randomBytes } from 'node:crypto';
import { createReadStream, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, extname, join } from 'node:path';
import { Readable } from 'node:stream';
import { createGunzip, gzipSync } from 'node:zlib';
import { type Context, Hono } from 'hono';
import { etag } from 'hono/etag';
import { InputError } from '../errors.js';
import { builtFile } from '../files.js';
import { limits } from './limits.js';
import { type Address, isLoopback, listen } from './listen.js';
import type { LiveModelOptions } from './live-model.js';
import { LiveModels } from './live-models.js';
import { LiveSocket } from './live-socket.js';
import { type BuiltInModel, type ExportDevice, RunReader } from './run-reader.js';

/** What is served, where, and to whom. */
export interface ServeOptions extends Address, LiveModelOptions {
  /** A folder of runs, or a run. */
  readonly folder: string;
  /** A model that is offered after those of the runs. Default none. */
  readonly builtIn?: BuiltInModel;
  /** Let models run in the page, too. Default false. */
  readonly browser?: boolean;
}

/** A running server of the page. */
export interface PageServer {
  readonly url: string;
  /** The URL with the token, if there is one: what a person opens. */
  readonly link: string;
  /** Sentences under way. */
  readonly sentences: number;
  /** Lets translations under way come to an end and stops. */
  close(): Promise<void>;
}

/** Serves the page: its files, what it shows of the runs, and translation over a WebSocket. */
export async function startServer(options: ServeOptions): Promise<PageServer> {
  const { folder, builtIn, browser = false, checkpoint, modules } = options;
  const token = tokenOf(options);
  const found = { folder, builtIn, browser, checkpoint, modules };
  // Long tasks, such as exporting a model, have a thread separate from frequent lookups.
  const [reader, maker] = [new RunReader(found), new RunReader(found)];
  const exports = browser ? mkdtempSync(join(tmpdir(), 'tcts-serve-')) : undefined;
  const stop = async (): Promise<void> => {
    await Promise.all([reader.close(), maker.close()]);
    if (exports !== undefined) rmSync(exports, { recursive: true, force: true });
  };
  try {
    const models = new LiveModels(limits.models, options);
    const listening = await listen(
      pageApp(reader, maker, exports),
      { ...options, token },
      { wasm: browser, limited: true },
    );
    const { server, url, refusal } = listening;
    const live = new LiveSocket(refusal, { models, find: (id) => reader.ask('folder', id) });
    server.on('upgrade', live.upgrade);
    return {
      url,
      link: token === undefined ? url : `${url}/?token=${encodeURIComponent(token)}`,
      get sentences() {
        return live.sentences;
      },
      async close() {
        server.close();
        await live.close();
        server.closeAllConnections();
        await models.close();
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** What clients must know: beyond loopback there is always something. */
function tokenOf({ host, token }: Address): string | undefined {
  if (token === undefined)
    return host === undefined || isLoopback(host) ? undefined : randomBytes(16).toString('base64url');
  if (token.length >= SHORTEST_TOKEN) return token;
  throw new InputError(`expected a token of at least ${SHORTEST_TOKEN} characters`, { key: '--token' });
}

const SHORTEST_TOKEN = 8;

/**
 * @param reader answers frequent requests
 * @param maker answers long-running requests
 * @param exports where models are written for the page; undefined: they do not run there
 */
function pageApp(reader: RunReader, maker: RunReader, exports: string | undefined): Hono {
  const files = pageFiles();
  const app = new Hono();

  app.use(async (c, next) => {
    if (c.req.method !== 'GET' && c.req.method !== 'HEAD') return c.text('only GET is answered here\n', 405);
    return next();
  });
  app.use(etag());

  app.get('/api/runs', async (c) => json(c, await reader.ask('list')));
  app.get('/api/run', async (c) => json(c, await reader.ask('report', chosen(c))));
  app.get('/api/scheduler', async (c) => json(c, await maker.ask('scheduler', chosen(c))));
  app.get('/api/translation', async (c) => json(c, await reader.ask('translation')));
  if (exports !== undefined) {
    app.get('/api/model', async (c) =>
      c.json((await maker.ask('exportModel', chosen(c), exports, chosenDevice(c))).files),
    );
    app.get('/model', async (c) => {
      const model = await maker.ask('exportModel', chosen(c), exports, chosenDevice(c));
      const name = c.req.query('file') ?? '';
      if (!model.files.includes(name)) return c.text('there is no such file\n', 404);
      const tag = `"${Buffer.from(`${model.stamp} ${name}`).toString('base64url')}"`;
      return compressed(c, createReadStream(join(model.folder, name)), modelFileType(name), tag);
    });
  }
  app.get('*', (c) => {
    const file = files.get(c.req.path);
    if (file === undefined) return c.text('there is nothing here\n', 404);
    return compressed(c, Readable.from([file.bytes]), file.type, file.etag);
  });

  app.onError((error, c) => {
    if (error instanceof InputError) return c.json({ message: error.message }, 404);
    console.error(error);
    return c.json({ message: 'internal error' }, 500);
  });
  return app;
}

/** Name of the run that a request is about. */
function chosen(c: Context): string {
  return c.req.query('run') ?? '';
}

/** What in the page its model is to run on. */
function chosenDevice(c: Context): ExportDevice {
  const device = c.req.query('device') ?? 'cpu';
  if (device === 'cpu' || device === 'webgpu') return device;
  throw new InputError('expected cpu or webgpu', { key: 'device' });
}

function json(c: Context, text: string): Response {
  return c.body(text, 200, { 'Content-Type': 'application/json' });
}

/** Content kept compressed; clients that do not accept that get it uncompressed. */
function compressed(c: Context, content: Readable, type: string, tag: string): Response {
  const headers = { 'Content-Type': type, ETag: tag, Vary: 'Accept-Encoding' };
  const isRead = /\bgzip\b/.test(c.req.header('accept-encoding') ?? '');
  const body = isRead ? content : content.pipe(createGunzip());
  const web = Readable.toWeb(body) as ReadableStream;
  return c.body(web, 200, isRead ? { ...headers, 'Content-Encoding': 'gzip' } : headers);
}

/** A file that the page may load. */
export interface PageFile {
  /** Compressed with gzip. */
  readonly bytes: Buffer<ArrayBuffer>;
  readonly type: string;
  readonly etag: string;
}

/**
 * The page and what it loads, by the path of the URL. Nothing else is served: no path of a request is ever
 * joined to a folder.
 */
function pageFiles(): ReadonlyMap<string, PageFile> {
  const files = new Map<string, PageFile>();
  const add = (url: string, compressed: Buffer<ArrayBuffer>, type: string): void => {
    const digest = createHash('sha256').update(compressed).digest('base64url');
    files.set(url, { bytes: compressed, type, etag: `"${digest}"` });
  };
  add('/', gzipSync(DOCUMENT), TYPES['.html']);
  const folder = dirname(builtFile('page/main.js'));
  for (const name of readdirSync(folder)) {
    const content = readFileSync(join(folder, name));
    // The build has compressed what is large.
    const isCompressed = name.endsWith('.gz');
    const own = isCompressed ? name.slice(0, -'.gz'.length) : name;
    const type = TYPES[extname(own)];
    if (type !== undefined) add(`/page/${own}`, isCompressed ? content : gzipSync(content), type);
  }
  return files;
}

/** Type of a file of an exported model. */
function modelFileType(name: string): string {
  return TYPES[extname(name)] ?? 'application/octet-stream';
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.wasm': 'application/wasm',
};

/** Everything in the page is made by `/page/main.js`; what stands here is seen where that is refused. */
const DOCUMENT = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>tcts</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/page/style.css">
<script type="module" src="/page/main.js"></script>
</head>
<body>
<noscript>This page needs JavaScript.</noscript>
<p>Loading. If nothing else appears, the server does not serve this name: start it with <code>--name</code>.</p>
</body>
</html>
`;
