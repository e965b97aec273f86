import * as Plot from '@observablehq/plot';
import { draw, type Figure, seriesStyle, textWidth } from './figure.js';

/** The difference of an arm from the baseline. */
export interface ArmDifference {
  readonly label: string;
  readonly difference: number;
  /** 95 % interval; NaN where there are too few seeds for one. */
  readonly low: number;
  readonly high: number;
  readonly seeds: number;
  /** Corrected for the number of arms; NaN where it could not be tested. */
  readonly p: number;
}

/** A forest plot: a row for each arm with its difference and interval, and a line at no difference. */
export function forestFigure(
  arms: readonly ArmDifference[],
  about: Pick<Figure, 'id' | 'title' | 'caption'>,
  axis: string,
): Figure {
  const { color } = seriesStyle(1);
  const marginLeft = Math.ceil(Math.max(...arms.map(({ label }) => textWidth(label, 12))) + 28);
  const ends = arms.flatMap(({ difference, low, high }) => [difference, low, high]).filter(Number.isFinite);
  const plot: Plot.PlotOptions = {
    marginLeft,
    marginTop: 12,
    // Room for half of the last label.
    marginRight: 32,
    x: {
      label: axis,
      labelAnchor: 'center',
      labelArrow: 'none',
      domain: [Math.min(0, ...ends), Math.max(0, ...ends)],
      nice: true,
      ticks: 6,
      grid: true,
    },
    y: { type: 'band', domain: arms.map(({ label }) => label), label: null, padding: 0.1 },
    color: { type: 'identity' },
    marks: [
      Plot.ruleX([0]),
      Plot.ruleY(
        arms.filter(({ low }) => Number.isFinite(low)),
        { y: 'label', x1: 'low', x2: 'high', stroke: color, strokeWidth: 1.8 },
      ),
      Plot.dot(arms, {
        y: 'label',
        x: 'difference',
        r: 4,
        stroke: color,
        fill: ({ p }: ArmDifference) => (p < 0.05 ? color : '#ffffff'),
      }),
    ],
  };
  const panel = { title: about.title, width: marginLeft + 460, height: 24 * arms.length + 68, plot };
  return {
    ...about,
    svg: draw(about.title, [[panel]]),
    data: {
      columns: ['arm', 'seeds', 'difference', 'low', 'high', 'p (Holm)'],
      rows: arms.map(({ label, seeds, difference, low, high, p }) => [label, seeds, difference, low, high, p]),
    },
  };
}
