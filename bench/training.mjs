/**
 * An update of the translation model against PyTorch's by processor time, one thread each and in turn, for machines that
 * others use, where the clock says little.
 *
 *     npm run build && node bench/training.mjs [--repeats 7]
 */
import { parseArgs } from 'node:util';
import { cases } from './cases.mjs';
import { findPython } from './environment.mjs';
import { startSide } from './side.mjs';

/** Updates that are measured together: the kernel counts processor time in steps of 10 ms. */
const UPDATES = 5;

const { values } = parseArgs({ options: { repeats: { type: 'string', default: '7' } } });
const python = findPython();
if (python === undefined) throw new Error('no Python with PyTorch was found (Debian: apt install python3-torch)');
const { ours, peer } = cases.find(({ name }) => name === 'translate-train');
const sides = [
  await startSide({ ...ours, options: { workers: 1, threads: 1 } }, python),
  await startSide(peer, python, { threads: 1 }),
];
const rounds = [];
// The first round is not counted.
for (let round = 0; round <= Number(values.repeats); round++) {
  const times = [];
  for (const side of sides) {
    const before = side.processorTime();
    for (let update = 0; update < UPDATES; update++) await side.run();
    times.push((side.processorTime() - before) / UPDATES);
  }
  if (round > 0) rounds.push(times);
}
for (const side of sides) await side.quit();
const best = [0, 1].map((side) => Math.min(...rounds.map((times) => times[side])));
const ratios = rounds.map(([own, torch]) => own / torch).sort((a, b) => a - b);
console.log(
  `${best[0].toFixed(0)} ms against ${best[1].toFixed(0)} ms of processor time, ${(best[0] / best[1]).toFixed(3)} (best), ` +
    `${ratios[Math.floor(ratios.length / 2)].toFixed(3)} (median of ${values.repeats})`,
);
