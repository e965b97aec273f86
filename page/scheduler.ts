import { useState } from 'preact/hooks';
import { fetchScheduler, type SchedulerView, usePolling } from './api.js';
import { figure } from './charts.js';
import { Explain, TERMS } from './explain.js';
import { html } from './html.js';

/** What the scheduler of a run has learned: a small picture for each feature. */
export function Scheduler({ run, name }: { run: string; name: string }) {
  const [view, setView] = useState<SchedulerView | { readonly reason: string }>();
  usePolling(
    true,
    run,
    async () => {
      try {
        setView(await fetchScheduler(run));
      } catch (error) {
        setView({ reason: (error as Error).message });
      }
    },
    10_000,
  );
  if (view === undefined) return null;
  return html`
    <section class="card wide scheduler">
      <div class="chart-head">
        <h3>What the scheduler prefers: ${name}</h3>
        <${Explain} what="these pictures" text=${TERMS.scheduler} />
      </div>
      ${'reason' in view ? html`<p class="message">${view.reason}</p>` : html`<${Pictures} view=${view} />`}
    </section>
  `;
}

function Pictures({ view: { step, tasks, features, others } }: { view: SchedulerView }) {
  return html`
    <p class="legend">
      ${tasks.map(
        (task, i) => html`
          <span>
            <svg viewBox="0 0 12 8" aria-hidden="true"><rect fill=${taskColor(i, tasks.length)} width="12" height="8" rx="2" /></svg>
            ${task}
          </span>
        `,
      )}
    </p>
    <div class="pictures">
      ${features.map((feature) => html`<${Picture} feature=${feature} tasks=${tasks} />`)}
    </div>
    <p class="message">
      After ${step} updates; features that change its choice most come first.
      ${others > 0 && ` ${others} more ${others === 1 ? 'feature matters' : 'features matter'} less.`}
    </p>
  `;
}

/** Shares of the tasks, stacked, from a low value of the feature to a high one. */
function Picture({ feature, tasks }: { feature: SchedulerView['features'][number]; tasks: readonly string[] }) {
  const { name, values, shares } = feature;
  const x = (i: number) => LEFT + (i / (values.length - 1)) * (WIDTH - LEFT - 4);
  const y = (share: number) => 6 + (1 - share) * (HEIGHT - 28);
  const below = shares.map((row) => {
    let sum = 0;
    return [0, ...row.map((share) => (sum += share))];
  });
  const edge = (task: number) => below.map((row, i) => `${x(i).toFixed(1)},${y(row[task]).toFixed(1)}`);
  const [low, high] = [shares[0], shares.at(-1) ?? shares[0]].map((row) => tasks[row.indexOf(Math.max(...row))]);
  return html`
    <figure>
      <svg
        viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img"
        aria-label=${`${name}: ${low} is preferred where it is low, ${high} where it is high`}
      >
        ${tasks.map(
          (task, k) => html`
            <polygon fill=${taskColor(k, tasks.length)} points=${[...edge(k), ...edge(k + 1).reverse()].join(' ')}>
              <title>${task}</title>
            </polygon>
          `,
        )}
        ${[0, 0.5, 1].map((share) => html`<text x=${LEFT - 4} y=${y(share) + 4} text-anchor="end">${100 * share} %</text>`)}
        <text x=${LEFT} y=${HEIGHT - 8}>${figure(values[0])}</text>
        <text x=${WIDTH - 4} y=${HEIGHT - 8} text-anchor="end">${figure(values.at(-1))}</text>
      </svg>
      <figcaption>${name}</figcaption>
    </figure>
  `;
}

const WIDTH = 220;
const HEIGHT = 130;
const LEFT = 40;

/** Tasks have an order, and so have their colours: from dark blue to yellow. */
function taskColor(task: number, count: number): string {
  const at = count > 1 ? task / (count - 1) : 0;
  return `hsl(${(250 - 200 * at).toFixed(0)} ${(55 + 20 * at).toFixed(0)}% ${(32 + 30 * at).toFixed(0)}%)`;
}
