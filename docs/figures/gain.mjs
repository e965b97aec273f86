/**
 * Draws the README's picture from the paired trainings of docs/results/scheduling.csv:
 *
 *     node docs/figures/gain.mjs docs/results/scheduling.csv market-stale docs/figures/gain.svg
 *
 * A row is an arm, a dot one of its trainings, a thin line joins those of one seed, which start from the same parameters
 * and see the same batches. Colours follow the reader's light or dark setting.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { parse } from 'csv-parse/sync';
import { interval, mean } from '../../dist/metrics/index.js';

const [csv, problem, target] = process.argv.slice(2);
const ARMS = [
  { arm: 'fixed', title: 'fixed', about: 'main task only' },
  { arm: 'mtl', title: 'mtl', about: 'all tasks alike' },
  { arm: 'learned (stable)', title: 'learned', about: "the paper's, stable preset" },
  { arm: 'influence (shuffled)', title: 'influence, shuffled', about: 'control: features of others' },
  { arm: 'influence', title: 'influence', about: 'beyond the paper', kind: 'ours' },
  { arm: 'oracle', title: 'oracle', about: 'told which labels are wrong', kind: 'oracle' },
];
const BASELINE = 'mtl';

const rows = parse(readFileSync(csv, 'utf8'), { columns: true }).filter(
  (row) => row.problem === problem && ARMS.some(({ arm }) => arm === row.arm),
);
const seeds = [...new Set(rows.map(({ seed }) => seed))];
/** Test losses by seed, in the order of the seeds. */
const lossesOf = (arm) =>
  seeds.map((seed) => {
    const found = rows.filter((row) => row.arm === arm && row.seed === seed);
    if (found.length !== 1) throw new Error(`${problem}, ${arm}, seed ${seed}: expected one training, found ${found.length}`);
    return Number(found[0].test_loss);
  });
const losses = new Map(ARMS.map(({ arm }) => [arm, lossesOf(arm)]));
const gain = (arm) => interval(losses.get(arm).map((loss, i) => loss - losses.get(BASELINE)[i]));

const [WIDTH, ROW, TOP, LEFT, RIGHT] = [860, 42, 74, 222, 640];
const bottom = TOP + ROW * ARMS.length;
const HEIGHT = bottom + 52;
const all = [...losses.values()].flat();
const [low, high] = [Math.floor(Math.min(...all) * 100) / 100, Math.ceil(Math.max(...all) * 100) / 100];
const x = (loss) => (LEFT + ((loss - low) / (high - low)) * (RIGHT - LEFT)).toFixed(1);
const y = (row) => TOP + (row + 0.5) * ROW;
const short = (value, digits = 3) => value.toFixed(digits).replace(/^0/, '');
const signed = (value) => `${value < 0 ? '−' : '+'}${short(Math.abs(value), 4)}`;

const parts = [];
const text = (at, row, content, attributes = '') => parts.push(`<text x="${at}" y="${row}" ${attributes}>${content}</text>`);

text(20, 28, `Test loss on ${problem}, ${seeds.length} seeds`, 'class="title"');
text(700, 58, 'mean', 'class="quiet" text-anchor="end"');
text(840, 58, `against ${BASELINE}`, 'class="quiet" text-anchor="end"');
for (let tick = Math.ceil(low * 50 - 1e-9) / 50; tick <= high + 1e-9; tick += 0.02) {
  parts.push(`<path class="grid" d="M${x(tick)} ${TOP - 4}V${bottom + 4}"/>`);
  text(x(tick), bottom + 20, tick.toFixed(2), 'class="quiet" text-anchor="middle"');
}
text((LEFT + RIGHT) / 2, bottom + 40, '← lower is better', 'class="quiet" text-anchor="middle"');
for (const [i] of seeds.entries()) {
  const points = ARMS.map(({ arm }, row) => `${x(losses.get(arm)[i])},${y(row)}`);
  parts.push(`<polyline class="pair" points="${points.join(' ')}"/>`);
}
for (const [row, { arm, title, about, kind = 'other' }] of ARMS.entries()) {
  const [own, centre] = [losses.get(arm), mean(losses.get(arm))];
  text(LEFT - 18, y(row) - 2, title, `class="${kind === 'ours' ? 'name strong' : 'name'}" text-anchor="end"`);
  text(LEFT - 18, y(row) + 13, about, 'class="quiet small" text-anchor="end"');
  for (const loss of own) parts.push(`<circle class="${kind}" cx="${x(loss)}" cy="${y(row)}" r="4.2"/>`);
  parts.push(`<path class="mean" d="M${x(centre)} ${y(row) - 12}v24"/>`);
  const strong = kind === 'ours' ? 'strong' : '';
  text(700, y(row) + 4, short(centre), `class="${strong}" text-anchor="end"`);
  if (arm === BASELINE) continue;
  const { mean: difference, high: upper } = gain(arm);
  text(840, y(row) + 4, `${signed(difference)} ± ${short(upper - difference, 4)}`, `class="${strong}" text-anchor="end"`);
}

const style = `
svg { --paper: #ffffff; --ink: #1f2328; --quiet: #59636e; --grid: #e4e8ec; --pair: #c4cbd3; --other: #57606a; --ours: #cf222e; --oracle: #0969da; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #0d1117; --ink: #e6edf3; --quiet: #9198a1; --grid: #21262d; --pair: #3d444d; --other: #9da7b1; --ours: #ff7b72; --oracle: #58a6ff; }
}
text { font: 13px -apple-system, 'Segoe UI', 'Liberation Sans', Arial, sans-serif; fill: var(--ink); }
.title { font-size: 16px; font-weight: 600; } .name { font-size: 14px; } .small { font-size: 11.5px; }
.strong { font-weight: 700; } text.quiet { fill: var(--quiet); }
.grid { stroke: var(--grid); } .pair { fill: none; stroke: var(--pair); } .mean { stroke: var(--ink); stroke-width: 2; }
circle { fill-opacity: .75; stroke: var(--paper); stroke-width: .8; }
.other { fill: var(--other); } .ours { fill: var(--ours); } .oracle { fill: var(--oracle); }
`;
const label = `Test loss of ${ARMS.map(({ arm, title }) => `${title} ${short(mean(losses.get(arm)))}`).join(', ')}`;
writeFileSync(
  target,
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" aria-label="${label}">
<style>${style}</style>
<rect width="${WIDTH}" height="${HEIGHT}" rx="8" fill="var(--paper)"/>
${parts.join('\n')}
</svg>
`,
);
