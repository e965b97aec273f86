// What the learned scheduler costs beside the model that it schedules: policy forward, sampling, buffer, and the share of
// the update at the end of the episode, in turn with real training steps of the model, so that both meet the same machine.
// The features are given: they are in the buffer's pages since the first episode.
//
//   npm run build && node bench/scheduler.mjs
import { Random } from '../dist/random.js';
import { Learned, STABLE } from '../dist/schedule/index.js';

const CASES = [
  {
    name: 'GRU 2×32, batch 800; K = 10, 5·60 + 21 features, 32 ReLU',
    model: './ours/gru.mjs',
    options: { workers: 2, threads: 1, adam: true },
    scheduler: { hidden: [32], activation: 'relu' },
    B: 800,
    K: 10,
    F: 321,
    S: 50,
  },
  {
    name: 'Transformer 3×256, 64×32 tokens; K = 13, 7 features, 256 tanh',
    model: './ours/transformer.mjs',
    options: { workers: 1, threads: 2, adam: true },
    scheduler: { hidden: [256], activation: 'tanh' },
    B: 64,
    K: 13,
    F: 7,
    S: 10,
  },
];

for (const { name, model, options, scheduler, B, K, F, S } of CASES) {
  const random = new Random(1);
  const given = new Float32Array(B * F);
  random.fillNormal(given, 0, 1);
  let written = false;
  const problem = {
    tasks: Array.from({ length: K }, (_, i) => ({ name: `T${i}`, number: i + 1 })),
    main: 0,
    features: [{ name: 'all', width: F }],
    sizeOf: () => B,
    writeFeatures: (_batch, _status, _groups, out) => written || out.set(given),
  };
  const strategy = await Learned.create(problem, random, { ...STABLE, ...scheduler }, 2);
  const trained = await (await import(model)).setup(options);
  const status = { update: 1, updates: S, performance: 0, meanPerformance: 0 };
  const times = { choose: [], update: [], step: [] };
  const timed = async (what, work) => {
    const start = performance.now();
    await work();
    times[what].push(performance.now() - start);
  };
  for (let episode = 0; episode < 6; episode++) {
    for (let s = 0; s < S; s++) {
      await timed('choose', () => strategy.choose(undefined, status));
      await timed('step', () => trained.step());
    }
    await timed('update', () => strategy.endEpisode(random.normal(), status));
    written = true;
    // The first two episodes compile, allocate, and learn nothing yet.
    if (episode < 2) for (const list of Object.values(times)) list.length = 0;
  }
  await strategy.close();
  await trained.close();
  const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];
  const [choose, update, step] = [median(times.choose), median(times.update) / S, median(times.step)];
  const share = (100 * (choose + update)) / step;
  console.log(
    `${name}\n  choose ${choose.toFixed(3)} ms + update ${update.toFixed(3)} ms beside a step of ${step.toFixed(1)} ms: ` +
      `${share.toFixed(2)} %`,
  );
}
