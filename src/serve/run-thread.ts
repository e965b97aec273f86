import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { gzipSync } from 'node:zlib';
import { InputError } from '../errors.js';
import { readingWithin } from '../files.js';
import { checkpointStamp, RunDescriptions, runFolders, TranslationRuns, withoutPaths } from './run-folders.js';
import type { ExportDevice, ExportedModel, RunAnswer, RunQuestion, RunQuestions, RunThreadData } from './run-reader.js';
import { RunReports, type RunSummary } from './run-report.js';

/** Entry of the thread that reads run folders. */
const { folder, builtIn, browser, checkpoint, modules = [] } = workerData as RunThreadData;
for (const module of modules) await import(module);
const descriptions = new RunDescriptions();
const reports = new RunReports(descriptions);
const translation = new TranslationRuns(descriptions);
const exported = new Map<string, ExportedModel>();

type Answers = {
  [K in keyof RunQuestions]: (...values: Parameters<RunQuestions[K]>) => Promise<ReturnType<RunQuestions[K]>>;
};

const answers: Answers = {
  folder: async (id) => (await listed()).get(id),
  list: once(async () => {
    const all = runFolders(folder);
    reports.keep(new Set(all.values()));
    const summaries: RunSummary[] = [];
    for (const [id, path] of all) {
      summaries.push(await reports.summary(id, path));
      await setImmediate();
    }
    return JSON.stringify(summaries);
  }),
  report: async (id) => JSON.stringify(await reports.report(id, pathOf(id))),
  scheduler: async (id) => JSON.stringify(reports.scheduler(pathOf(id))),
  translation: once(async () => {
    return JSON.stringify(await translation.offer(models(), browser ? ['server', 'page'] : ['server'], builtIn));
  }),
  exportModel: async (id, into, device) => {
    const path = pathOf(id, models());
    return readingWithin(path, () => exportModel(path, into, device));
  },
};

/** The current folders. Simultaneous requests share one look at the disk. */
const listed = once(async () => {
  await setImmediate();
  return models();
});

const port = parentPort!;
port.on('message', async ({ request, name, values }: RunQuestion) => {
  const answer = answers[name] as (...values: readonly string[]) => Promise<unknown>;
  const say = (said: Omit<RunAnswer, 'request'>): void => port.postMessage({ request, ...said } satisfies RunAnswer);
  try {
    say({ value: await answer(...values) });
  } catch (error) {
    if (error instanceof InputError) say({ error: { message: withoutPaths(error.message, folder), isInput: true } });
    else say({ error: { message: error instanceof Error ? String(error.stack) : String(error), isInput: false } });
  }
});

/** A question that many ask at the same time is answered once for all of them. */
function once<T>(answer: () => Promise<T>): () => Promise<T> {
  let current: Promise<T> | undefined;
  return () => {
    current ??= answer().finally(() => {
      current = undefined;
    });
    return current;
  };
}

/** What can be translated with: the runs, and after them the built-in model. */
function models(): ReadonlyMap<string, string> {
  const runs = runFolders(folder);
  return builtIn === undefined || runs.has(BUILT_IN) ? runs : new Map([...runs, [BUILT_IN, builtIn.folder]]);
}

/** Name of the built-in model among the runs. */
const BUILT_IN = 'built-in';

/** The folder of a run. Its name is looked up, never made into a path. */
function pathOf(id: string, among = runFolders(folder)): string {
  const path = among.get(id);
  if (path === undefined) throw new InputError('there is no such run: it may have been deleted', { file: id });
  return path;
}

/** A run's model as compressed files for the page; made again when training has saved other parameters. */
async function exportModel(run: string, into: string, device: ExportDevice): Promise<ExportedModel> {
  // Loaded when it is first needed: the runtime that comes with it is large.
  const { exportTranslation } = await import('../translate/export.js');
  const key = `${device} ${run}`;
  const known = exported.get(key);
  const stamp = checkpointStamp(run, { checkpoint });
  if (known?.stamp === stamp) return known;
  const place = known?.folder ?? join(into, String(exported.size));
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place, { recursive: true });
  exportTranslation(run, place, { beam: 1, checkpoint, device });
  const files = readdirSync(place);
  for (const name of files) {
    const path = join(place, name);
    writeFileSync(path, gzipSync(readFileSync(path)));
  }
  const model = { stamp, folder: place, files };
  exported.set(key, model);
  return model;
}
