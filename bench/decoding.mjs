/**
 * Wait-9 translation, incremental against encoding and decoding again, by processor time: both in one process and in
 * turn, for machines that others use, where the clock says little.
 *
 *     npm run build && node bench/decoding.mjs [--length 28] [--deviation 7] [--repeats 5]
 */
import { parseArgs } from 'node:util';
import { setup } from './ours/translate-decoding.mjs';

const { values } = parseArgs({
  options: {
    length: { type: 'string', default: '28' },
    deviation: { type: 'string', default: '7' },
    repeats: { type: 'string', default: '5' },
  },
});
const [length, deviation, repeats] = [values.length, values.deviation, values.repeats].map(Number);
const sides = [];
for (const again of [false, true]) sides.push(await setup({ workers: 1, again, length, deviation }));
const rounds = [];
// The first round is not counted.
for (let round = 0; round <= repeats; round++) {
  const times = [];
  for (const { step } of sides) {
    const before = process.cpuUsage();
    await step();
    const { user, system } = process.cpuUsage(before);
    times.push((user + system) / 1000);
  }
  if (round > 0) rounds.push(times);
}
for (const { close } of sides) await close();
const best = [0, 1].map((side) => Math.min(...rounds.map((times) => times[side])));
const ratios = rounds.map(([ours, again]) => again / ours).sort((a, b) => a - b);
console.log(
  `${length} ± ${deviation} tokens: ${best[0].toFixed(0)} ms against ${best[1].toFixed(0)} ms of processor time, ` +
    `${(best[1] / best[0]).toFixed(2)} × (best), ${ratios[Math.floor(ratios.length / 2)].toFixed(2)} × (median of ${repeats})`,
);
