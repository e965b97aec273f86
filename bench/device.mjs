/**
 * `npm run bench -- device`: what an update is made of on a device. Operations and bytes are counted on any WebGPU device,
 * a software one will do; the times of three graphics cards follow on paper.
 */

import { createNetwork } from '../dist/forecast/network.js';
import { Training } from '../dist/optim/index.js';
import { Random } from '../dist/random.js';
import { placement } from '../dist/tensor/index.js';
import { lossFeeds, lossInputs, lossModel, translationModel } from '../dist/translate/index.js';
import { MULTI30K, VOCABULARY } from './ours/translation.mjs';

/** TFLOP/s and GB/s in f32, as their makers give them. */
const CARDS = [
  { name: 'NVIDIA RTX 4090', tflops: 82.6, bandwidth: 1008 },
  { name: 'NVIDIA A100 (40 GB)', tflops: 19.5, bandwidth: 1555 },
  { name: 'Apple M2 (10 cores)', tflops: 3.6, bandwidth: 100 },
];
/** Share of both that simple kernels reach, and seconds for each operation that is sent. */
const [SHARE, DISPATCH] = [0.3, 4e-6];

function translation(keys, vocabulary, { pairs, source, target }) {
  const complete = { encoder: 'unidirectional', maxPositions: 256, ...keys };
  const model = translationModel(complete, { source: vocabulary, target: vocabulary, shared: true });
  return {
    model: lossModel(model, { smoothing: 0.1 }),
    inputs: lossInputs,
    size: pairs,
    batch(size) {
      const random = new Random('tokens');
      const ids = (length) => Int32Array.from({ length: length * size }, () => 4 + random.int(vocabulary - 4));
      const lengths = (length) => new Int32Array(size).fill(length);
      const batch = {
        size,
        source: ids(source),
        target: ids(target),
        sourceLength: source,
        targetLength: target,
        sourceLengths: lengths(source),
        targetLengths: lengths(target),
      };
      return lossFeeds(batch, lengths(3), new Float32Array(size).fill(1 / (size * target)));
    },
  };
}

function forecast({ size, window, tasks }) {
  const features = { kind: 'ohlcv', window, columns: [], rankColumns: [] };
  const model = { name: 'gru', hidden: 32, layers: 2, dropout: 0 };
  const network = createNetwork({ model, sharing: 'heads', tasks, features });
  return {
    model: network.training,
    inputs: network.trainingInputs,
    size,
    batch: (count) => ({
      x: { data: new Float32Array(window * count * 5).fill(0.1), shape: [window, count, 5] },
      labels: { data: new Float32Array(count * tasks), shape: [count, tasks] },
      weights: { data: new Float32Array(count * tasks).fill(1 / count), shape: [count, tasks] },
    }),
  };
}

const CASES = {
  toy: translation({ preset: 'tiny' }, 60, { pairs: 100, source: 9, target: 10 }),
  Multi30k: translation(MULTI30K, VOCABULARY, { pairs: 146, source: 13, target: 14 }),
  CSI300: forecast({ size: 800, window: 60, tasks: 3 }),
};

/** Counts of one update with this many samples. */
async function counted(training, feeds) {
  const totals = { onDevice: 0, shapes: 0, fallback: 0, flops: 0, bytes: 0 };
  for (const { executable, feeds: given } of await training.programs(feeds)) {
    const found = await placement(executable, given, { dropoutKey: [1, 2, 'portable'] });
    for (const key of Object.keys(totals)) totals[key] += key === 'fallback' ? found.fallback.length : found[key];
  }
  return totals;
}

/** Bytes of a batch as a device gets it, where whole numbers have four. */
const batchBytes = (feeds) => Object.values(feeds).reduce((sum, { data }) => sum + 4 * data.length, 0);

const wanted = process.argv.slice(2);
const rows = [];
for (const [name, { model, inputs, size, batch }] of Object.entries(CASES)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const random = new Random('bench');
  const optimizer = { name: 'adam', betas: [0.9, 0.98] };
  const training = await Training.create({ model, inputs, random, optimizer, device: 'webgpu' });
  // Work and bytes are linear in the number of samples: two small batches tell what a whole one costs.
  const [few, more] = [await counted(training, batch(2)), await counted(training, batch(4))];
  const whole = (key) => few[key] + ((size - 2) * (more[key] - few[key])) / 2;
  const before = training.traffic;
  await training.step(batch(4), 1e-4);
  const [up, down] = [training.traffic.up - before.up, training.traffic.down - before.down];
  await training.close();
  const overhead = up - batchBytes(batch(4));
  const all = batchBytes(batch(size));
  rows.push({
    name,
    operations: more.onDevice,
    shapes: more.shapes,
    fallback: more.fallback,
    up: (all + overhead) / all,
    batch: all,
    down: (down * size) / 4,
    gflop: whole('flops') / 1e9,
    megabytes: whole('bytes') / 1e6,
  });
  console.error(`${name} counted`);
}

const number = (value, digits = 0) => value.toLocaleString('en', { maximumFractionDigits: digits });
console.log(
  '| update | operations | on shapes | tensors on the CPU | up, × the batch | batch, kB | down, kB | GFLOP | MB moved |',
);
console.log('|---|---|---|---|---|---|---|---|---|');
for (const row of rows) {
  const { name, operations, shapes, fallback, up, batch, down, gflop, megabytes } = row;
  const cells = [operations, shapes, fallback, up.toFixed(3), number(batch / 1e3, 1), number(down / 1e3, 2)];
  console.log(`| ${[name, ...cells, number(gflop, 2), number(megabytes)].join(' | ')} |`);
}
console.log(
  `\nmilliseconds on paper: operations × ${DISPATCH * 1e6} µs + max(FLOP, bytes at ${100 * SHARE} % of the peak)\n`,
);
console.log(`| update | ${CARDS.map(({ name }) => name).join(' | ')} |`);
console.log(`|---|${CARDS.map(() => '---').join('|')}|`);
for (const { name, operations, gflop, megabytes } of rows) {
  const times = CARDS.map(({ tflops, bandwidth }) => {
    const work = Math.max(gflop / (tflops * 1e3), megabytes / (bandwidth * 1e3)) / SHARE;
    return number(1e3 * (operations * DISPATCH + work), 1);
  });
  console.log(`| ${[name, ...times].join(' | ')} |`);
}
if (rows.some(({ fallback, up, down }) => fallback > 0 || up > 1.1 || down > 64e3)) {
  console.error('a limit does not hold: no tensors on the CPU, up at most 1.1 × the batch, down at most 64 kB');
  process.exitCode = 1;
}
