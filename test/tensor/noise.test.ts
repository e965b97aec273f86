import { describe, expect, it } from 'vitest';
import * as t from '../../src/tensor/index.js';

const size = 200_000;
const program = t.trace({ x: t.f32('N') }, ({ x }) => ({
  noise: t.add(x, t.normalNoise(x.shape)),
  again: t.add(x, t.normalNoise(x.shape)),
}));
const x: t.Value = { data: new Float32Array(size), shape: [size] };

async function draw(key: [number, number]): Promise<Record<'noise' | 'again', Float32Array>> {
  const session = await t.Session.create(t.lower(program));
  const { noise, again } = await session.run({ x }, { dropoutKey: key });
  await session.close();
  return { noise: noise.data as Float32Array, again: again.data as Float32Array };
}

const mean = (values: Float32Array): number => values.reduce((a, b) => a + b, 0) / values.length;
const correlation = (a: Float32Array, b: Float32Array): number => mean(a.map((value, i) => value * b[i]));

describe('normal noise', () => {
  it('has the moments and quantiles of the standard normal distribution', async () => {
    const { noise } = await draw([1, 2]);
    // Standard errors: 0.0022 of the mean, 0.0032 of the variance, 0.022 of the fourth moment, below 0.0012 of shares.
    expect(Math.abs(mean(noise))).toBeLessThan(0.01);
    expect(Math.abs(mean(noise.map((z) => z * z)) - 1)).toBeLessThan(0.015);
    expect(Math.abs(mean(noise.map((z) => z ** 4)) - 3)).toBeLessThan(0.1);
    // Φ(−1.96) = 0.025, Φ(−1) = 0.15866, Φ(0.6745) = 0.75
    for (const [z, share] of [
      [-1.96, 0.025],
      [-1, 0.15866],
      [0.6745, 0.75],
    ]) {
      expect(Math.abs(noise.filter((value) => value < z).length / size - share)).toBeLessThan(0.005);
    }
  });

  it('depends on the key and on the place in the program, and on nothing else', async () => {
    const [first, same, other] = [await draw([5, 6]), await draw([5, 6]), await draw([5, 7])];
    expect(same.noise.every((value, i) => value === first.noise[i])).toBe(true);
    // Standard error of a correlation of independent numbers: 0.0022.
    expect(Math.abs(correlation(first.noise, other.noise))).toBeLessThan(0.01);
    expect(Math.abs(correlation(first.noise, first.again))).toBeLessThan(0.01);
  });

  it('needs a key', async () => {
    const session = await t.Session.create(t.lower(program));
    await expect(session.run({ x })).rejects.toThrow('a run needs a dropoutKey');
    await session.close();
  });
});
