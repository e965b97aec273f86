import { describe, expect, it } from 'vitest';
import { InputError } from '../../src/errors.js';
import { Arena } from '../../src/optim/arena.js';
import { clipByNorm, clipByValue, gradNorm } from '../../src/optim/optimizer.js';

function arenaWithGrads(dtype: 'f32' | 'f64', a: number[], b: number[]): Arena {
  const arena = new Arena(
    [
      { name: 'a', shape: [a.length] },
      { name: 'b', shape: [b.length] },
    ],
    { dtype },
  );
  arena.grad('a').set(a);
  arena.grad('b').set(b);
  return arena;
}

describe.each(['f32', 'f64'] as const)('clipping in %s', (dtype) => {
  it('by norm takes the norm over all parameters and scales all of them', () => {
    const arena = arenaWithGrads(dtype, [3, 0], [0, 4, 12]);
    expect(gradNorm(arena)).toBe(13);
    expect(clipByNorm(arena, 6.5)).toBe(13);
    // 6.5 / (13 + 1e-6), PyTorch's formula.
    const factor = 6.5 / 13.000001;
    const digits = dtype === 'f32' ? 6 : 14;
    [3, 0].forEach((g, i) => {
      expect(arena.grad('a')[i]).toBeCloseTo(g * factor, digits);
    });
    [0, 4, 12].forEach((g, i) => {
      expect(arena.grad('b')[i]).toBeCloseTo(g * factor, digits);
    });
  });

  it('by norm leaves short gradients exactly as they are', () => {
    const arena = arenaWithGrads(dtype, [0.1, 0.2], [0.3]);
    const before = arena.grads.slice();
    clipByNorm(arena, 1);
    expect(arena.grads).toEqual(before);
  });

  it('by norm returns a norm that is not finite', () => {
    expect(clipByNorm(arenaWithGrads(dtype, [Infinity], [1]), 1)).toBe(Infinity);
    expect(clipByNorm(arenaWithGrads(dtype, [Number.NaN], [1]), 1)).toBeNaN();
  });

  it('by value limits every element', () => {
    const arena = arenaWithGrads(dtype, [-7, 2.5], [3, 3.5, -3]);
    clipByValue(arena, 3);
    expect([...arena.grad('a'), ...arena.grad('b')]).toEqual([-3, 2.5, 3, 3, -3]);
  });

  it('refuses limits that are not positive', () => {
    const arena = arenaWithGrads(dtype, [1], [1]);
    expect(() => clipByNorm(arena, 0)).toThrow(InputError);
    expect(() => clipByNorm(arena, Number.NaN)).toThrow(InputError);
    expect(() => clipByValue(arena, -1)).toThrow(InputError);
  });
});

it('the norm of large f32 gradients does not overflow', () => {
  const arena = arenaWithGrads('f32', [3e30, 4e30], [0]);
  expect(gradNorm(arena) / 5e30).toBeCloseTo(1, 6);
});
