import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { html } from './html.js';

export interface Series {
  readonly name: string;
  /** Index of its colour. */
  readonly color: number;
  readonly points: readonly (readonly [x: number, y: number])[];
  /** Labels of the points. */
  readonly labels?: readonly string[];
}

export interface LineChartProps {
  readonly title: string;
  /** Names of the axes. */
  readonly x: string;
  readonly y: string;
  readonly series: readonly Series[];
  /** Beside the title. */
  readonly about?: ComponentChildren;
}

/** Curves over a common axis; nothing if there is nothing to draw. */
export function LineChart({ title, x: xName, y: yName, series, about }: LineChartProps) {
  const [at, setAt] = useState<number>();
  const places = series.flatMap((one) => one.points.map(([value]) => value));
  if (places.length === 0) return null;
  const x = linearScale(places, LEFT, WIDTH - 8);
  const y = linearScale(
    series.flatMap((one) => one.points.map(([, value]) => value)),
    HEIGHT - BOTTOM,
    22,
  );
  const cursor = cursorOver(
    [...new Set(places)].sort((a, b) => a - b),
    x,
    setAt,
  );
  return html`
    <figure class="card chart">
      <div class="chart-head"><h3>${title}</h3>${about}</div>
      <svg
        viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" tabindex="0"
        aria-label=${`${title}: ${series.map(inWords).join('; ')}. Arrow keys show values.`}
        ...${cursor(at)}
      >
        <text class="axis-name" x="0" y="10">${yName}</text>
        ${y.ticks.map(
          (value) => html`
            <line class="grid" x1=${LEFT} x2=${WIDTH - 8} y1=${y(value)} y2=${y(value)} />
            <text x=${LEFT - 6} y=${y(value) + 4} text-anchor="end">${figure(value)}</text>
          `,
        )}
        ${x.ticks.map((value) => html`<text x=${x(value)} y=${HEIGHT - BOTTOM + 15} text-anchor="middle">${figure(value)}</text>`)}
        <text class="axis-name" x=${WIDTH - 8} y=${HEIGHT - 2} text-anchor="end">${xName}</text>
        ${at !== undefined && html`<line class="cursor" x1=${x(at)} x2=${x(at)} y1="16" y2=${HEIGHT - BOTTOM} />`}
        ${series.map((one) => html`<${Curve} series=${one} place=${([a, b]: readonly [number, number]) => [x(a), y(b)]} />`)}
      </svg>
      <p class="readout" aria-live="polite">${at === undefined ? HOW : valuesAt(at, xName, series)}</p>
    </figure>
  `;
}

const HOW = 'Point at the chart to read values.';

/** The values of all curves at a position: the last point of each up to there. */
function valuesAt(at: number, xName: string, series: readonly Series[]): string {
  const values = series.flatMap(({ name, points }) => {
    const point = points.findLast(([value]) => value <= at);
    return point === undefined ? [] : [`${series.length > 1 ? `${name} ` : ''}${figure(point[1])}`];
  });
  return `${xName} ${figure(at)}: ${values.join(', ')}`;
}

/** Handlers that move a cursor over places of a chart, by pointer or arrow keys. */
function cursorOver(
  places: readonly number[],
  scale: (value: number) => number,
  set: (at: number | undefined) => void,
) {
  return (at: number | undefined) => ({
    onPointerMove: (event: PointerEvent) => {
      const box = (event.currentTarget as SVGElement).getBoundingClientRect();
      const pointed = ((event.clientX - box.left) / box.width) * WIDTH;
      set(nearest(places, (place) => Math.abs(scale(place) - pointed)));
    },
    onPointerLeave: () => set(undefined),
    onBlur: () => set(undefined),
    onKeyDown: (event: KeyboardEvent) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      const now = at === undefined ? (step > 0 ? -1 : places.length) : places.indexOf(at);
      set(places[Math.min(places.length - 1, Math.max(0, now + step))]);
    },
  });
}

function nearest(places: readonly number[], distance: (place: number) => number): number | undefined {
  let best = places[0];
  for (const place of places) if (distance(place) < distance(best)) best = place;
  return best;
}

function Curve({ series, place }: { series: Series; place: (point: readonly [number, number]) => readonly number[] }) {
  const { color, points, labels } = series;
  const places = points.map(place);
  return html`
    <g class=${`series-${color}`}>
      <polyline points=${places.map((point) => point.map((value) => value.toFixed(1)).join(',')).join(' ')} />
      ${
        points.length <= DOTS &&
        places.map(
          ([px, py], i) => html`
            <circle cx=${px} cy=${py} r="3" />
            ${labels && html`<text x=${px} y=${py - 8} text-anchor=${px > WIDTH / 2 ? 'end' : 'start'}>${labels[i]}</text>`}
          `,
        )
      }
    </g>
  `;
}

function inWords({ name, points }: Series): string {
  const [first, last] = [points[0], points.at(-1)];
  return first && last ? `${name} from ${figure(first[1])} to ${figure(last[1])}` : name;
}

const HEIGHT = 236;
const LEFT = 52;
const BOTTOM = 32;

/** Up to this many points are marked individually. */
const DOTS = 40;

export interface HeatMapProps {
  readonly title: string;
  /** Names of the rows, from top to bottom. */
  readonly rows: readonly string[];
  /** For each column its share of each row. */
  readonly columns: readonly { readonly name: string; readonly shares: readonly number[] }[];
  readonly about?: ComponentChildren;
}

/** The share of each task in each episode: the darker, the larger, from 0 to 100 % in every map. */
export function HeatMap({ title, rows, columns, about }: HeatMapProps) {
  const [at, setAt] = useState<number>();
  if (rows.length === 0 || columns.length === 0) return null;
  const [width, height] = [(WIDTH - HEAT_LEFT) / columns.length, Math.min(22, 200 / rows.length)];
  const bottom = rows.length * height;
  const every = Math.ceil(columns.length / 8);
  const center = (c: number) => HEAT_LEFT + (c + 0.5) * width;
  const cursor = cursorOver(
    columns.map((_, c) => c),
    center,
    setAt,
  );
  const column = at === undefined ? undefined : columns[at];
  return html`
    <figure class="card chart">
      <div class="chart-head"><h3>${title}</h3>${about}</div>
      <svg
        viewBox=${`0 0 ${WIDTH} ${bottom + 40}`} role="img" tabindex="0"
        aria-label=${`${title}: in episode ${columns.at(-1)?.name}, ${sharesOf(rows, columns.at(-1)?.shares ?? [])}. Arrow keys show values.`}
        ...${cursor(at)}
      >
        ${rows.map((name, r) => html`<text x=${HEAT_LEFT - 6} y=${(r + 0.5) * height + 4} text-anchor="end">${name}</text>`)}
        ${columns.map(({ shares }, c) =>
          shares.map(
            (share, r) => html`
              <rect
                class="cell"
                x=${HEAT_LEFT + c * width} y=${r * height} width=${width} height=${height}
                fill-opacity=${share.toFixed(3)}
              />
            `,
          ),
        )}
        ${at !== undefined && html`<rect class="cursor" x=${HEAT_LEFT + at * width} y="0" width=${width} height=${bottom} />`}
        ${columns.map(
          ({ name }, c) =>
            c % every === 0 && html`<text x=${center(c)} y=${bottom + 15} text-anchor="middle">${name}</text>`,
        )}
        <text class="axis-name" x=${HEAT_LEFT - 6} y=${bottom + 15} text-anchor="end">episode</text>
        <g>
          ${[0, 0.25, 0.5, 0.75, 1].map(
            (share, i) => html`
              <rect class="cell key" x=${WIDTH - 202 + i * 38} y=${bottom + 24} width="10" height="10" fill-opacity=${share} />
              <text x=${WIDTH - 189 + i * 38} y=${bottom + 33}>${100 * share}${share === 1 ? ' %' : ''}</text>
            `,
          )}
        </g>
      </svg>
      <p class="readout" aria-live="polite">${column === undefined ? HOW : `episode ${column.name}: ${sharesOf(rows, column.shares)}`}</p>
    </figure>
  `;
}

/** Shares in words, the largest first. */
function sharesOf(rows: readonly string[], shares: readonly number[]): string {
  const sorted = rows.map((name, r) => ({ name, share: shares[r] ?? 0 })).sort((a, b) => b.share - a.share);
  return sorted.map(({ name, share }) => `${name} ${percent(share)}`).join(', ');
}

export function percent(share: number): string {
  return `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
}

export interface FiguresTableProps {
  readonly title: string;
  /** Figures of each row by the name of the column. */
  readonly rows: readonly { readonly name: string; readonly figures: Readonly<Record<string, number | null>> }[];
}

/** One row per run, one column per figure; nothing if there are no rows. */
export function FiguresTable({ title, rows }: FiguresTableProps) {
  if (rows.length === 0) return null;
  const columns = [...new Set(rows.flatMap(({ figures }) => Object.keys(figures)))];
  return html`
    <section class="card wide">
      <h3>${title}</h3>
      <div class="table" tabindex="0" role="region" aria-label=${title}>
        <table>
          <thead>
            <tr><th></th>${columns.map((column) => html`<th scope="col">${column}</th>`)}</tr>
          </thead>
          <tbody>
            ${rows.map(
              ({ name, figures }) => html`
                <tr><th scope="row">${name}</th>${columns.map((column) => html`<td>${figure(figures[column])}</td>`)}</tr>
              `,
            )}
          </tbody>
        </table>
      </div>
    </section>
  `;
}

/** A number for display: three or four significant digits, a dash if missing. */
export function figure(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  if (Number.isInteger(value)) return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e5)) return value.toExponential(2);
  return value.toFixed(size < 1 ? 3 : size < 100 ? 2 : 1);
}

/** A linear map from values to positions on a chart, with round values for ticks. */
export interface Scale {
  (value: number): number;
  readonly ticks: readonly number[];
}

export function linearScale(values: readonly number[], from: number, to: number, count = 4): Scale {
  const [low, high] = extent(values);
  const scale = (value: number) => from + ((value - low) / (high - low)) * (to - from);
  return Object.assign(scale, { ticks: roundValues(low, high, count) });
}

/** Minimum and maximum, made distinct. */
function extent(values: readonly number[]): [number, number] {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return [0, 1];
  if (low < high) return [low, high];
  const margin = Math.abs(low) * 0.05 || 0.5;
  return [low - margin, high + margin];
}

/** Multiples of 1, 2 or 5 times a power of ten. */
function roundValues(low: number, high: number, count: number): number[] {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough) ?? rough;
  const ticks: number[] = [];
  for (let n = Math.ceil(low / step); n * step <= high; n++) ticks.push(n * step);
  return ticks;
}

/** Width of a chart in its own units, and where the heat map begins. */
const WIDTH = 460;
const HEAT_LEFT = 58;
