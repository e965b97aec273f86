import { useEffect, useState } from 'preact/hooks';
import { fetchRun, fetchRuns, type RunReport, type RunSummary } from './api.js';
import { figure } from './figure.js';
import { html } from './html.js';
import { RunCharts } from './run-charts.js';

/** All runs of the folder; those that are chosen are drawn, and redrawn while they train. */
export function RunsTab({ active }: { active: boolean }) {
  const [runs, setRuns] = useState<readonly RunSummary[]>();
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const [reports, setReports] = useState<readonly RunReport[]>([]);
  const [failure, setFailure] = useState<string>();

  usePolling(active, '', async () => {
    try {
      const found = await fetchRuns();
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

  const toggle = (id: string) =>
    setChosen(chosen.includes(id) ? chosen.filter((other) => other !== id) : [...chosen, id]);
  return html`
    ${failure && html`<p class="card message failed" role="alert">${failure}</p>`}
    ${runs?.length === 0 && html`<p class="card">There is no run in this folder yet.</p>`}
    ${
      runs !== undefined &&
      runs.length > 0 &&
      html`<div class="runs">
        <section class="card run-list" aria-label="Runs">
          <ul>
            ${runs.map((run) => html`<${RunLine} key=${run.id} run=${run} checked=${chosen.includes(run.id)} onToggle=${() => toggle(run.id)} />`)}
          </ul>
        </section>
        <${RunCharts} runs=${reports} />
      </div>`
    }
  `;
}

function RunLine({ run, checked, onToggle }: { run: RunSummary; checked: boolean; onToggle: () => void }) {
  const { id, state, kind, strategy, step, best, message } = run;
  return html`
    <li>
      <label>
        <input type="checkbox" checked=${checked} onChange=${onToggle} />
        <span class="name">${id}</span>
        <span class=${`state ${state}`}>${state}</span>
        <span class="about">
          ${message ?? `${kind} · ${strategy} · ${step} updates${best === null ? '' : ` · best ${figure(best)}`}`}
        </span>
      </label>
    </li>
  `;
}

/** What is training now, else the newest. */
function firstChoice(runs: readonly RunSummary[]): string {
  const byAge = [...runs].sort((a, b) => (b.created ?? '').localeCompare(a.created ?? ''));
  return (byAge.find(({ state }) => state === 'running') ?? byAge[0]).id;
}

/** Does something at once and every two seconds, as long as the page is looked at. */
function usePolling(active: boolean, about: string, poll: () => Promise<void>): void {
  useEffect(() => {
    if (!active) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let over = false;
    const next = async () => {
      if (!document.hidden) await poll();
      if (!over) timer = setTimeout(next, PERIOD);
    };
    void next();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [active, about]);
}

const PERIOD = 2000;
