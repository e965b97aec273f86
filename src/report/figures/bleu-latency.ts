import { draw, type Figure } from './figure.js';
import { type Line, legendOf, linesPanel } from './lines.js';

/** A method's quality and latency with one wait, or one setting of another policy. */
export interface BleuLatencyPoint {
  readonly k: number | string;
  readonly AP: number;
  readonly AL: number;
  readonly bleu: number;
  /** Ends of the confidence interval of BLEU; NaN where there is none. */
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
