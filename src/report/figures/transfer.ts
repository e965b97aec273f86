import * as Plot from '@observablehq/plot';
import { draw, type Figure, seriesStyle, textWidth } from './figure.js';

/** What a sibling does to the main task, as `tcts probe` measures it. */
export interface Transfer {
  readonly kind: 'uniform' | 'added' | 'mixed';
  /** The sibling; undefined: all of them. */
  readonly task?: string;
  readonly mean: number;
  readonly low: number;
  readonly high: number;
  /** Corrected for the number of effects. */
  readonly p: number;
  /** Whether p is small enough. */
  readonly visible: boolean;
}

/** The matrix of transfer on the main task: a row for each sibling, beside it the same numbers with their intervals. */
export function transferFigure(
  effects: readonly Transfer[],
  about: Pick<Figure, 'id' | 'title' | 'caption'>,
  number: (value: number) => string,
): Figure {
  const cells = effects.map((effect) => ({
    ...effect,
    row: effect.task ?? ALL,
    column: effect.kind === 'mixed' ? MIXED : ADDED,
    label: `${number(effect.mean)}${effect.visible ? ' *' : ''}`,
  }));
  const rows = [...new Set(cells.map(({ row }) => row))].filter((row) => row !== ALL).concat(ALL);
  const columns = [ADDED, MIXED].filter((title) => cells.some(({ column }) => column === title));
  const largest = Math.max(...cells.map(({ mean }) => Math.abs(mean))) || 1;
  const marginLeft = Math.ceil(Math.max(...rows.map((row) => textWidth(row, 12))) + 16);
  const height = 34 * rows.length + 70;
  const y = { type: 'band', domain: rows, label: null, padding: 0.1 } as const;
  const matrix: Plot.PlotOptions = {
    marginLeft,
    x: { domain: columns, label: null, padding: 0.05 },
    y,
    // Blue helps, orange hurts (Okabe and Ito); effects that are not significant are pale and have no star.
    marks: [
      Plot.cell(cells, {
        x: 'column',
        y: 'row',
        fill: (d: Cell) => (d.mean >= 0 ? '#0072b2' : '#e69f00'),
        fillOpacity: (d: Cell) => (0.08 + 0.42 * Math.abs(d.mean / largest)) * (d.visible ? 1 : 0.5),
        stroke: (d: Cell) => (d.visible ? '#222222' : 'none'),
      }),
      Plot.text(cells, { x: 'column', y: 'row', text: 'label' }),
    ],
    opacity: { type: 'identity' },
    color: { type: 'identity' },
  };
  const ends = cells.flatMap(({ low, high }) => [low, high]);
  const series = columns.map((title, i) => {
    const own = cells.filter(({ column }) => column === title);
    const { color, symbol } = seriesStyle(i);
    const dy = columns.length === 1 ? 0 : i === 0 ? -5 : 5;
    return [
      Plot.ruleY(own, { y: 'row', x1: 'low', x2: 'high', stroke: color, strokeWidth: 1.6, dy }),
      Plot.dot(own, {
        y: 'row',
        x: 'mean',
        symbol,
        r: 4,
        dy,
        stroke: color,
        fill: (d: Cell) => (d.visible ? color : '#ffffff'),
      }),
    ];
  });
  const intervals: Plot.PlotOptions = {
    marginLeft,
    // Room for half of the last label.
    marginRight: 32,
    x: {
      label: 'gain in main-task validation performance',
      labelAnchor: 'center',
      labelArrow: 'none',
      domain: [Math.min(0, ...ends), Math.max(0, ...ends)],
      nice: true,
      ticks: 5,
      grid: true,
    },
    y,
    color: { type: 'identity' },
    marks: [Plot.ruleX([0]), ...series.flat()],
  };
  const width = marginLeft + 20 + 120 * columns.length;
  const panels = [
    { title: 'transfer on the main task (* visible)', width: Math.max(width, 250), height, plot: matrix },
    { title: '95 % intervals (filled: visible)', width: marginLeft + 330, height, plot: intervals },
  ];
  const legend = columns.map((label, i) => ({ label, style: { ...seriesStyle(i), dash: 'none' } }));
  return {
    ...about,
    svg: draw(about.title, [panels], { legend }),
    data: {
      columns: ['comparison', 'sibling', 'mean', 'low', 'high', 'p (Holm)'],
      rows: cells.map(({ column, row, mean, low, high, p }) => [column, row, mean, low, high, p]),
    },
  };
}

type Cell = Transfer & { readonly row: string; readonly column: string; readonly label: string };

const ALL = 'all siblings';
const ADDED = 'added to main';
const MIXED = 'in the mix';
