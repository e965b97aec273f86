import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { type Context, Hono } from 'hono';
import { etag } from 'hono/etag';
import { InputError } from '../errors.js';
import { BrowserModels } from './browser-models.js';
import { pageDocument } from './document.js';
import { securityHeaders } from './guard.js';
import { limits } from './limits.js';
import { type Address, listen } from './listening.js';
import { type LiveModelOptions, LiveModels } from './live-models.js';
import { LiveSocket } from './live-socket.js';
import { pageFiles } from './page-files.js';
import { rateLimit } from './rate-limit.js';
import { runFolders } from './run-folders.js';
import { MetricsReader } from './run-metrics.js';
import { type RunSummary, runReport, runSummary } from './run-report.js';
import { translationRuns } from './translation-runs.js';

export interface ServeOptions extends Address, LiveModelOptions {
  /** A folder of runs, or a run. */
  readonly folder: string;
  /** Let models run in the page, too. Default false. */
  readonly browser?: boolean;
}

export interface PageServer {
  readonly url: string;
  /** Sentences under way. */
  readonly sentences: number;
  /** Lets translations under way come to an end and stops. */
  close(): Promise<void>;
}

/** Serves the page: its files, what it shows of the runs, and translation over a WebSocket. */
export async function startServer(options: ServeOptions): Promise<PageServer> {
  const { folder, browser = false } = options;
  const runs = (): ReadonlyMap<string, string> => runFolders(folder);
  const models = new LiveModels(limits.models, options);
  const browserModels = browser ? new BrowserModels() : undefined;
  const { server, guard, url } = await listen(pageApp(runs, browserModels), options);
  const live = new LiveSocket(guard, { models, find: (id) => runs().get(id) });
  server.on('upgrade', live.upgrade);
  return {
    url,
    get sentences() {
      return live.sentences;
    },
    async close() {
      server.close();
      await live.close();
      server.closeAllConnections();
      await models.close();
      browserModels?.close();
    },
  };
}

function pageApp(runs: () => ReadonlyMap<string, string>, browserModels: BrowserModels | undefined): Hono {
  const { files, importMap } = pageFiles(browserModels !== undefined);
  const { html, scriptHash } = pageDocument(importMap);
  const headers = Object.entries(securityHeaders(scriptHash, browserModels !== undefined));
  const within = rateLimit(100, 300);
  const reader = new MetricsReader();
  const app = new Hono();

  app.use(async (c, next) => {
    if (c.req.method !== 'GET' && c.req.method !== 'HEAD') c.res = c.text('only GET is answered here\n', 405);
    else if (!within()) c.res = c.text('too many requests\n', 429);
    else await next();
    for (const [name, value] of headers) c.header(name, value);
  });
  app.use('/api/*', etag());

  app.get('/', (c) => c.html(html));
  app.get('/api/runs', async (c) => {
    const all = runs();
    reader.keep(new Set(all.values()));
    const summaries: RunSummary[] = [];
    for (const [id, path] of all) summaries.push(await runSummary(id, path, reader));
    return c.json(summaries);
  });
  app.get('/api/run', async (c) => {
    const [id, path] = chosen(c, runs());
    return c.json(await runReport(id, path, reader));
  });
  app.get('/api/translation', (c) => {
    return c.json({ browser: browserModels !== undefined, runs: translationRuns(runs()) });
  });
  if (browserModels !== undefined) {
    app.get('/api/model', (c) => c.json(browserModels.files(chosen(c, runs())[1])));
    app.get('/model', (c) => {
      const path = browserModels.path(chosen(c, runs())[1], c.req.query('file') ?? '');
      if (path === undefined) return c.text('there is no such file\n', 404);
      return fileAnswer(c, path, 'application/octet-stream');
    });
  }
  app.get('*', (c) => {
    const file = files.get(c.req.path);
    return file === undefined ? c.text('there is nothing here\n', 404) : fileAnswer(c, file.path, file.type);
  });

  app.onError((error, c) => {
    if (error instanceof InputError) return c.json({ message: error.message }, 404);
    console.error(error);
    return c.json({ message: 'internal error' }, 500);
  });
  return app;
}

/** The run that a request is about. Its name is looked up, never made into a path. */
function chosen(c: Context, runs: ReadonlyMap<string, string>): [id: string, path: string] {
  const id = c.req.query('run') ?? '';
  const path = runs.get(id);
  if (path === undefined) throw new InputError('there is no such run: it may have been deleted', { file: id });
  return [id, path];
}

function fileAnswer(c: Context, path: string, type: string): Response {
  return c.body(Readable.toWeb(createReadStream(path)) as ReadableStream, 200, { 'Content-Type': type });
}
