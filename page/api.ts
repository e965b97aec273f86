import { useEffect } from 'preact/hooks';
import type { TranslationOffer } from 'tcts/serve/run-folders.js';
import type { RunReport, RunSummary } from 'tcts/serve/run-report.js';
import type { SchedulerView } from 'tcts/serve/scheduler-view.js';
import type { PageDevice } from './runtimes.js';

export type { RunReport, RunSummary, SchedulerView, TranslationOffer };

/**
 * Where the files of a static site are, according to its document; undefined with a server. There models run in the page, and
 * there are no runs to watch. `docs/site/live.mjs` writes the files.
 */
export const siteFiles = document.documentElement.dataset.files;

export const fetchTranslation = (): Promise<TranslationOffer> =>
  getJson(siteFiles === undefined ? '/api/translation' : `${siteFiles}/translation.json`);

export const fetchRuns = (): Promise<readonly RunSummary[]> => getJson('/api/runs');

export const fetchRun = (id: string): Promise<RunReport> => getJson(`/api/run?run=${encodeURIComponent(id)}`);

/** What the scheduler of a run prefers, or why that is unknown. */
export const fetchScheduler = (id: string): Promise<SchedulerView | { readonly reason: string }> =>
  getJson(`/api/scheduler?run=${encodeURIComponent(id)}`);

/** Names of the files of a model that runs in the page, on a device. */
export const fetchModelFiles = (run: string, device: PageDevice): Promise<readonly string[]> =>
  getJson(
    siteFiles === undefined
      ? `/api/model?run=${encodeURIComponent(run)}${forDevice(device)}`
      : `${siteModel(run, device)}/files.json`,
  );

export async function fetchModelFile(run: string, file: string, device: PageDevice): Promise<Response> {
  const [folder, name] = [run, file].map(encodeURIComponent);
  return checked(
    await fetch(
      siteFiles === undefined
        ? `/model?run=${folder}&file=${name}${forDevice(device)}`
        : `${siteModel(run, device)}/${name}`,
    ),
  );
}

const forDevice = (device: PageDevice): string => (device === 'wasm' ? '' : `&device=${device}`);

function siteModel(run: string, device: PageDevice): string {
  return `${siteFiles}/${device === 'wasm' ? '' : `${device}/`}${encodeURIComponent(run)}`;
}

async function getJson<T>(path: string): Promise<T> {
  return (await checked(await fetch(path))).json() as Promise<T>;
}

async function checked(response: Response): Promise<Response> {
  if (response.ok) return response;
  const said = await response
    .clone()
    .json()
    .catch(() => undefined);
  throw new Error(typeof said?.message === 'string' ? said.message : `the server answers ${response.status}`);
}

/** Does something at once and then repeatedly while the page is visible. */
export function usePolling(active: boolean, about: string, poll: () => Promise<void>, period = 2000): void {
  useEffect(() => {
    if (!active) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let over = false;
    const next = async () => {
      if (!document.hidden) await poll();
      if (!over) timer = setTimeout(next, period);
    };
    void next();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [active, about]);
}
