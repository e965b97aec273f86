import type { RunReport } from './api.js';
import { FiguresTable } from './figures-table.js';
import { HeatMap } from './heat-map.js';
import { html } from './html.js';
import { LineChart, type Series } from './line-chart.js';

/** Everything that there is to see of some runs, side by side. */
export function RunCharts({ runs }: { runs: readonly RunReport[] }) {
  const problems = runs.flatMap(({ id, message, problems }) =>
    [...(message === undefined ? [] : [message]), ...problems].map((sentence) => `${id}: ${sentence}`),
  );
  const series = (points: (run: RunReport) => readonly (readonly [number, number | null])[]): Series[] =>
    runs.map((run, color) => ({ name: run.id, color: color % COLORS, points: points(run).filter(isDrawable) }));
  return html`
    <div class="charts">
      ${problems.map((sentence) => html`<p class="card wide message failed" role="status">${sentence}</p>`)}
      ${runs.length > 1 && html`<${Legend} names=${runs.map(({ id }) => id)} />`}
      <${LineChart}
        title="Validation performance on the main task" x="update"
        series=${series((run) => run.episodes.map(({ step, performance }) => [step, performance]))}
      />
      <${LineChart} title="Training loss" x="update" series=${series((run) => lossPoints(run))} />
      <${LineChart}
        title="Reward of the scheduler" x="episode"
        series=${series((run) => run.episodes.map(({ episode, reward }) => [episode, reward]))}
      />
      <${LineChart} title="BLEU against average lagging" x="AL" series=${runs.flatMap(latencyCurves)} />
      ${runs.map(
        ({ id, tasks, episodes }) => html`<${HeatMap}
          title=${runs.length > 1 ? `Tasks that were chosen: ${id}` : 'Tasks that were chosen'}
          rows=${tasks}
          columns=${episodes.map(({ episode, distribution }) => ({ name: String(episode), shares: distribution }))}
        />`,
      )}
      <${FiguresTable} title="Forecast scores" rows=${runs.flatMap(({ id, forecast }) =>
        forecast.map(({ split, figures }) => ({ name: `${id}, ${split}`, figures })),
      )} />
      <${FiguresTable} title="Best model on test data" rows=${runs.flatMap(({ id, test }) =>
        test === null || Object.keys(test).length === 0 ? [] : [{ name: id, figures: test }],
      )} />
    </div>
  `;
}

/** Colours that the style has. */
export const COLORS = 6;

function Legend({ names }: { names: readonly string[] }) {
  return html`
    <p class="legend wide">
      ${names.map(
        (name, i) =>
          html`<span><svg viewBox="0 0 12 8" aria-hidden="true"><rect class=${`series-${i % COLORS}`} width="12" height="8" rx="2" /></svg> ${name}</span>`,
      )}
    </p>
  `;
}

/** The loss of single updates; of whole episodes where those are all there is. */
function lossPoints({ losses, episodes }: RunReport): readonly (readonly [number, number | null])[] {
  return losses.length > 1 ? losses : episodes.map(({ step, loss }) => [step, loss]);
}

/** The evaluations of a run, one curve a split, in the order of their latency. */
function latencyCurves({ id, translation }: RunReport, color: number): Series[] {
  return [...new Set(translation.map(({ split }) => split))].map((split) => {
    const points = translation.filter((point) => point.split === split).sort((a, b) => a.AL - b.AL);
    return {
      name: `${id}, ${split}`,
      color: color % COLORS,
      points: points.map(({ AL, bleu }) => [AL, bleu] as const),
      labels: points.map(({ name }) => name.replace('wait-k:', 'k = ')),
    };
  });
}

function isDrawable(point: readonly [number, number | null]): point is readonly [number, number] {
  return point[1] !== null && Number.isFinite(point[1]);
}
