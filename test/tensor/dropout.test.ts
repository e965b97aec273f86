import { describe, expect, it } from 'vitest';
import * as t from '../../src/tensor/index.js';

const size = 40_000;
const x: t.Value = { data: new Float32Array(size).fill(1), shape: [size] };
const program = t.trace({ x: t.f32('N') }, ({ x: input }) => {
  const y = t.dropout(input, 0.3);
  return { y, again: t.dropout(input, 0.3), gradient: t.grad(t.sum(t.mul(y, 3)), [input])[0] };
});

async function masks(key: [number, number]): Promise<Record<'y' | 'again' | 'gradient', Float32Array>> {
  const session = await t.Session.create(t.lower(program));
  const { y, again, gradient } = await session.run({ x }, { dropoutKey: key });
  await session.close();
  const floats = (value: t.Value): Float32Array => value.data as Float32Array;
  return { y: floats(y), again: floats(again), gradient: floats(gradient) };
}

const agreement = (a: Float32Array, b: Float32Array): number =>
  a.filter((value, i) => value === b[i]).length / a.length;

describe('dropout', () => {
  it('keeps 70 % of the elements, scaled by 1/0.7', async () => {
    const { y } = await masks([1, 2]);
    expect(new Set(y)).toEqual(new Set([0, Math.fround(1 / 0.7)]));
    const kept = y.filter((value) => value > 0).length / size;
    // standard deviation √(0.3·0.7/40,000) = 0.0023
    expect(Math.abs(kept - 0.7)).toBeLessThan(0.01);
  });

  it('passes the gradient where it kept the value', async () => {
    const { y, gradient } = await masks([1, 2]);
    y.forEach((value, i) => {
      if (gradient[i] !== Math.fround(3 * value)) expect(gradient[i]).toBeCloseTo(3 * value, 5);
    });
  });

  it('depends on the key and on nothing else', async () => {
    const [first, same, other] = [await masks([5, 6]), await masks([5, 6]), await masks([5, 7])];
    expect(same.y).toEqual(first.y);
    // independent masks agree with probability 0.7² + 0.3² = 0.58
    expect(agreement(first.y, other.y)).toBeCloseTo(0.58, 1);
  });

  it('differs between places of one program', async () => {
    const { y, again } = await masks([5, 6]);
    expect(agreement(y, again)).toBeCloseTo(0.58, 1);
  });

  it('needs a key and a probability below 1', async () => {
    const session = await t.Session.create(t.lower(program));
    await expect(session.run({ x })).rejects.toThrow('a run needs a dropoutKey');
    await session.close();
    expect(() => t.dropout(t.input('x', t.f32(2)), 1)).toThrow('the probability must lie in [0, 1), got 1');
  });
});
