/**
 * Where the time of a complete run goes: `tcts train` on CSI300's shapes with the plain GRU, from the start of the process
 * to the written result, in a folder that is removed.
 *
 *     npm run build && node bench/whole-run.mjs [QLIB_FOLDER] [--updates N] [--episodes N]
 *
 * With qlib's folder the run is that of configs/csi300.yaml, else a synthetic market of about its size. Processor time says
 * more than time on a busy machine; it is that of all threads.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { trainRun } from '../dist/cli/training-run.js';
import { ForecastProblem } from '../dist/forecast/problem.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { updates: { type: 'string', default: '50' }, episodes: { type: 'string', default: '3' } },
});
const [folder] = positionals;
const extent = { episodes: Number(values.episodes), steps: Number(values.updates) };

const csi300 = fileURLToPath(new URL('../configs/csi300.yaml', import.meta.url));
const madeUp = {
  problem: {
    kind: 'forecast',
    data: { format: 'synthetic', stocks: 300, days: 3200 },
    split: {
      train: ['2015-04-01', '2020-12-31'],
      validation: ['2021-01-01', '2022-12-31'],
      test: ['2023-01-01', '2027-03-31'],
    },
    validation: { everyDays: 5 },
  },
};
const set = [
  ...Object.entries(extent).map(([key, value]) => `training.${key}=${value}`),
  'strategy={name: fixed}',
  'threads=1',
  'workers=2',
  ...(folder === undefined ? [] : [`problem.data.path=${folder}`]),
];

/** Wall and processor seconds of each phase; `updates` and `validation` are within the run. */
const phases = new Map();
const now = () => {
  const { user, system } = process.cpuUsage();
  return { wall: performance.now() / 1000, cpu: (user + system) / 1e6 };
};
const add = (phase, from, to) => {
  const sum = phases.get(phase) ?? { wall: 0, cpu: 0, count: 0, first: to.cpu - from.cpu };
  const { wall, cpu, count } = sum;
  phases.set(phase, { ...sum, wall: wall + to.wall - from.wall, cpu: cpu + to.cpu - from.cpu, count: count + 1 });
};
let last = { wall: 0, cpu: 0 };
for (const [method, phase] of [
  ['train', 'updates'],
  ['validate', 'validation'],
  ['test', 'test part'],
]) {
  const own = ForecastProblem.prototype[method];
  ForecastProblem.prototype[method] = async function measured(...given) {
    const before = now();
    if (phase === 'validation' && !phases.has('updates'))
      add('before the first update, validation apart', last, before);
    const result = await own.apply(this, given);
    last = now();
    add(phase, before, last);
    return result;
  };
}

const home = mkdtempSync(join(tmpdir(), 'tcts-whole-run-'));
try {
  await trainRun(folder === undefined ? madeUp : csi300, { folder: join(home, 'run'), set, quiet: true });
  const end = now();
  const updates = extent.episodes * extent.steps;
  console.log(`a run of ${updates} updates and ${extent.episodes + 1} validations: ${figures(end)}`);
  for (const [phase, sums] of phases) {
    console.log(`  ${phase}: ${figures(sums)}${sums.count > 1 ? `, ${sums.count} ×` : ''}`);
  }
  // Without the first of each, in which sessions start, so that the share does not depend on how short this run is.
  const [update, validation] = ['updates', 'validation'].map((phase) => {
    const { cpu, first, count } = phases.get(phase);
    return (cpu - first) / (count - 1);
  });
  const share = validation / (extent.steps * update + validation);
  console.log(`  validation every ${extent.steps} updates is ${(100 * share).toFixed(1)} % of their processor time`);
} finally {
  rmSync(home, { recursive: true });
}

function figures({ wall, cpu }) {
  return `${wall.toFixed(2)} s, ${cpu.toFixed(2)} s of processor time`;
}
