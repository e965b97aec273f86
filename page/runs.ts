import { useRef, useState } from 'preact/hooks';
import { fetchRun, fetchRuns, type RunReport, type RunSummary, usePolling } from './api.js';
import { figure, percent } from './charts.js';
import { html } from './html.js';
import { readLink, writeLink } from './link.js';
import { COLORS, measureOf, RunCharts, shortName, shown } from './run-charts.js';

/** All runs of the folder; those that are chosen are drawn, and redrawn while they train. */
export function RunsTab({ active }: { active: boolean }) {
  const [runs, setRuns] = useState<readonly RunSummary[]>();
  const [chosen, setChosen] = useState<readonly string[]>(chosenInLink);
  const [reports, setReports] = useState<readonly RunReport[]>([]);
  const [failure, setFailure] = useState<string>();
  const [notice, setNotice] = useState('');
  const [search, setSearch] = useState('');
  const before = useRef<readonly RunSummary[]>([]);
  const colors = useRef(new Map<string, number>());

  usePolling(active, '', async () => {
    try {
      const found = await fetchRuns();
      const ended = changes(before.current, found);
      if (ended !== '') setNotice(ended);
      before.current = found;
      setRuns(found);
      setFailure(undefined);
      setChosen((before) => {
        const still = before.filter((id) => found.some((run) => run.id === id));
        return still.length === 0 && found.length > 0
          ? [firstChoice(found)]
          : still.length === before.length
            ? before
            : still;
      });
    } catch (error) {
      setFailure(`The runs cannot be read: ${(error as Error).message}`);
    }
  });
  usePolling(active, chosen.join('\n'), async () => {
    const found = await Promise.allSettled(chosen.map(fetchRun));
    setReports(found.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])));
  });

  const toggle = (id: string) => {
    const now = chosen.includes(id) ? chosen.filter((other) => other !== id) : [...chosen, id];
    setChosen(now);
    writeLink({ tab: 'runs', settings: new URLSearchParams(now.map((run) => ['run', run])) });
  };
  const listed = runs?.filter((run) => matches(run, search)) ?? [];
  return html`
    <p class="intro">
      Follow trainings while they go on: how good the model becomes at the main task, and on which tasks the scheduler
      trains it to get there.
    </p>
    <p class="notice" role="status">${notice}</p>
    ${failure && html`<p class="card message failed" role="alert">${failure}</p>`}
    ${runs?.length === 0 && html`<p class="card">There is no run in this folder yet.</p>`}
    ${
      runs !== undefined &&
      runs.length > 0 &&
      html`<div class="runs">
        <section class="card run-list" aria-labelledby="run-list">
          <h2 id="run-list">Runs</h2>
          <label class="search">
            Search
            <input
              type="search" placeholder="name, problem, strategy, state" value=${search}
              onInput=${(event: Event) => setSearch((event.currentTarget as HTMLInputElement).value)}
            />
          </label>
          ${listed.length === 0 && html`<p class="hint">No run matches.</p>`}
          ${groupsOf(listed).map(
            ([group, members]) =>
              html`<${RunGroup} key=${group} name=${group} runs=${members} chosen=${chosen} onToggle=${toggle} />`,
          )}
        </section>
        <${RunCharts} runs=${reports} colors=${colorsOf(chosen, colors.current)} />
      </div>`
    }
  `;
}

function chosenInLink(): string[] {
  const { tab, settings } = readLink();
  return tab === 'runs' ? settings.getAll('run') : [];
}

function matches({ id, kind, strategy, state }: RunSummary, search: string): boolean {
  const text = [id, kind, strategy, STATES[state]].join(' ').toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/u)
    .every((word) => text.includes(word));
}

/** Runs of a sweep lie in their own folder. */
function groupsOf(runs: readonly RunSummary[]): [group: string, runs: RunSummary[]][] {
  const groups = new Map<string, RunSummary[]>();
  for (const run of runs) {
    const group = run.id.slice(0, Math.max(0, run.id.lastIndexOf('/')));
    groups.set(group, [...(groups.get(group) ?? []), run]);
  }
  return [...groups];
}

/** Which runs have ended since. */
function changes(before: readonly RunSummary[], now: readonly RunSummary[]): string {
  const ended = now.filter(({ id, state }) => {
    const was = before.find((run) => run.id === id)?.state;
    return was === 'running' && state !== 'running';
  });
  return ended
    .map(({ id, state, step }) => `${shortName(id)} ${ENDED[state] ?? state} at update ${step ?? 0}.`)
    .join(' ');
}

/** States for display. */
const STATES: Readonly<Record<RunSummary['state'], string>> = {
  running: 'training',
  finished: 'finished',
  interrupted: 'stopped',
  failed: 'failed',
  killed: 'killed',
  unreadable: 'unreadable',
};

const ENDED: Readonly<Partial<Record<RunSummary['state'], string>>> = {
  finished: 'has finished',
  interrupted: 'was stopped',
  failed: 'has failed',
  killed: 'was killed',
};

const STATE_HELP: Readonly<Partial<Record<RunSummary['state'], string>>> = {
  interrupted: 'Stopped from its terminal; everything is saved. Continue with: tcts train --resume',
  killed: 'Marked as training, but no process is running. Continue with: tcts train --resume',
};

interface RunGroupProps {
  readonly name: string;
  readonly runs: readonly RunSummary[];
  readonly chosen: readonly string[];
  readonly onToggle: (id: string) => void;
}

function RunGroup({ name, runs, chosen, onToggle }: RunGroupProps) {
  const list = html`
    <ul>
      ${runs.map((run) => html`<${RunLine} key=${run.id} run=${run} checked=${chosen.includes(run.id)} onToggle=${() => onToggle(run.id)} />`)}
    </ul>
  `;
  if (name === '') return list;
  const training = runs.filter(({ state }) => state === 'running').length;
  return html`
    <details open>
      <summary>${name} <span class="soft">${runs.length} runs${training > 0 && `, ${training} training`}</span></summary>
      ${list}
    </details>
  `;
}

function RunLine({ run, checked, onToggle }: { run: RunSummary; checked: boolean; onToggle: () => void }) {
  const { id, state, kind, strategy, step = 0, updates, secondsLeft, best, message } = run;
  const about = [kind, strategy, `${step} updates`];
  if (typeof best === 'number') about.push(`best ${measureOf(run).name} ${figure(shown(run, best))}`);
  const share = updates === undefined ? undefined : Math.min(1, step / updates);
  return html`
    <li>
      <label title=${id}>
        <input type="checkbox" checked=${checked} onChange=${onToggle} />
        <span class="name">${shortName(id)}</span>
        <span class=${`state ${state}`} title=${STATE_HELP[state]}>${STATES[state]}</span>
        <span class="about">${message ?? about.join(`${NO_BREAK}· `)}</span>
        ${
          state === 'running' &&
          share !== undefined &&
          html`<span class="about progress">
            <progress max="1" value=${share} aria-label=${`Progress of ${shortName(id)}`}></progress>
            ${percent(share)}${secondsLeft !== undefined && ` · ${duration(secondsLeft)} left`}
          </span>`
        }
      </label>
    </li>
  `;
}

/** A dot between two words never starts a line. */
const NO_BREAK = '\u00a0';

function duration(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** The runs that are training, otherwise the newest. */
function firstChoice(runs: readonly RunSummary[]): string {
  const byAge = [...runs].sort((a, b) => (b.created ?? '').localeCompare(a.created ?? ''));
  return (byAge.find(({ state }) => state === 'running') ?? byAge[0]).id;
}

/** A run keeps its colour while selected; a new one gets the first free one. */
function colorsOf(chosen: readonly string[], known: Map<string, number>): ReadonlyMap<string, number> {
  for (const id of known.keys()) if (!chosen.includes(id)) known.delete(id);
  for (const id of chosen) {
    if (known.has(id)) continue;
    const used = new Set(known.values());
    const free = Array.from({ length: COLORS }, (_, color) => color).find((color) => !used.has(color));
    known.set(id, free ?? known.size % COLORS);
  }
  return new Map(known);
}
