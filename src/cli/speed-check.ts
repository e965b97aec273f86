import { gru, linear } from '../nn/index.js';
import { Training } from '../optim/index.js';
import { Random } from '../random.js';
import { f32, lower, matmul, mul, Session, square, squeeze, sub, sum, trace } from '../tensor/index.js';

const SECONDS = 0.5;

/** GFLOP/s of 1024 × 1024 matrix products. */
export async function gemmSpeed(threads: number): Promise<number> {
  const size = 1024;
  const program = trace({ a: f32(size, size), b: f32(size, size) }, ({ a, b }) => ({ c: matmul(a, b) }));
  const session = await Session.create(lower(program), { threads });
  const matrix = { data: new Float32Array(size * size).fill(0.5), shape: [size, size] };
  const c = new Float32Array(size * size);
  const seconds = await secondsEach(() => session.run({ a: matrix, b: matrix }, { into: { c } }));
  await session.close();
  return Math.round((2 * size ** 3) / seconds / 1e9);
}

/** Samples per second of the paper's forecaster: GRU 2×32, 60 days of 5 fields, batch 800, one Adam update each. */
export async function gruSpeed(workers: number): Promise<number> {
  const [steps, batch] = [60, 800];
  const training = await Training.create({
    model: (p, { x, y }) => {
      const { last } = gru(p.under('gru'), x, { hidden: 32, layers: 2 });
      const error = sub(squeeze(linear(p.under('out'), last[1], 1), 1), y);
      return { loss: mul(sum(square(error)), 1 / batch) };
    },
    inputs: { x: f32(steps, 'B', 5), y: f32('B') },
    random: new Random('doctor'),
    optimizer: { name: 'adam' },
    workers,
  });
  const random = new Random('data');
  const normal = (...shape: number[]): { data: Float32Array; shape: number[] } => {
    const data = new Float32Array(shape.reduce((a, b) => a * b, 1));
    random.fillNormal(data, 0, 1);
    return { data, shape };
  };
  const data = { x: normal(steps, batch, 5), y: normal(batch) };
  const seconds = await secondsEach(() => training.step(data, 1e-3));
  await training.close();
  return Math.round(batch / seconds);
}

/** The shortest of the runs that fit into the time, after one to warm up. */
async function secondsEach(run: () => Promise<unknown>): Promise<number> {
  await run();
  let best = Number.POSITIVE_INFINITY;
  for (const end = performance.now() + SECONDS * 1000; performance.now() < end || best === Number.POSITIVE_INFINITY; ) {
    const start = performance.now();
    await run();
    best = Math.min(best, performance.now() - start);
  }
  return best / 1000;
}
