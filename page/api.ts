import { useEffect } from 'preact/hooks';
import type { RunReport, RunSummary } from 'tcts/serve/run-report.js';
import type { SchedulerView } from 'tcts/serve/scheduler-view.js';
import type { TranslationRun } from 'tcts/serve/translation-runs.js';
import type { PolicyKind } from 'tcts/translate/policies/description.js';

export type { RunReport, RunSummary, SchedulerView, TranslationRun };

/** What can be translated with. */
export interface Translation {
  /** Models can run in the page. */
  readonly browser: boolean;
  /** Every policy, for the menus. */
  readonly policies: readonly PolicyKind[];
  readonly runs: readonly TranslationRun[];
}

export const fetchTranslation = (): Promise<Translation> => getJson('/api/translation');

export const fetchRuns = (): Promise<readonly RunSummary[]> => getJson('/api/runs');

export const fetchRun = (id: string): Promise<RunReport> => getJson(`/api/run?run=${encodeURIComponent(id)}`);

/** What the scheduler of a run prefers, or why that cannot be told. */
export const fetchScheduler = (id: string): Promise<SchedulerView | { readonly reason: string }> =>
  getJson(`/api/scheduler?run=${encodeURIComponent(id)}`);

/** Names of the files of a model that runs in the page. */
export const fetchModelFiles = (run: string): Promise<readonly string[]> =>
  getJson(`/api/model?run=${encodeURIComponent(run)}`);

export async function fetchModelFile(run: string, file: string): Promise<Response> {
  return checked(await fetch(`/model?run=${encodeURIComponent(run)}&file=${encodeURIComponent(file)}`));
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

/** Does something at once and again and again, as long as the page is looked at. */
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
