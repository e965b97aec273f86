import type { RunReport } from './api.js';
import { FiguresTable, type FiguresTableProps } from './figures-table.js';
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
      ${latencyCharts(runs).map(([title, series]) => html`<${LineChart} title=${title} x="AL" series=${series} />`)}
      ${runs.map(
        ({ id, tasks, episodes }) => html`<${HeatMap}
          title=${runs.length > 1 ? `Tasks that were chosen: ${id}` : 'Tasks that were chosen'}
          rows=${tasks}
          columns=${episodes.map(({ episode, distribution }) => ({ name: String(episode), shares: distribution }))}
        />`,
      )}
      ${forecastTables(runs).map(([title, rows]) => html`<${FiguresTable} title=${title} rows=${rows} />`)}
      <${FiguresTable} title="Best model on test data" rows=${runs.flatMap(({ id, data, test }) =>
        test === null || Object.keys(test).length === 0 ? [] : [{ name: `${id}: ${data}`, figures: test }],
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

type Evaluated = RunReport['translation'][number] | RunReport['forecast'][number];

/** One chart for each split of each data: figures of different data are not drawn over each other. */
function latencyCharts(runs: readonly RunReport[]): [title: string, series: Series[]][] {
  const all = runs.flatMap((run, color) => run.translation.map((point) => ({ id: run.id, color, ...point })));
  return byData(all, 'BLEU against average lagging').map(([title, points]) => {
    const series = grouped(points, ({ id }) => id).map((own) => {
      const sorted = own.sort((a, b) => a.AL - b.AL);
      return {
        name: sorted[0].id,
        color: sorted[0].color % COLORS,
        points: sorted.map(({ AL, bleu }) => [AL, bleu] as const),
        labels: sorted.map(({ name }) => name.replace('wait-k:', 'k = ')),
      };
    });
    return [title, series];
  });
}

function forecastTables(runs: readonly RunReport[]): [title: string, rows: FiguresTableProps['rows']][] {
  const all = runs.flatMap(({ id, forecast }) => forecast.map((one) => ({ name: id, ...one })));
  return byData(all, 'Forecast scores');
}

/** Evaluations by what they are of, the split and the data, wherever these lie. */
function byData<T extends Evaluated>(all: readonly T[], what: string): [title: string, members: T[]][] {
  const groups = grouped(all, ({ split, data }) => `${split} ${data?.digest ?? ''}`);
  const nameOf = ([{ split, data }]: T[]) => `${what}: ${split} of ${data?.name ?? 'data that were not recorded'}`;
  return groups.map((members) => {
    const name = nameOf(members);
    const isUnique = groups.filter((others) => nameOf(others) === name).length === 1;
    return [isUnique ? name : `${name} (${members[0].data?.digest})`, members];
  });
}

function grouped<T>(all: readonly T[], keyOf: (one: T) => string): T[][] {
  return [...new Set(all.map(keyOf))].map((key) => all.filter((one) => keyOf(one) === key));
}

function isDrawable(point: readonly [number, number | null]): point is readonly [number, number] {
  return point[1] !== null && Number.isFinite(point[1]);
}
