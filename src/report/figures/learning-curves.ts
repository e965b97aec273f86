import { draw, type Figure } from './figure.js';
import { type Line, legendOf, linesPanel } from './lines.js';

/** An episode of a method: means over the seeds with their standard deviations, NaN for a single seed. */
export interface CurvePoint {
  /** Updates made when it ended. */
  readonly update: number;
  readonly loss: number;
  readonly lossStd: number;
  readonly performance: number;
  readonly performanceStd: number;
  readonly reward: number;
}

export interface LearningCurve {
  readonly label: string;
  /** Number of its style. */
  readonly style: number;
  readonly points: readonly CurvePoint[];
}

/** Training loss, validation performance and reward of the episodes, over the updates made: episodes may differ in length. */
export function learningCurvesFigure(
  curves: readonly LearningCurve[],
  about: Pick<Figure, 'id' | 'title' | 'caption'>,
): Figure {
  const lines = (y: 'loss' | 'performance' | 'reward', spread?: 'lossStd' | 'performanceStd'): Line[] =>
    curves.map(({ label, style, points }) => ({
      label,
      style,
      points: points.map((point) => {
        const deviation = spread === undefined ? Number.NaN : point[spread];
        return { x: point.update, y: point[y], low: point[y] - deviation, high: point[y] + deviation };
      }),
    }));
  const size = { width: 330, height: 270, x: 'updates' };
  const panels = [
    linesPanel(lines('loss', 'lossStd'), { ...size, title: 'Training loss', y: 'loss', letter: 0 }),
    linesPanel(lines('performance', 'performanceStd'), {
      ...size,
      title: 'Validation, main task',
      y: 'performance',
      letter: 1,
    }),
    linesPanel(lines('reward'), { ...size, title: 'Reward', y: 'gain of performance', zero: true, letter: 2 }),
  ];
  return {
    ...about,
    svg: draw(about.title, [panels], { legend: legendOf(lines('loss')) }),
    data: {
      columns: ['method', 'updates', 'loss', 'loss std', 'performance', 'performance std', 'reward'],
      rows: curves.flatMap(({ label, points }) =>
        points.map((p) => [label, p.update, p.loss, p.lossStd, p.performance, p.performanceStd, p.reward]),
      ),
    },
  };
}
