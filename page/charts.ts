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
  // Point labels need space above and below.
  const margin = series.some(({ labels }) => labels !== undefined) ? 16 : 0;
  const y = linearScale(
    series.flatMap((one) => one.points.map(([, value]) => value)),
    HEIGHT - BOTTOM - margin,
    22 + margin,
  );
  const cursor = cursorOver(
    [...new Set(places)].sort((a, b) => a - b),
    x,
    WIDTH,
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
            <text x=${LEFT - 6} y=${y(value) + 4} text-anchor="end">${y.label(value)}</text>
          `,
        )}
        ${x.ticks.map((value) => html`<text x=${x(value)} y=${HEIGHT - BOTTOM + 15} text-anchor="middle">${x.label(value)}</text>`)}
        <text class="axis-name" x=${WIDTH - 8} y=${HEIGHT - 2} text-anchor="end">${xName}</text>
        ${at !== undefined && html`<line class="cursor" x1=${x(at)} x2=${x(at)} y1="16" y2=${HEIGHT - BOTTOM} />`}
        ${series.map((one) => html`<${Curve} series=${one} place=${([a, b]: readonly [number, number]) => [x(a), y(b)]} />`)}
      </svg>
      <${Readout} at=${at === undefined ? undefined : `${xName} ${figure(at)}`} values=${valuesAt(at ?? 0, series)} />
    </figure>
  `;
}

/** A value read off a chart, with the name and colour of its series. */
interface ReadValue {
  readonly name: string;
  readonly value: string;
  readonly swatch?: ComponentChildren;
}

export interface ReadoutProps {
  /** The position of the pointer; undefined: none. */
  readonly at: string | undefined;
  readonly values: readonly ReadValue[];
}

/** The values at the pointer. Several are overlaid, so that the page below does not move. */
export function Readout({ at, values }: ReadoutProps) {
  return html`
    <p class="readout" aria-live="polite">
      ${
        at === undefined
          ? 'Point at the chart to read values.'
          : values.length === 1
            ? `${at}: ${values[0].value}`
            : html`<span class="values">
                <b>${at}:</b>
                ${values.map(({ name, value, swatch }) => html`<span>${swatch} ${name} <b>${value}</b></span>`)}
              </span>`
      }
    </p>
  `;
}

/** A patch of colour next to a name. */
export function Swatch({ color, fill }: { color?: number; fill?: string }) {
  return html`<svg class="swatch" viewBox="0 0 12 8" aria-hidden="true">
    <rect class=${color === undefined ? undefined : `series-${color}`} fill=${fill} width="12" height="8" rx="2" />
  </svg>`;
}

/** The values of all curves at a position: the last point of each up to there. */
function valuesAt(at: number, series: readonly Series[]): ReadValue[] {
  return series.flatMap(({ name, color, points }) => {
    const point = points.findLast(([value]) => value <= at);
    if (point === undefined) return [];
    return [{ name, value: figure(point[1]), swatch: html`<${Swatch} color=${color} />` }];
  });
}

/** Handlers that move a cursor over places of a chart of some width, by pointer or arrow keys. */
export function cursorOver(
  places: readonly number[],
  scale: (value: number) => number,
  width: number,
  set: (at: number | undefined) => void,
) {
  return (at: number | undefined) => ({
    onPointerMove: (event: PointerEvent) => {
      const box = (event.currentTarget as SVGElement).getBoundingClientRect();
      const pointed = ((event.clientX - box.left) / box.width) * width;
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
            ${labels && html`<${PointLabel} x=${px} y=${py} text=${labels[i]} />`}
          `,
        )
      }
    </g>
  `;
}

/** Beside a curve that rises: on its left half to the right below it, on its right half to the left above it. */
function PointLabel({ x, y, text }: { x: number; y: number; text: string }) {
  return x > WIDTH / 2
    ? html`<text x=${x - 7} y=${y - 7} text-anchor="end">${text}</text>`
    : html`<text x=${x + 7} y=${y + 15}>${text}</text>`;
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
    WIDTH,
    setAt,
  );
  const column = at === undefined ? undefined : columns[at];
  return html`
    <figure class="card chart">
      <div class="chart-head"><h3>${title}</h3>${about}</div>
      <svg
        viewBox=${`0 0 ${WIDTH} ${bottom + 40}`} role="img" tabindex="0"
        aria-label=${`${title}: in episode ${columns.at(-1)?.name}, ${sharesInWords(rows, columns.at(-1)?.shares ?? [])}. Arrow keys show values.`}
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
      <${Readout} at=${column && `episode ${column.name}`} values=${sharesOf(rows, column?.shares ?? [])} />
    </figure>
  `;
}

/** Shares by name, the largest first. */
export function sharesOf(names: readonly string[], shares: readonly number[]): ReadValue[] {
  const sorted = names.map((name, r) => ({ name, share: shares[r] ?? 0 })).sort((a, b) => b.share - a.share);
  return sorted.map(({ name, share }) => ({ name, value: percent(share) }));
}

function sharesInWords(rows: readonly string[], shares: readonly number[]): string {
  return sharesOf(rows, shares)
    .map(({ name, value }) => `${name} ${value}`)
    .join(', ');
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
            <tr><th scope="col">run</th>${columns.map((column) => html`<th scope="col">${column}</th>`)}</tr>
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
  /** A round value in words: all of them with the same decimals. */
  label(tick: number): string;
}

export function linearScale(values: readonly number[], from: number, to: number, count = 4): Scale {
  const [low, high] = extent(values);
  const scale = (value: number) => from + ((value - low) / (high - low)) * (to - from);
  const ticks = roundValues(low, high, count);
  const step = ticks.length > 1 ? ticks[1] - ticks[0] : high - low;
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const isPlain = decimals <= 4 && Math.max(Math.abs(low), Math.abs(high)) < 1e6;
  return Object.assign(scale, { ticks, label: (tick: number) => (isPlain ? tick.toFixed(decimals) : figure(tick)) });
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
