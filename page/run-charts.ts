import { useState } from 'preact/hooks';
import { fetchScheduler, type RunReport, type RunSummary, type SchedulerView, usePolling } from './api.js';
import {
  cursorOver,
  FiguresTable,
  type FiguresTableProps,
  figure,
  HeatMap,
  LineChart,
  Readout,
  type Series,
  Swatch,
  sharesOf,
} from './charts.js';
import { Explain, html, TERMS } from './html.js';

/** All charts of some runs, side by side. */
export function RunCharts({ runs, colors }: { runs: readonly RunReport[]; colors: ReadonlyMap<string, number> }) {
  const names = namesOf(runs);
  const nameOf = ({ id }: RunReport) => names.get(id) ?? id;
  const colorOf = ({ id }: RunReport) => colors.get(id) ?? 0;
  const problems = runs.flatMap(({ id, message, problems }) =>
    [...(message === undefined ? [] : [message]), ...problems].map((sentence) => `${id}: ${sentence}`),
  );
  const series = (
    points: (run: RunReport) => readonly (readonly [number, number | null])[],
    of: readonly RunReport[] = runs,
  ): Series[] => of.map((run) => ({ name: nameOf(run), color: colorOf(run), points: points(run).filter(isDrawable) }));
  return html`
    <section class="charts" aria-labelledby="charts">
      <h2 id="charts" class="hidden">Charts of the chosen runs</h2>
      ${problems.map((sentence) => html`<p class="card wide message failed" role="status">${sentence}</p>`)}
      ${runs.length > 1 && html`<${Legend} entries=${runs.map((run) => ({ name: nameOf(run), color: colorOf(run) }))} />`}
      ${grouped(runs, ({ validation }) => validation?.name ?? '').map((own) => {
        const { name, better } = measureOf(own[0]);
        return html`<${LineChart}
          title=${`${capital(name)} on the main task`} x="update" y=${`${name} (${better} is better)`}
          series=${series((run) => run.episodes.map(({ step, performance }) => [step, shown(run, performance)]), own)}
        />`;
      })}
      <${LineChart} title="Training loss" x="update" y="loss" series=${series((run) => lossPoints(run))} />
      <${LineChart}
        title="Reward of the scheduler" x="episode" y="change of performance"
        about=${html`<${Explain} what="the reward" text=${TERMS.reward} />`}
        series=${series((run) => run.episodes.map(({ episode, reward }) => [episode, reward]))}
      />
      ${latencyCharts(runs, nameOf, colorOf).map(
        ([title, series]) => html`<${LineChart} title=${title} x="AL (tokens)" y="BLEU" series=${series} />`,
      )}
      ${runs.map(
        (run) => html`<${HeatMap}
          title=${runs.length > 1 ? `Tasks chosen: ${nameOf(run)}` : 'Tasks chosen'}
          rows=${run.tasks}
          columns=${run.episodes.map(({ episode, distribution }) => ({ name: String(episode), shares: distribution }))}
          about=${html`<${Explain} what="the tasks" text=${TERMS.tasks} />`}
        />`,
      )}
      ${runs
        .filter(({ hasScheduler, tasks }) => hasScheduler && tasks.length > 1)
        .map((run) => html`<${Scheduler} key=${run.id} run=${run.id} name=${nameOf(run)} />`)}
      ${forecastTables(runs, nameOf).map(([title, rows]) => html`<${FiguresTable} title=${title} rows=${rows} />`)}
      <${FiguresTable} title="Best model on test data" rows=${runs.flatMap((run) =>
        run.test === null || Object.keys(run.test).length === 0
          ? []
          : [{ name: `${nameOf(run)}: ${run.data}`, figures: run.test }],
      )} />
    </section>
  `;
}

type Measured = Pick<RunSummary, 'validation'>;

export function measureOf({ validation }: Measured): NonNullable<RunSummary['validation']> {
  return validation ?? { name: 'validation performance', better: 'higher' };
}

/** The measured figure behind a performance: a loss is minus the performance. */
export function shown(run: Measured, performance: number | null): number | null {
  return performance === null || measureOf(run).better === 'higher' ? performance : -performance;
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** Colours that the style has. */
export const COLORS = 12;

function Legend({ entries }: { entries: readonly { readonly name: string; readonly color: number }[] }) {
  return html`
    <p class="legend wide">
      ${entries.map(({ name, color }) => html`<span><${Swatch} color=${color} /> ${name}</span>`)}
    </p>
  `;
}

/** The last part of a run's name; what precedes it is its sweep. */
export function shortName(id: string): string {
  return id.slice(id.lastIndexOf('/') + 1);
}

/** Short names if they are unique, otherwise full ones. */
export function namesOf(runs: readonly { readonly id: string }[]): ReadonlyMap<string, string> {
  const short = runs.map(({ id }) => shortName(id));
  return new Map(
    runs.map(({ id }, i) => [id, short.indexOf(short[i]) === short.lastIndexOf(short[i]) ? short[i] : id]),
  );
}

/** The loss of single updates, or of whole episodes if there is nothing else. */
function lossPoints({ losses, episodes }: RunReport): readonly (readonly [number, number | null])[] {
  return losses.length > 1 ? losses : episodes.map(({ step, loss }) => [step, loss]);
}

type Evaluated = RunReport['translation'][number] | RunReport['forecast'][number];

/** One chart for each split of each data: figures of different data are not drawn over each other. */
function latencyCharts(
  runs: readonly RunReport[],
  nameOf: (run: RunReport) => string,
  colorOf: (run: RunReport) => number,
): [title: string, series: Series[]][] {
  const all = runs.flatMap((run) =>
    run.translation.map((point) => ({ id: run.id, run: nameOf(run), color: colorOf(run), ...point })),
  );
  return byData(all, 'BLEU against average lagging').map(([title, points]) => {
    const series = grouped(points, ({ id }) => id).map((own) => {
      const sorted = own.sort((a, b) => a.AL - b.AL);
      return {
        name: sorted[0].run,
        color: sorted[0].color,
        points: sorted.map(({ AL, bleu }) => [AL, bleu] as const),
        labels: sorted.map(({ name }) => name.replace('wait-k:', 'k = ')),
      };
    });
    return [title, series];
  });
}

function forecastTables(
  runs: readonly RunReport[],
  nameOf: (run: RunReport) => string,
): [title: string, rows: FiguresTableProps['rows']][] {
  const all = runs.flatMap((run) => run.forecast.map((one) => ({ name: nameOf(run), ...one })));
  return byData(all, 'Forecast scores');
}

/** Evaluations by what they are of, the split and the data, wherever these lie. */
function byData<T extends Evaluated>(all: readonly T[], what: string): [title: string, members: T[]][] {
  const groups = grouped(all, ({ split, data }) => `${split} ${data?.digest ?? ''}`);
  const nameOf = ([{ split, data }]: T[]) => `${what}: ${split} of ${data?.name ?? 'unrecorded data'}`;
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
      ${tasks.map((task, i) => html`<span><${Swatch} fill=${taskColor(i, tasks.length)} /> ${task}</span>`)}
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
  const [at, setAt] = useState<number>();
  const x = (i: number) => LEFT + (i / (values.length - 1)) * (WIDTH - LEFT - 4);
  const y = (share: number) => 6 + (1 - share) * (HEIGHT - 28);
  const below = shares.map((row) => {
    let sum = 0;
    return [0, ...row.map((share) => (sum += share))];
  });
  const edge = (task: number) => below.map((row, i) => `${x(i).toFixed(1)},${y(row[task]).toFixed(1)}`);
  const cursor = cursorOver(
    values.map((_, i) => i),
    x,
    WIDTH,
    setAt,
  );
  const chosen = sharesOf(tasks, at === undefined ? [] : shares[at]).map((one) => ({
    ...one,
    swatch: html`<${Swatch} fill=${taskColor(tasks.indexOf(one.name), tasks.length)} />`,
  }));
  const [low, high] = [shares[0], shares.at(-1) ?? shares[0]].map((row) => tasks[row.indexOf(Math.max(...row))]);
  return html`
    <figure>
      <svg
        viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" tabindex="0"
        aria-label=${`${name}: ${low} is preferred where it is low, ${high} where it is high. Arrow keys show values.`}
        ...${cursor(at)}
      >
        ${tasks.map(
          (_, k) => html`
            <polygon fill=${taskColor(k, tasks.length)} points=${[...edge(k), ...edge(k + 1).reverse()].join(' ')} />
          `,
        )}
        ${at !== undefined && html`<line class="cursor" x1=${x(at)} x2=${x(at)} y1=${y(1)} y2=${y(0)} />`}
        ${[0, 0.5, 1].map((share) => html`<text x=${LEFT - 4} y=${y(share) + 4} text-anchor="end">${100 * share} %</text>`)}
        <text x=${LEFT} y=${HEIGHT - 8}>${figure(values[0])}</text>
        <text x=${WIDTH - 4} y=${HEIGHT - 8} text-anchor="end">${figure(values.at(-1))}</text>
      </svg>
      <figcaption>${name}</figcaption>
      ${at !== undefined && html`<${Readout} at=${`${name} ${figure(values[at])}`} values=${chosen} />`}
    </figure>
  `;
}

const WIDTH = 220;
const HEIGHT = 130;
const LEFT = 40;

/** Tasks have an order, and so have their colours: from dark blue to yellow. */
function taskColor(task: number, count: number): string {
  const at = count > 1 ? task / (count - 1) : 0;
  return `hsl(${(250 - 200 * at).toFixed(0)} ${(55 + 20 * at).toFixed(0)}% ${(40 + 22 * at).toFixed(0)}%)`;
}
