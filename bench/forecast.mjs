// What forecasting costs besides the updates (those are the case `csi300` of the bench).
//
//   npm run build && node bench/forecast.mjs [QLIB_FOLDER [RUN]]
//
// With qlib's folder: reading CSI300 into a panel. With a trained run as well: the forecast of a day. Always: boosted trees
// on 440,000 rows × 300 made features.
import { readFileSync } from 'node:fs';
import { openForecaster, readPanel, samplesBetween, tableOfColumns, trainTrees } from '../dist/forecast/index.js';
import { Random } from '../dist/random.js';

const [folder, run] = process.argv.slice(2);
if (folder !== undefined) await reading(folder);
if (folder !== undefined && run !== undefined) await day(folder, run);
await trees();

async function reading(path) {
  const seconds = await timed(() => readPanel({ format: 'qlib', path, market: 'csi300', start: '2007-06-01' }));
  console.log(`reading CSI300: ${seconds.toFixed(2)} s (target 3), peak ${peak()} MB`);
}

async function day(path, folder) {
  const forecaster = await openForecaster(folder);
  const { panel } = await readPanel({ format: 'qlib', path, market: 'csi300', start: '2020-01-01' });
  const last = panel.calendar.length - 1;
  const samples = samplesBetween(panel, last, last);
  const times = [];
  for (let i = 0; i < 30; i++) times.push(1000 * (await timed(() => forecaster.predict(panel, samples))));
  await forecaster.close();
  times.sort((a, b) => a - b);
  const [best, median] = [times[0], times[15]].map((time) => time.toFixed(1));
  console.log(`a day's forecast of ${samples.length} stocks: best ${best} ms, median ${median} ms (target 20)`);
}

async function trees() {
  const [ROWS, FEATURES, ROUNDS] = [440_000, 300, 200];
  const random = new Random('trees');
  const columns = Array.from({ length: FEATURES }, () => {
    const column = new Float32Array(ROWS);
    random.fillNormal(column, 0, 1);
    return column;
  });
  const noise = new Float32Array(ROWS);
  random.fillNormal(noise, 0, 1);
  const labels = noise.map((z, row) => columns[0][row] * columns[1][row] + Math.sin(2 * columns[2][row]) + z);
  const options = { rounds: ROUNDS, numLeaves: 64, threads: 2 };
  const training = { table: tableOfColumns(columns), labels };
  const seconds = await timed(() => trainTrees({ training, options }));
  console.log(
    `boosted trees, ${ROWS} × ${FEATURES}, ${ROUNDS} rounds of 64 leaves, 2 threads: ${seconds.toFixed(1)} s (target 180), ` +
      `peak ${peak()} MB, the table of ${Math.round((ROWS * FEATURES * 4) / 1e6)} MB included`,
  );
}

async function timed(work) {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}

function peak() {
  return Math.round(Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))[1]) / 1024);
}
