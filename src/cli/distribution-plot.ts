/**
 * The share of each task over the episodes, a row a task and time from left to right: a cell is the mean of the
 * episodes that fall into it, the darker the larger. Behind it stands the share in the last quarter.
 */
export function distributionPlot(
  tasks: readonly string[],
  episodes: readonly { readonly distribution: readonly number[] }[],
  width = 60,
): string {
  const cells = Math.min(width, episodes.length);
  const label = Math.max(...tasks.map((task) => task.length));
  const lastQuarter = episodes.slice(Math.floor(0.75 * episodes.length));
  return tasks
    .map((task, i) => {
      const row = Array.from({ length: cells }, (_, cell) => {
        const from = Math.floor((cell * episodes.length) / cells);
        const to = Math.floor(((cell + 1) * episodes.length) / cells);
        return shade(meanShare(episodes.slice(from, to), i));
      });
      const share = Math.round(100 * meanShare(lastQuarter, i));
      return `${task.padEnd(label)} │${row.join('')}│ ${String(share).padStart(3)} % in the last quarter`;
    })
    .join('\n');
}

function meanShare(episodes: readonly { readonly distribution: readonly number[] }[], task: number): number {
  return episodes.reduce((sum, { distribution }) => sum + distribution[task], 0) / episodes.length;
}

/** Blank below 5 %, full above 80 %. */
function shade(share: number): string {
  return SHADES[SHADES_FROM.findLastIndex((from) => share >= from)];
}

const SHADES = [' ', '░', '▒', '▓', '█'];
const SHADES_FROM = [0, 0.05, 0.25, 0.5, 0.8];
