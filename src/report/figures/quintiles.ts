import * as Plot from '@observablehq/plot';
import { draw, type Figure } from './figure.js';
import { textWidth } from './style.js';

/** Mean daily returns of the fifths of the stocks, the highest forecasts first. */
export interface QuintileReturns {
  readonly label: string;
  /** Means over the seeds, as fractions. */
  readonly means: readonly number[];
  /** Standard deviations over the seeds; NaN for a single one. */
  readonly deviations: readonly number[];
}

/** A panel of bars for each method, all to one scale. */
export function quintileFigure(
  methods: readonly QuintileReturns[],
  about: Pick<Figure, 'id' | 'title' | 'caption'>,
): Figure {
  const bars = methods.map(({ means, deviations }) =>
    means.map((mean, q) => ({ q: `q${q + 1}`, mean: 1e4 * mean, deviation: 1e4 * deviations[q] })),
  );
  const ends = bars.flat().flatMap(({ mean, deviation }) => {
    const spread = Number.isNaN(deviation) ? 0 : deviation;
    return [mean - spread, mean + spread];
  });
  const domain = [Math.min(0, ...ends), Math.max(0, ...ends)];
  const width = Math.ceil(Math.max(230, ...methods.map(({ label }) => textWidth(label, 13) + 16)));
  const panels = methods.map(({ label }, i) => ({
    title: label,
    width,
    height: 230,
    plot: {
      marginLeft: 46,
      x: { label: 'fifth by forecast', labelAnchor: 'center', labelArrow: 'none', padding: 0.25 },
      y: { label: 'basis points a day', labelArrow: 'none', domain, nice: true, ticks: 5, grid: true },
      marks: [
        Plot.barY(bars[i], { x: 'q', y: 'mean', fill: '#56b4e9', stroke: '#222222' }),
        Plot.ruleX(
          bars[i].filter(({ deviation }) => !Number.isNaN(deviation)),
          {
            x: 'q',
            y1: (d: { mean: number; deviation: number }) => d.mean - d.deviation,
            y2: (d: { mean: number; deviation: number }) => d.mean + d.deviation,
            strokeWidth: 2,
          },
        ),
        Plot.ruleY([0]),
      ],
    } satisfies Plot.PlotOptions,
  }));
  const rows = Array.from({ length: Math.ceil(panels.length / 4) }, (_, r) => panels.slice(4 * r, 4 * r + 4));
  return {
    ...about,
    svg: draw(about.title, rows),
    data: {
      columns: ['method', 'fifth', 'mean daily return', 'std'],
      rows: methods.flatMap(({ label, means, deviations }) =>
        means.map((mean, q) => [label, q + 1, mean, deviations[q]]),
      ),
    },
  };
}
