import * as Plot from '@observablehq/plot';
import { type LegendEntry, type Panel, panelLetter } from './figure.js';
import { seriesStyle } from './style.js';

/** A point of a line, with the ends of its band where there is one. */
export interface Point {
  readonly x: number | Date;
  readonly y: number;
  readonly low?: number;
  readonly high?: number;
  /** Written beside it. */
  readonly label?: string;
}

export interface Line {
  readonly label: string;
  /** Number of its style. */
  readonly style: number;
  readonly points: readonly Point[];
}

export interface LinesOptions {
  readonly title: string;
  readonly x: string;
  readonly y: string;
  readonly width: number;
  readonly height: number;
  /** Draw a rule at zero. Default false. */
  readonly zero?: boolean;
  /** Symbols on the lines: at every point, or at about eight of many. Default `some`. */
  readonly symbols?: 'all' | 'some';
  /** Format of the ticks of y, as d3 has it, or a function. */
  readonly yFormat?: string | ((value: number) => string);
  /** Where the panel stands, for its letter; undefined: none. */
  readonly letter?: number;
}

/** Lines over a common axis. */
export function linesPanel(lines: readonly Line[], options: LinesOptions): Panel {
  const { title, width, height, letter, symbols = 'some', zero = false } = options;
  const dates = lines.some(({ points }) => points.some(({ x }) => x instanceof Date));
  const finite = lines.map(({ points }) => points.filter(({ y }) => Number.isFinite(y)));
  const marks = [
    ...(zero ? [Plot.ruleY([0], { stroke: '#999999' })] : []),
    ...finite.map((points, i) =>
      Plot.areaY(
        points.filter(({ low, high }) => Number.isFinite(low) && Number.isFinite(high)),
        { x: 'x', y1: 'low', y2: 'high', fill: seriesStyle(lines[i].style).color, fillOpacity: 0.15 },
      ),
    ),
    ...finite.map((points, i) => {
      const { color, dash } = seriesStyle(lines[i].style);
      return Plot.line(points, { x: 'x', y: 'y', stroke: color, strokeWidth: 1.8, strokeDasharray: dash });
    }),
    ...finite.map((points, i) => {
      const { color, symbol } = seriesStyle(lines[i].style);
      const shown = symbols === 'all' ? points : someOf(points, i, lines.length);
      return Plot.dot(shown, { x: 'x', y: 'y', fill: color, symbol, r: 3.5 });
    }),
    Plot.frame({ stroke: '#888888' }),
  ];
  return {
    title: letter === undefined ? title : `${panelLetter(letter)} ${title}`,
    width,
    height,
    plot: {
      inset: 6,
      x: {
        label: options.x,
        labelAnchor: 'center',
        labelArrow: 'none',
        nice: !dates,
        type: dates ? 'utc' : 'linear',
        ticks: 5,
      },
      y: {
        label: options.y,
        labelArrow: 'none',
        nice: true,
        zero: false,
        ticks: 6,
        grid: true,
        tickFormat: options.yFormat,
      },
      marks,
    },
  };
}

export function legendOf(lines: readonly Line[]): LegendEntry[] {
  return lines.map(({ label, style }) => ({ label, style: seriesStyle(style) }));
}

/** About eight points, not at the same places as those of the other lines; all of them where they are few. */
function someOf(points: readonly Point[], index: number, lines: number): readonly Point[] {
  if (points.length <= 12) return points;
  const step = points.length / 8;
  return Array.from({ length: 8 }, (_, k) => points[Math.floor((k + (index + 0.5) / lines) * step)]);
}
