import type { RunReport, RunSummary } from 'tcts/serve/run-report.js';
import type { TranslationRun } from 'tcts/serve/translation-runs.js';

export type { RunReport, RunSummary, TranslationRun };

/** What can be translated with. */
export interface Translation {
  /** Models can run in the page. */
  readonly browser: boolean;
  readonly runs: readonly TranslationRun[];
}

export const fetchTranslation = (): Promise<Translation> => getJson('/api/translation');

export const fetchRuns = (): Promise<readonly RunSummary[]> => getJson('/api/runs');

export const fetchRun = (id: string): Promise<RunReport> => getJson(`/api/run?run=${encodeURIComponent(id)}`);

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
