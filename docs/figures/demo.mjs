// Draws the README's picture from the run folders of `tcts demo`: node docs/figures/demo.mjs runs/demo-strategies/known-answer docs/figures/demo.svg
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [runs, target] = process.argv.slice(2);
const episodesOf = (run) =>
  readFileSync(join(runs, run, 'metrics.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
    .filter(({ episode }) => episode !== undefined);

const [WIDTH, HEIGHT] = [860, 300];
const STYLES = { fixed: '#555 4 3', mtl: '#b5651d 1 3', curriculum: '#0072b2 9 4', learned: '#d00000 0' };
const parts = [
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="13">`,
  `<rect width="${WIDTH}" height="${HEIGHT}" fill="white"/>`,
];

heatMap({ x: 70, y: 40, width: 370, height: 190 });
curves({ x: 530, y: 40, width: 310, height: 190 });
parts.push('</svg>\n');
writeFileSync(target, parts.join('\n'));

/** What the learned scheduler chose: a row a task, a column a group of episodes, darker the more often. */
function heatMap({ x, y, width, height }) {
  const episodes = episodesOf('learned');
  const tasks = Object.keys(episodes[0].distribution);
  const columns = 40;
  const [w, h] = [width / columns, height / tasks.length];
  title(x, y, 'Tasks chosen by the learned scheduler');
  tasks.forEach((task, row) => {
    text(x - 8, y + (row + 0.5) * h + 4, task, 'end');
    for (let column = 0; column < columns; column++) {
      const [from, to] = [0, 1].map((k) => Math.floor(((column + k) * episodes.length) / columns));
      const group = episodes.slice(from, to);
      const share = group.reduce((sum, { distribution }) => sum + distribution[task], 0) / group.length;
      parts.push(
        `<rect x="${(x + column * w).toFixed(1)}" y="${(y + row * h).toFixed(1)}" width="${(w + 0.3).toFixed(1)}" height="${(h - 2).toFixed(1)}" fill="#08306b" fill-opacity="${share.toFixed(3)}"/>`,
      );
    }
  });
  parts.push(`<rect x="${x}" y="${y}" width="${width}" height="${height - 2}" fill="none" stroke="#999"/>`);
  text(x, y + height + 18, 'episode 1');
  text(x + width, y + height + 18, `${episodes.length}`, 'end');
}

/** Validation loss on the main task over the episodes, both axes logarithmic. */
function curves({ x, y, width, height }) {
  const series = Object.fromEntries(readdirSync(runs).map((run) => [run, episodesOf(run).map((e) => -e.performance)]));
  const all = Object.values(series).flat();
  const [low, high] = [Math.min(...all), Math.max(...all)].map(Math.log);
  const last = Math.max(...Object.values(series).map((values) => values.length));
  const place = (episode, loss) => [
    x + (Math.log(episode) / Math.log(last)) * width,
    y + (1 - (Math.log(loss) - low) / (high - low)) * height,
  ];
  title(x, y, 'Main-task validation loss');
  parts.push(`<path d="M${x} ${y}V${y + height}H${x + width}" fill="none" stroke="#999"/>`);
  for (const tick of [0.05, 0.1, 0.2, 0.5, 1].filter((value) => Math.log(value) >= low && Math.log(value) <= high)) {
    text(x - 6, place(1, tick)[1] + 4, `${tick}`, 'end');
  }
  text(x, y + height + 18, 'episode 1');
  text(x + width, y + height + 18, `${last}`, 'end');
  Object.keys(STYLES).forEach((run, i) => {
    const [stroke, ...dashes] = STYLES[run].split(' ');
    const points = series[run].map((loss, j) => place(j + 1, loss).map((v) => v.toFixed(1)).join(','));
    const style = `fill="none" stroke="${stroke}" stroke-width="1.8" stroke-dasharray="${dashes.join(' ')}"`;
    parts.push(`<polyline points="${points.join(' ')}" ${style}/>`);
    const at = x - 40 + [0, 85, 160, 270][i];
    parts.push(`<path d="M${at} ${y + height + 42}h24" ${style}/>`);
    text(at + 28, y + height + 46, run);
  });
}

function title(x, y, words) {
  parts.push(`<text x="${x}" y="${y - 14}" font-weight="bold">${words}</text>`);
}

function text(x, y, words, anchor = 'start') {
  parts.push(`<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" fill="#333">${words}</text>`);
}
