import * as Plot from '@observablehq/plot';
import type { ValidationMeasure } from '../../run/index.js';
import { toDigits } from '../document.js';
import { draw, type Figure, type LegendEntry, type Panel, panelLetter, seriesStyle } from './figure.js';

/** An episode of a method: means over the seeds with their standard deviations, NaN for a single seed. */
export interface CurvePoint {
  /** Updates made when it ended. */
  readonly update: number;
  readonly loss: number;
  readonly lossStd: number;
  /** The figure of the main task on validation data, such as its loss. */
  readonly validation: number;
  readonly validationStd: number;
  readonly reward: number;
}

export interface LearningCurve {
  readonly label: string;
  /** Number of its style. */
  readonly style: number;
  readonly points: readonly CurvePoint[];
}

/** Training loss, validation and reward of the episodes, over the updates made: episodes may differ in length. */
export function learningCurvesFigure(
  curves: readonly LearningCurve[],
  { name, better }: Pick<ValidationMeasure, 'name' | 'better'>,
  about: Pick<Figure, 'id' | 'title' | 'caption'>,
): Figure {
  const lines = (y: 'loss' | 'validation' | 'reward', spread?: 'lossStd' | 'validationStd'): Line[] =>
    curves.map(({ label, style, points }) => ({
      label,
      style,
      points: points.map((point) => {
        const deviation = spread === undefined ? Number.NaN : point[spread];
        return { x: point.update, y: point[y], low: point[y] - deviation, high: point[y] + deviation };
      }),
    }));
  const measure = name.replace('validation ', '');
  const gain = `${better === 'lower' ? 'fall' : 'rise'} of ${measure}`;
  const size = { width: 330, height: 270, x: 'updates' };
  const panels = [
    linesPanel(lines('loss', 'lossStd'), { ...size, title: 'Training loss', y: 'loss', letter: 0 }),
    linesPanel(lines('validation', 'validationStd'), {
      ...size,
      title: 'Validation, main task',
      y: measure,
      letter: 1,
    }),
    linesPanel(lines('reward'), { ...size, title: 'Reward', y: gain, zero: true, letter: 2 }),
  ];
  return {
    ...about,
    svg: draw(about.title, [panels], { legend: legendOf(lines('loss')) }),
    data: {
      columns: ['method', 'updates', 'loss', 'loss std', name, 'validation std', 'reward'],
      rows: curves.flatMap(({ label, points }) =>
        points.map((p) => [label, p.update, p.loss, p.lossStd, p.validation, p.validationStd, p.reward]),
      ),
    },
  };
}

/** A method's quality and latency with one wait, or one setting of another policy. */
export interface BleuLatencyPoint {
  readonly k: number | string;
  readonly AP: number;
  readonly AL: number;
  readonly bleu: number;
  /** Ends of the confidence interval of BLEU; NaN if there is none. */
  readonly low: number;
  readonly high: number;
}

export interface BleuLatencyCurve {
  readonly label: string;
  /** Number of its style. */
  readonly style: number;
  /** By k or by latency, ascending. */
  readonly points: readonly BleuLatencyPoint[];
}

/** BLEU against average proportion and average lagging: figure "Translation quality against latency metrics". */
export function bleuLatencyFigure(
  curves: readonly BleuLatencyCurve[],
  about: Pick<Figure, 'id' | 'title' | 'caption'>,
): Figure {
  const lines = (latency: 'AP' | 'AL'): Line[] =>
    curves.map(({ label, style, points }) => ({
      label,
      style,
      points: points.map(({ [latency]: x, bleu: y, low, high }) => ({ x, y, low, high })),
    }));
  const size = { width: 400, height: 300, y: 'BLEU', symbols: 'all' } as const;
  const panels = [
    linesPanel(lines('AP'), { ...size, title: 'BLEU–AP', x: 'average proportion', letter: 0 }),
    linesPanel(lines('AL'), { ...size, title: 'BLEU–AL', x: 'average lagging', letter: 1 }),
  ];
  return {
    ...about,
    svg: draw(about.title, [panels], { legend: legendOf(lines('AP')) }),
    data: {
      columns: ['method', 'k', 'AP', 'AL', 'BLEU', 'low', 'high'],
      rows: curves.flatMap(({ label, points }) =>
        points.map(({ k, AP, AL, bleu, low, high }) => [label, k, AP, AL, bleu, low, high]),
      ),
    },
  };
}

/** A figure for each day of the test part. */
export interface DailyLine {
  readonly label: string;
  /** Number of its style. */
  readonly style: number;
  /** ISO 8601, ascending. */
  readonly dates: readonly string[];
  readonly values: readonly number[];
}

/**
 * Lines over the days of the test part: RankIC over time, or the cumulative return of the backtest.
 *
 * @param marks dates of vertical lines
 */
export function dailyFigure(
  lines: readonly DailyLine[],
  about: Pick<Figure, 'id' | 'title' | 'caption'>,
  y: { readonly label: string; readonly percent?: boolean },
  marks: readonly string[] = [],
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
    marks: marks.map((date) => new Date(`${date}T00:00:00Z`)),
    yFormat: y.percent ? (value) => `${toDigits(100 * value, 0)} %` : undefined,
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

/** At most as many points as pixels. */
function thinned<T>(points: readonly T[]): T[] {
  const step = Math.ceil(points.length / 600);
  return points.filter((_, i) => i % step === 0 || i === points.length - 1);
}

/** A point of a line, with the ends of its band if there is one. */
export interface LinePoint {
  readonly x: number | Date;
  readonly y: number;
  readonly low?: number;
  readonly high?: number;
  /** Label next to it. */
  readonly label?: string;
}

export interface Line {
  readonly label: string;
  /** Number of its style. */
  readonly style: number;
  readonly points: readonly LinePoint[];
}

export interface LinesOptions {
  readonly title: string;
  readonly x: string;
  readonly y: string;
  readonly width: number;
  readonly height: number;
  /** Draw a rule at zero. Default false. */
  readonly zero?: boolean;
  /** Places of vertical rules. Default none. */
  readonly marks?: readonly Date[];
  /** Symbols on the lines: at every point, or at about eight of many. Default `some`. */
  readonly symbols?: 'all' | 'some';
  /** Format of the ticks of y, in d3's notation, or a function. */
  readonly yFormat?: string | ((value: number) => string);
  /** Index of the panel, for its letter; undefined: none. */
  readonly letter?: number;
}

/** Lines over a common axis. */
export function linesPanel(lines: readonly Line[], options: LinesOptions): Panel {
  const { title, width, height, letter, symbols = 'some', zero = false, marks: rules = [] } = options;
  const dates = lines.some(({ points }) => points.some(({ x }) => x instanceof Date));
  const finite = lines.map(({ points }) => points.filter(({ y }) => Number.isFinite(y)));
  const marks = [
    ...(zero ? [Plot.ruleY([0], { stroke: '#999999' })] : []),
    ...(rules.length > 0 ? [Plot.ruleX(rules, { stroke: '#888888', strokeDasharray: '2 3' })] : []),
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

/** About eight points, offset from those of the other lines; all of them if there are few. */
function someOf(points: readonly LinePoint[], index: number, lines: number): readonly LinePoint[] {
  if (points.length <= 12) return points;
  const step = points.length / 8;
  return Array.from({ length: 8 }, (_, k) => points[Math.floor((k + (index + 0.5) / lines) * step)]);
}
