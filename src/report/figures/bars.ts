import * as Plot from '@observablehq/plot';
import { draw, type Figure, seriesStyle, textWidth } from './figure.js';

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

/** How often a scheduler chose each task, at some episodes. */
export interface TaskDistribution {
  readonly label: string;
  readonly tasks: readonly string[];
  readonly episodes: readonly { readonly episode: number; readonly shares: readonly number[] }[];
}

/** Figure "The distribution of wait-m tasks": a row for each scheduler, a panel for each chosen episode. */
export function taskDistributionFigure(
  schedulers: readonly TaskDistribution[],
  about: Pick<Figure, 'id' | 'title' | 'caption'>,
): Figure {
  const most = Math.max(...schedulers.map(({ tasks }) => tasks.length));
  const width = Math.max(190, 64 + 13 * most);
  // Every second number if they would touch.
  const every = most > 9 ? 2 : 1;
  const rows = schedulers.map(({ tasks, episodes }) => {
    const names = shortNames(tasks);
    return episodes.map(({ episode, shares }) => ({
      title: `episode ${episode}`,
      width,
      height: 190,
      plot: {
        marginLeft: 46,
        marginTop: 22,
        x: {
          label: names.axis,
          labelAnchor: 'center',
          labelArrow: 'none',
          domain: names.ticks,
          ticks: names.ticks.filter((_, i) => i % every === 0),
          padding: 0.2,
        },
        y: { label: 'share', labelArrow: 'none', domain: [0, largest(schedulers)], nice: true, ticks: 4, grid: true },
        marks: [
          Plot.barY(
            shares.map((share, i) => ({ task: names.ticks[i], share })),
            { x: 'task', y: 'share', fill: '#0072b2' },
          ),
          Plot.ruleY([0]),
        ],
      } satisfies Plot.PlotOptions,
    }));
  });
  return {
    ...about,
    svg: draw(about.title, rows, { rowTitles: schedulers.map(({ label }) => label) }),
    data: {
      columns: ['scheduler', 'episode', 'task', 'share'],
      rows: schedulers.flatMap(({ label, tasks, episodes }) =>
        episodes.flatMap(({ episode, shares }) => shares.map((share, i) => [label, episode, tasks[i], share])),
      ),
    },
  };
}

/** Five episodes of a training, as in the paper: the first, the last, and some between at increasing distances. */
export function shownEpisodes(count: number): number[] {
  if (count <= 5) return Array.from({ length: count }, (_, i) => i + 1);
  return [...new Set([0, 0.25, 0.5, 0.75, 1].map((part) => Math.round(count ** part)))];
}

/** `wait-1` … `wait-13` become 1 … 13 on an axis called wait; other names are kept. */
function shortNames(tasks: readonly string[]): { axis: string; ticks: readonly string[] } {
  const parts = tasks.map((name) => /^(.*\D)-?(\d+)$/.exec(name));
  const [first] = parts;
  if (first === null || parts.some((part) => part === null || part[1] !== first[1]))
    return { axis: 'task', ticks: tasks };
  return { axis: first[1].replace(/-$/, ''), ticks: parts.map((part) => part![2]) };
}

function largest(schedulers: readonly TaskDistribution[]): number {
  return Math.max(...schedulers.flatMap(({ episodes }) => episodes.flatMap(({ shares }) => shares)));
}

/** The difference of an arm from the baseline. */
export interface ArmDifference {
  readonly label: string;
  readonly difference: number;
  /** 95 % interval; NaN if there are too few seeds for one. */
  readonly low: number;
  readonly high: number;
  readonly seeds: number;
  /** Corrected for the number of arms; NaN if it could not be tested. */
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
