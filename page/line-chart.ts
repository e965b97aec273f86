import { figure } from './figure.js';
import { html } from './html.js';
import { linearScale } from './scale.js';

export interface Series {
  readonly name: string;
  /** Which of the colours it has. */
  readonly color: number;
  readonly points: readonly (readonly [x: number, y: number])[];
  /** Names of the points, shown beside them. */
  readonly labels?: readonly string[];
}

export interface LineChartProps {
  readonly title: string;
  readonly x: string;
  readonly series: readonly Series[];
}

/** Curves over a common axis; nothing where there is nothing to draw. */
export function LineChart({ title, x: xName, series }: LineChartProps) {
  const points = series.flatMap((one) => one.points);
  if (points.length === 0) return null;
  const x = linearScale(
    points.map(([value]) => value),
    LEFT,
    WIDTH - 8,
  );
  const y = linearScale(
    points.map(([, value]) => value),
    HEIGHT - BOTTOM,
    10,
  );
  return html`
    <figure class="card chart">
      <h3>${title}</h3>
      <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label=${`${title}: ${series.map(inWords).join('; ')}`}>
        ${y.ticks.map(
          (value) => html`
            <line class="grid" x1=${LEFT} x2=${WIDTH - 8} y1=${y(value)} y2=${y(value)} />
            <text x=${LEFT - 6} y=${y(value) + 4} text-anchor="end">${figure(value)}</text>
          `,
        )}
        ${x.ticks.map((value) => html`<text x=${x(value)} y=${HEIGHT - BOTTOM + 15} text-anchor="middle">${figure(value)}</text>`)}
        <text x=${WIDTH - 8} y=${HEIGHT - 2} text-anchor="end">${xName}</text>
        ${series.map((one) => html`<${Curve} series=${one} place=${([a, b]: readonly [number, number]) => [x(a), y(b)]} />`)}
      </svg>
    </figure>
  `;
}

function Curve({ series, place }: { series: Series; place: (point: readonly [number, number]) => readonly number[] }) {
  const { name, color, points, labels } = series;
  const places = points.map(place);
  return html`
    <g class=${`series-${color}`}>
      <polyline points=${places.map((point) => point.map((value) => value.toFixed(1)).join(',')).join(' ')} />
      ${
        points.length <= DOTS &&
        places.map(
          ([px, py], i) => html`
            <circle cx=${px} cy=${py} r="3"><title>${`${name}: ${figure(points[i][0])}, ${figure(points[i][1])}`}</title></circle>
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

const WIDTH = 460;
const HEIGHT = 230;
const LEFT = 52;
const BOTTOM = 32;

/** Up to so many points are marked one by one. */
const DOTS = 40;
