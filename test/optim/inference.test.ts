import { expect, it } from 'vitest';
import { mlp } from '../../src/nn/index.js';
import { Arena, Inference, traceModel } from '../../src/optim/index.js';
import { Random } from '../../src/random.js';
import { f32, type Parameters, type Tensor, type Value } from '../../src/tensor/index.js';

const inputs = { x: f32('B', 3) };
const model = (p: Parameters, { x }: { x: Tensor }) => ({ y: mlp(p, x, { hidden: [8], out: 2 }) });

function newArena(): Arena {
  const arena = new Arena(traceModel(model, inputs).parameters);
  new Random(3).fillNormal(arena.values as Float32Array, 0, 1);
  return arena;
}

/** Batch i has i % 4 + 1 samples. */
function batch(i: number): { x: Value } {
  const data = new Float32Array(3 * ((i % 4) + 1));
  new Random(i).fillNormal(data, 0, 1);
  return { x: { data, shape: [data.length / 3, 3] } };
}

it('many runs on all cores give the bits of one run after the other, with the parameters as they are', async () => {
  const arena = newArena();
  const alone = await Inference.create({ model, inputs, arena });
  const together = await Inference.create({ model, inputs, arena, workers: 2 });
  try {
    for (const shift of [0, 0.5]) {
      for (let i = 0; i < arena.values.length; i++) arena.values[i] += shift;
      // Until the other thread has had its share: it needs a moment to start.
      for (let round = 0; round < 2; round++) {
        const found = new Map<number, ArrayLike<unknown>>();
        await together.runMany(400, batch, ({ y }, i) => found.set(i, y.data));
        expect(found.size).toBe(400);
        for (let i = 0; i < 400; i += 7) expect(found.get(i)).toEqual((await alone.run(batch(i))).y.data);
      }
    }
  } finally {
    await alone.close();
    await together.close();
  }
});

it('a run among many that fails is the error of all', async () => {
  const together = await Inference.create({ model, inputs, arena: newArena(), workers: 2 });
  const wrong = { x: { data: new Float32Array(4), shape: [1, 4] } };
  try {
    const runs = together.runMany(
      300,
      (i) => (i === 250 ? wrong : batch(i)),
      () => {},
    );
    await expect(runs).rejects.toThrow(/expected f32\[B, 3\], got f32\[1, 4\]/);
  } finally {
    await together.close();
  }
});

it('both sides of a shift give the bits of a run with the shifted parameters, which stay as they are', async () => {
  const arena = newArena();
  const alone = await Inference.create({ model, inputs, arena });
  const together = await Inference.create({ model, inputs, arena, workers: 2 });
  const shift = new Float32Array(arena.length);
  new Random(4).fillNormal(shift, 0, 0.1);
  const before = arena.values.slice();
  try {
    const expected = [];
    for (const factor of [1, -1]) expected.push(await arena.shifted(shift, factor, () => alone.run(batch(3))));
    expect(expected[0].y.data).not.toEqual(expected[1].y.data);
    expect(await alone.runAround(batch(3), shift)).toEqual(expected);
    // The other thread takes part as soon as it has started.
    const { helpers } = together as unknown as { helpers: { areReady: boolean } };
    for (let waited = 0; !helpers.areReady; waited++) {
      expect(waited).toBeLessThan(500);
      expect(await together.runAround(batch(3), shift)).toEqual(expected);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    expect(await together.runAround(batch(3), shift)).toEqual(expected);
    expect(arena.values).toEqual(before);
    // Neither it nor this one keeps the shifted parameters.
    expect(await together.run(batch(3))).toEqual(await alone.run(batch(3)));
  } finally {
    await alone.close();
    await together.close();
  }
});
