// How much faster two processes train than one, and two workers of one process: steps of all three in turn, so that
// whatever else happens on the machine happens to all of them.
//
//   npm run build && node bench/mpi.mjs [--repeats N]
import { parseArgs } from 'node:util';
import { machine } from './environment.mjs';
import { startSide } from './side.mjs';

const CASES = [
  { what: 'GRU 2×32, batch 800', module: './ours/gru.mjs', samples: 800, target: 1.7 },
  { what: 'the same in Algorithm 1', module: './ours/scheduled.mjs', samples: 800, target: 1.7 },
  {
    what: 'Transformer 3+3, 64 pairs',
    module: './ours/encoder-decoder.mjs',
    options: { layers: 3 },
    samples: 64,
    target: 1.6,
  },
];

const WAYS = {
  '1 process': { options: { workers: 1 } },
  '2 workers': { options: { workers: 2 } },
  '2 processes': { options: { workers: 1 }, processes: 2 },
};

const WARM_UP = 3;
const { values } = parseArgs({ options: { repeats: { type: 'string', default: '15' } } });
const repeats = Number(values.repeats);
const facts = machine();
if (facts.load > 0.5) console.log(`The machine is not idle (load ${facts.load}): the ratios are unsure.`);

for (const { what, module, options, samples, target } of CASES) {
  const milliseconds = await measure(module, options);
  const alone = milliseconds['1 process'];
  console.log(`\n${what}, one thread each, step with Adam`);
  for (const [way, times] of Object.entries(milliseconds)) {
    const perSecond = samples / (best(times) / 1000);
    const ratios = `${(best(alone) / best(times)).toFixed(2)} × (best), ${(median(alone) / median(times)).toFixed(2)} × (median)`;
    const wanted = way === '2 processes' ? `, target ${target} ×` : '';
    console.log(`  ${way.padEnd(12)} ${perSecond.toFixed(0).padStart(7)} samples/s  ${ratios}${wanted}`);
  }
}
console.log(
  `\n${repeats} steps each, in turn; ${Object.entries(facts)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ')}`,
);

/** Milliseconds of the steps of each way. */
async function measure(module, options) {
  const sides = {};
  const times = Object.fromEntries(Object.keys(WAYS).map((way) => [way, []]));
  try {
    for (const [way, { options: own, processes }] of Object.entries(WAYS)) {
      sides[way] = await startSide({ module, options: { threads: 1, adam: true, ...options, ...own }, processes });
    }
    for (let round = -WARM_UP; round < repeats; round++) {
      for (const [way, side] of Object.entries(sides)) {
        const { milliseconds } = await side.run();
        if (round >= 0) times[way].push(milliseconds);
      }
    }
  } finally {
    await Promise.all(Object.values(sides).map((side) => side.quit()));
  }
  return times;
}

function best(times) {
  return Math.min(...times);
}

function median(times) {
  const sorted = [...times].sort((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}
