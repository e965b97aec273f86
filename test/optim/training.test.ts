import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { linear, mlp } from '../../src/nn/index.js';
import { DivergedError, type Model, Training, type TrainingConfig } from '../../src/optim/index.js';
import { Random } from '../../src/random.js';
import * as t from '../../src/tensor/index.js';
import { temporaryFolder } from '../run/temporary.js';

const inputs = { x: t.f32('B', 3), y: t.f32('B') };
const model: Model<typeof inputs> = (p, { x, y }) => {
  const out = t.squeeze(mlp(p, x, { hidden: [8], out: 1, activation: t.tanh }), 1);
  const losses = t.square(t.sub(out, y));
  return { loss: t.sum(losses), losses };
};
type Config = Partial<TrainingConfig<typeof inputs>>;
const create = (options: Config = {}): Promise<Training> =>
  Training.create({ model, inputs, random: new Random(3), optimizer: { name: 'sgd' }, ...options });

function batch(size: number, seed = 1): Record<string, t.Value> {
  const random = new Random(seed);
  const data = (n: number): Float32Array => Float32Array.from({ length: n }, () => random.normal());
  return { x: { data: data(size * 3), shape: [size, 3] }, y: { data: data(size), shape: [size] } };
}

function difference(a: Training, b: Training): number {
  return Array.from(a.arena.values).reduce((max, value, i) => Math.max(max, Math.abs(value - b.arena.values[i])), 0);
}

describe('a training step', () => {
  it('descends: the loss of a small regression falls by a factor of ten', async () => {
    const training = await create({ optimizer: { name: 'adam' } });
    const data = batch(32);
    const first = (await training.step(data, 0.02)).loss;
    let last = first;
    for (let i = 0; i < 300; i++) last = (await training.step(data, 0.02)).loss;
    expect(last).toBeLessThan(first / 10);
    await training.close();
  });

  it('is plain gradient descent with sgd: θ ← θ − η·2Σ(θx − y)x', async () => {
    const training = await Training.create({
      model: (p, { x, y }) => ({ loss: t.sum(t.square(t.sub(t.squeeze(linear(p, x, 1, { bias: false }), 1), y))) }),
      inputs,
      random: new Random(1),
      optimizer: { name: 'sgd' },
    });
    training.arena.value('weight').set([1, 0, -1]);
    // residuals: 1·1 − 1·3 − 2 = −4 and 0 − 1·1 − 0 = −1
    await training.step(
      { x: { data: Float32Array.of(1, 2, 3, 0, 5, 1), shape: [2, 3] }, y: { data: Float32Array.of(2, 0), shape: [2] } },
      0.1,
    );
    // gradient 2·(−4·[1,2,3] − 1·[0,5,1]) = [−8, −26, −26]
    expect([...training.arena.value('weight')].map((v) => Math.round(v * 1e5) / 1e5)).toEqual([1.8, 2.6, 1.6]);
    await training.close();
  });

  it('returns the outputs of every sample', async () => {
    const training = await create();
    const { loss, outputs } = await training.step(batch(5), 0);
    expect(outputs.losses.shape).toEqual([5]);
    const total = (outputs.losses.data as Float32Array).reduce((a, b) => a + b, 0);
    expect(total).toBeCloseTo(loss, 4);
    await training.close();
  });

  it('accumulates batches: two halves in one step equal the whole', async () => {
    const [whole, halves] = [await create(), await create()];
    const { x, y } = batch(10);
    const half = (start: number): Record<string, t.Value> => ({
      x: { data: x.data.slice(start * 3, (start + 5) * 3) as Float32Array, shape: [5, 3] },
      y: { data: y.data.slice(start, start + 5) as Float32Array, shape: [5] },
    });
    const one = await whole.step({ x, y }, 0.01);
    const two = await halves.step([half(0), half(5)], 0.01);
    expect(two.loss).toBeCloseTo(one.loss, 4);
    expect(difference(whole, halves)).toBeLessThan(1e-6);
    await Promise.all([whole.close(), halves.close()]);
  });

  it('clips by norm and reports the norm before', async () => {
    const [free, clipped] = [await create(), await create({ clip: { norm: 0.5 } })];
    const before = clipped.arena.values.slice();
    const { gradNorm } = await free.step(batch(10), 1);
    expect((await clipped.step(batch(10), 1)).gradNorm).toBeCloseTo(gradNorm, 6);
    const moved = Math.sqrt(Array.from(clipped.arena.values).reduce((s, v, i) => s + (v - before[i]) ** 2, 0));
    expect(gradNorm).toBeGreaterThan(0.5);
    expect(moved).toBeCloseTo(0.5, 4);
    await Promise.all([free.close(), clipped.close()]);
  });
});

describe('data-parallel workers', () => {
  it('and accumulated batches take no room in the arena, which has 4 GiB at most', async () => {
    // Values, gradients and Adam's two moments.
    const two = await create({ workers: 2, optimizer: { name: 'adam' } });
    await two.step([batch(4), batch(4)], 0.01);
    expect(two.arena.slots).toBe(2);
    await two.close();
  });

  it('give the same step as one, up to rounding, and the outputs in order', async () => {
    const [one, three] = [await create(), await create({ workers: 3 })];
    const data = batch(10);
    const [a, b] = [await one.step(data, 0.01), await three.step(data, 0.01)];
    expect(b.loss).toBeCloseTo(a.loss, 4);
    expect(difference(one, three)).toBeLessThan(1e-6);
    expect(b.outputs.losses.shape).toEqual([10]);
    (a.outputs.losses.data as Float32Array).forEach((value, i) => {
      expect(b.outputs.losses.data[i] as number).toBeCloseTo(value, 5);
    });
    await Promise.all([one.close(), three.close()]);
  });

  it('let a process end that forgets to close them', { timeout: 60_000 }, () => {
    const built = new URL('../../dist/index.js', import.meta.url).href;
    const script = `const { Random, nn, optim, tensor: t } = await import(${JSON.stringify(built)});
      const model = (p, { x }) => ({ loss: t.sum(nn.linear(p, x, 1)) });
      const inputs = { x: t.f32('B', 3) };
      await optim.Training.create({ model, inputs, optimizer: { name: 'sgd' }, random: new Random(1), workers: 2 });
      console.log('made');`;
    const file = join(temporaryFolder(), 'forgetful.mjs');
    writeFileSync(file, script);
    const { stdout, signal } = spawnSync(process.execPath, [file], { encoding: 'utf8', timeout: 30_000 });
    expect({ stdout, signal }).toEqual({ stdout: 'made\n', signal: null });
  });

  it('take batches smaller than their number', async () => {
    const three = await create({ workers: 3 });
    expect(Number.isFinite((await three.step(batch(2), 0.01)).loss)).toBe(true);
    await three.close();
  });

  it('do not depend on timing: two runs are bit-identical', async () => {
    const finals = [];
    for (let run = 0; run < 2; run++) {
      const training = await create({ workers: 2, optimizer: { name: 'adam' } });
      for (let i = 0; i < 10; i++) await training.step(batch(9, i), 0.01);
      finals.push(Buffer.from(training.arena.values.slice().buffer).toString('hex'));
      await training.close();
    }
    expect(finals[0]).toBe(finals[1]);
  });
});

describe('a loss that is not finite', () => {
  it('stops training and names the update, the operation and its line', async () => {
    const training = await Training.create({
      model: (p, { x, y }) => ({ loss: t.sum(t.log(t.add(t.squeeze(linear(p, x, 1), 1), y))) }),
      inputs,
      random: new Random(1),
      optimizer: { name: 'sgd' },
    });
    const data = batch(4);
    const wrong = { ...data, y: { data: new Float32Array(4).fill(-100), shape: [4] } };
    await training.step({ ...data, y: { data: new Float32Array(4).fill(100), shape: [4] } }, 0.01);
    const failure = training.step(wrong, 0.01);
    await expect(failure).rejects.toThrow(DivergedError);
    await expect(failure).rejects.toThrow(
      /^the loss is NaN at update 2: the first operation with a value that is not finite is log \(NaN\) at .*training\.test\.ts:\d+:\d+$/,
    );
    await training.close();
  });
});

describe('saving in the middle of training with dropout', () => {
  const script = fileURLToPath(new URL('./resume-child.mjs', import.meta.url));
  const run = (...args: string[]): string =>
    execFileSync(process.execPath, [script, ...args], { encoding: 'utf8' }).trim();
  it.each(['1', '2'])('and going on in a new process ends bit-identically, with %s worker(s)', (workers) => {
    const whole = run('whole', workers);
    const file = run('first-half', workers);
    expect(run('second-half', workers, file)).toBe(whole);
  });
});
