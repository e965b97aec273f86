import * as Plot from '@observablehq/plot';
import { draw, type Figure } from './figure.js';

/** How often a scheduler chose each task, at some episodes. */
export interface TaskDistribution {
  readonly label: string;
  readonly tasks: readonly string[];
  readonly episodes: readonly { readonly episode: number; readonly shares: readonly number[] }[];
}

/** Figure "The distribution of wait-m tasks": a row for each scheduler, a panel for each of the chosen episodes. */
export function taskDistributionFigure(
  schedulers: readonly TaskDistribution[],
  about: Pick<Figure, 'id' | 'title' | 'caption'>,
): Figure {
  const most = Math.max(...schedulers.map(({ tasks }) => tasks.length));
  const width = Math.max(190, 64 + 13 * most);
  // Every second number where all of them would touch.
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

/** Five episodes of a training, as in the paper: the first, the last, and some between that lie ever further apart. */
export function shownEpisodes(count: number): number[] {
  if (count <= 5) return Array.from({ length: count }, (_, i) => i + 1);
  return [...new Set([0, 0.25, 0.5, 0.75, 1].map((part) => Math.round(count ** part)))];
}

/** `wait-1` … `wait-13` become 1 … 13 on an axis called wait; names of another make are kept. */
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
