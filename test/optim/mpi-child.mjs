// Trains small models, as one of the ranks of an MPI job or with workers in one process, and prints a hash of the
// parameters of each. Run by mpirun, or with the number of workers.
import { createHash } from 'node:crypto';
import * as nn from '../../dist/nn/index.js';
import { Arena, Inference, Training } from '../../dist/optim/index.js';
import { GradientExchange } from '../../dist/optim/shards.js';
import { Random } from '../../dist/random.js';
import { launch, Ranks } from '../../dist/ranks.js';
import * as t from '../../dist/tensor/index.js';

const job = launch();
const ranks = job === undefined ? undefined : await Ranks.open(job);
const workers = Number(process.argv[2] ?? 1);

const [VOCABULARY, WIDTH, TIME] = [11, 8, 5];
const CASES = {
  // Odd batches, and with the last one fewer samples than ranks.
  gru: { sizes: [[37], [20], [1], [2]], ...gru() },
  // Batches whose gradients are accumulated; not every rank has a shard of each.
  transformer: { sizes: [[7], [13, 2, 8], [1, 1]], ...transformer() },
};

const found = {};
for (const [name, { model, inputs, batch, sizes }] of Object.entries(CASES)) {
  const optimizer = { name: 'adam' };
  const config = { model, inputs, random: new Random(name), optimizer, clip: { norm: 0.5 } };
  const training = await Training.create({ ...config, workers, ranks });
  const random = new Random('data');
  const losses = [];
  for (const list of [...sizes, ...sizes]) {
    const { loss, outputs } = await training.step(
      list.map((size) => batch(random, size)),
      0.01,
    );
    losses.push(loss, ...outputs.losses.data);
  }
  const inference = await Inference.create({ model: evaluation(model), inputs, arena: training.arena, ranks });
  const { losses: evaluated } = await inference.run(batch(random, 70));
  found[name] = { hash: hashOf(training.arena.values), losses, evaluated: hashOf(evaluated.data) };
  await inference.close();
  await training.close();
}

if (ranks === undefined) {
  console.log(JSON.stringify({ found }));
} else {
  const all = ranks.share(found);
  const shared = ranks
    .share({ rank: ranks.rank, data: Float32Array.of(ranks.rank) })
    .map(({ rank, data }) => [rank, ...data]);
  const sums = ['f32', 'f64'].flatMap((dtype) => [1 << 22, 16].map((maxSlice) => sumOfRanks(dtype, maxSlice)));
  if (ranks.rank === 0) console.log(JSON.stringify({ found, all, shared, sums }));
  ranks.close();
}

/** Elements of the exchanged gradients that are wrong. In f32, 2²⁴ + 1 is 2²⁴: the order of the summands shows. */
function sumOfRanks(dtype, maxSlice) {
  const arena = new Arena([{ name: 'w', shape: [203] }], { dtype });
  const summand = (rank, i) => (i % 3 === 0 ? [2 ** 24, 1, -(2 ** 24)][rank % 3] : i * (rank + 1));
  const round = dtype === 'f32' ? Math.fround : (x) => x;
  arena.grad('w').forEach((_, i, grads) => {
    grads[i] = summand(ranks.rank, i);
  });
  new GradientExchange(ranks, arena, maxSlice).sum(ranks.size);
  const expected = (i) => Array.from({ length: ranks.size }, (_, r) => summand(r, i)).reduce((a, b) => round(a + b));
  return arena.grad('w').filter((sum, i) => sum !== expected(i)).length;
}

function gru() {
  const inputs = { x: t.f32(4, 'B', 3), y: t.f32('B') };
  return {
    inputs,
    model: (p, { x, y }, dropout = 0.3) => {
      const { last } = nn.gru(p.under('gru'), x, { hidden: 6, layers: 2, dropout });
      const losses = t.square(t.sub(t.squeeze(nn.linear(p.under('out'), last.at(-1), 1), 1), y));
      return { loss: t.sum(losses), losses };
    },
    batch: (random, size) => ({ x: normal(random, 4, size, 3), y: normal(random, size) }),
  };
}

function transformer() {
  return {
    inputs: { ids: t.i64('T', 'B'), targets: t.i64('T', 'B') },
    model: (p, { ids, targets }, dropout = 0.1) => {
      const [time, batch] = ids.shape;
      const bias = t.attentionBias(time, time, { causal: true });
      let x = nn.embedding(p.under('embedding'), ids, VOCABULARY, WIDTH);
      for (let l = 0; l < 2; l++) x = nn.encoderLayer(p.under(l), x, bias, { heads: 2, ffn: 12, dropout });
      const rows = t.multiplyDims(time, batch);
      const weight = p.get('output.weight', [VOCABULARY, WIDTH], nn.xavierUniform());
      const tokens = t.linearCrossEntropy(t.reshape(x, [rows, WIDTH]), weight, t.reshape(targets, [rows]));
      const losses = t.sum(t.reshape(tokens, [time, batch]), { axes: [0] });
      return { loss: t.sum(losses), losses };
    },
    batch: (random, size) => ({ ids: ids(random, size), targets: ids(random, size) }),
  };
}

/** The losses of the samples alone, without dropout. */
function evaluation(model) {
  return (p, inputs) => ({ losses: model(p, inputs, 0).losses });
}

function normal(random, ...shape) {
  const data = new Float32Array(shape.reduce((a, b) => a * b, 1));
  random.fillNormal(data, 0, 1);
  return { data, shape };
}

function ids(random, size) {
  const data = BigInt64Array.from({ length: TIME * size }, () => BigInt(random.int(VOCABULARY)));
  return { data, shape: [TIME, size] };
}

function hashOf({ buffer, byteOffset, byteLength }) {
  return createHash('sha256')
    .update(new Uint8Array(buffer, byteOffset, byteLength))
    .digest('hex');
}
