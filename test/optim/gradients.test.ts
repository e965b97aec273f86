import { expect, test } from 'vitest';
import { linear } from '../../src/nn/index.js';
import { Gradients, Training } from '../../src/optim/index.js';
import { Random } from '../../src/random.js';
import { dropout, f32, type Parameters, square, sub, sum, type Tensor, tanh } from '../../src/tensor/index.js';

const inputs = { x: f32('B', 3), y: f32('B', 1) };
const model =
  (rate: number) =>
  (p: Parameters, { x, y }: { x: Tensor; y: Tensor }) => {
    const hidden = dropout(tanh(linear(p.under('below'), x, 5)), rate);
    return { loss: sum(square(sub(linear(p.under('above'), hidden, 1), y))) };
  };
const feeds = {
  x: { data: Float32Array.of(0.5, -1, 2, 1, 0.3, -0.7), shape: [2, 3] },
  y: { data: Float32Array.of(1, -2), shape: [2, 1] },
};

async function create() {
  const random = new Random(3);
  const training = await Training.create({ model: model(0.5), inputs, random, optimizer: { name: 'adam' } });
  const gradients = await Gradients.create({ model: model(0), inputs, arena: training.arena });
  return { training, gradients };
}

test('gradients are those of finite differences, without dropout', async () => {
  const { training, gradients } = await create();
  const { arena } = training;
  const found = new Float32Array(arena.length);
  await gradients.write(feeds, found);
  const shift = new Float32Array(arena.length);
  for (const name of arena.names) {
    const [part, own] = [arena.view(shift, name), arena.view(found, name)];
    for (const i of part.keys()) {
      part[i] = 1e-2;
      const out = new Float32Array(arena.length);
      const ahead = await arena.shifted(shift, 1, () => gradients.write(feeds, out));
      const behind = await arena.shifted(shift, -1, () => gradients.write(feeds, out));
      part[i] = 0;
      expect(own[i]).toBeCloseTo((ahead - behind) / 2e-2, 1);
    }
  }
  await Promise.all([training.close(), gradients.close()]);
});

test('looking at gradients or shifting the parameters leaves the training as it was', async () => {
  const [one, two] = [await create(), await create()];
  const shift = new Float32Array(one.training.arena.length).fill(0.1);
  for (let update = 0; update < 5; update++) {
    const out = new Float32Array(shift.length);
    await one.gradients.write(feeds, out);
    await one.training.arena.shifted(shift, 1, () => one.gradients.write(feeds, out));
    await one.training.step(feeds, 0.01);
    await two.training.step(feeds, 0.01);
  }
  expect(one.training.arena.values).toEqual(two.training.arena.values);
  expect(one.training.state()).toEqual(two.training.state());
  for (const { training, gradients } of [one, two]) await Promise.all([training.close(), gradients.close()]);
});

test('a training gives the gradients of its model without dropout, by several workers and of several batches', async () => {
  const { training: alone, gradients } = await create();
  const config = { model: model(0.5), inputs, random: new Random(3), optimizer: { name: 'adam' } } as const;
  const shared = await Training.create({ ...config, workers: 2 });
  const expected = new Float32Array(alone.arena.length);
  await gradients.write(feeds, expected);
  for (const training of [alone, shared]) {
    const before = { state: structuredClone(training.state()), values: training.arena.values.slice() };
    const [one, twice] = [new Float32Array(expected.length), new Float32Array(expected.length)];
    await training.gradient(feeds, one);
    await training.gradient([feeds, feeds], twice);
    for (const [i, value] of expected.entries()) {
      expect(one[i]).toBeCloseTo(value, 5);
      expect(twice[i]).toBeCloseTo(2 * value, 5);
    }
    expect({ state: training.state(), values: training.arena.values }).toEqual(before);
  }
  await Promise.all([alone.close(), shared.close(), gradients.close()]);
});

test('parameters come back when what was done with others throws', async () => {
  const { training, gradients } = await create();
  const before = training.arena.values.slice();
  const fails = training.arena.shifted(new Float32Array(before.length).fill(1), 1, async () => {
    throw new Error('no');
  });
  await expect(fails).rejects.toThrow('no');
  expect(training.arena.values).toEqual(before);
  await Promise.all([training.close(), gradients.close()]);
});

test('the direction of Adam divides by the root of its second moments, with their mean as a floor', async () => {
  const { training, gradients } = await create();
  const { arena } = training;
  const gradient = Float32Array.from({ length: arena.length }, (_, i) => i + 1);
  const out = new Float32Array(arena.length);
  training.direction(gradient, out);
  expect(out).toEqual(gradient); // nothing is known before the first update
  arena.slot(1).fill(0);
  // √v is 3 at one parameter of 5 + 15 + 1 + 5 = 26 and 0 elsewhere: the floor is 3/26.
  arena.slot(1, arena.names[0])[0] = 9;
  const length = training.direction(gradient, out);
  expect(length / Math.hypot(...out)).toBeCloseTo(1, 6);
  expect(out[0]).toBeCloseTo(1 / (3 + 3 / 26), 5);
  expect(out[1]).toBeCloseTo(2 / (3 / 26), 3);
  await Promise.all([training.close(), gradients.close()]);
});

test('a model with dropout is refused', async () => {
  const { training, gradients } = await create();
  const made = Gradients.create({ model: model(0.5), inputs, arena: training.arena });
  await expect(made).rejects.toThrow('gradients in evaluation mode need a model without dropout');
  await Promise.all([training.close(), gradients.close()]);
});
