import { fixed } from '../table.js';
import { draw, type Figure } from './figure.js';
import { type Line, legendOf, linesPanel } from './lines.js';

/** A figure for each day of the test part. */
export interface DailyLine {
  readonly label: string;
  /** Number of its style. */
  readonly style: number;
  /** ISO 8601, ascending. */
  readonly dates: readonly string[];
  readonly values: readonly number[];
}

/** Lines over the days of the test part: RankIC over time, or the cumulative return of the backtest. */
export function dailyFigure(
  lines: readonly DailyLine[],
  about: Pick<Figure, 'id' | 'title' | 'caption'>,
  y: { readonly label: string; readonly percent?: boolean },
): Figure {
  const drawn: Line[] = lines.map(({ label, style, dates, values }) => ({
    label,
    style,
    points: thinned(dates.map((date, i) => ({ x: new Date(`${date}T00:00:00Z`), y: values[i] }))),
  }));
  const panel = linesPanel(drawn, {
    title: about.title,
    width: 760,
    height: 320,
    x: '',
    y: y.label,
    zero: true,
    yFormat: y.percent ? (value) => `${fixed(100 * value, 0)} %` : undefined,
  });
  return {
    ...about,
    svg: draw(about.title, [[panel]], { legend: legendOf(drawn) }),
    data: {
      columns: ['method', 'date', y.label],
      rows: lines.flatMap(({ label, dates, values }) => dates.map((date, i) => [label, date, values[i]])),
    },
  };
}

/** A running mean of the last `window` values that are defined; NaN until there are as many. */
export function movingMean(values: readonly number[], window: number): number[] {
  const recent: number[] = [];
  return values.map((value) => {
    if (!Number.isNaN(value)) recent.push(value);
    if (recent.length > window) recent.shift();
    return recent.length < window ? Number.NaN : recent.reduce((sum, x) => sum + x, 0) / window;
  });
}

/** No more points than there are pixels for. */
function thinned<T>(points: readonly T[]): T[] {
  const step = Math.ceil(points.length / 600);
  return points.filter((_, i) => i % step === 0 || i === points.length - 1);
}
