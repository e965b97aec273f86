// What the learned scheduler costs for each update of the model: policy forward, sampling, buffer, and its share of the
// update at the end of the episode. The features are given; only their copy into the buffer is counted. Processor time,
// of which other programs on the machine take nothing away: all of it is work of one thread.
//
//   npm run build && node bench/scheduler.mjs
import { Random } from '../dist/random.js';
import { Learned, STABLE } from '../dist/schedule/index.js';

const CASES = [
  {
    name: 'GRU: batch 800, K = 10, 5·60 + 21 features, 32 ReLU',
    B: 800,
    K: 10,
    F: 321,
    hidden: [32],
    activation: 'relu',
    S: 100,
    step: 60,
  },
  {
    name: 'Transformer: batch 64, K = 13, 7 features, 256 tanh',
    B: 64,
    K: 13,
    F: 7,
    hidden: [256],
    activation: 'tanh',
    S: 1000,
    step: 300,
  },
];

for (const { name, B, K, F, hidden, activation, S, step } of CASES) {
  const random = new Random(1);
  const given = new Float32Array(B * F);
  random.fillNormal(given, 0, 1);
  const problem = {
    tasks: Array.from({ length: K }, (_, i) => ({ name: `T${i}`, number: i + 1 })),
    main: 0,
    features: [{ name: 'all', width: F }],
    sizeOf: () => B,
    writeFeatures: (_batch, _status, _groups, out) => out.set(given),
  };
  const strategy = await Learned.create(problem, random, { ...STABLE, hidden, activation });
  const status = { update: 1, updates: S, performance: 0, meanPerformance: 0 };
  const rounds = [];
  for (let episode = 0; episode < 7; episode++) {
    const start = processorTime();
    for (let s = 0; s < S; s++) await strategy.choose(undefined, status);
    const chosen = processorTime();
    await strategy.endEpisode(random.normal(), status);
    const end = processorTime();
    // The first two episodes compile, allocate, and learn nothing yet.
    if (episode > 1) rounds.push({ choose: (chosen - start) / S, update: (end - chosen) / S });
  }
  await strategy.close();
  const median = (key) => rounds.map((round) => round[key]).sort((a, b) => a - b)[rounds.length >> 1];
  const total = median('choose') + median('update');
  const share = (100 * total) / step;
  console.log(
    `${name}\n  choose ${median('choose').toFixed(3)} ms + update ${median('update').toFixed(3)} ms = ` +
      `${total.toFixed(3)} ms a step, ${share.toFixed(2)} % of a step of ${step} ms`,
  );
}

/** Milliseconds. */
function processorTime() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
