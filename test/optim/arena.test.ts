import { describe, expect, it } from 'vitest';
import { InputError } from '../../src/errors.js';
import { Arena } from '../../src/optim/arena.js';

const parameters = [
  { name: 'weight', shape: [3, 7] },
  { name: 'bias', shape: [3] },
  { name: 'scale', shape: [] },
  { name: 'empty', shape: [0, 4] },
];

describe('an arena', () => {
  it.each(['f32', 'f64'] as const)('keeps every parameter by name, on cache lines (%s)', (dtype) => {
    const arena = new Arena(parameters, { slots: 2, dtype });
    expect(arena.names).toEqual(['weight', 'bias', 'scale', 'empty']);
    expect(arena.parameterCount).toBe(21 + 3 + 1);
    expect(arena.shape('weight')).toEqual([3, 7]);
    expect(arena.shape('scale')).toEqual([]);
    expect(arena.names.map((name) => arena.value(name).length)).toEqual([21, 3, 1, 0]);
    for (const name of arena.names) {
      for (const view of [arena.value(name), arena.grad(name), arena.slot(0, name), arena.slot(1, name)]) {
        expect(view.byteOffset % 64).toBe(0);
        expect(view).toBeInstanceOf(dtype === 'f32' ? Float32Array : Float64Array);
      }
    }
  });

  it('keeps values, gradients and slots apart', () => {
    const arena = new Arena(parameters, { slots: 2 });
    const regions = [arena.values, arena.grads, arena.slot(0), arena.slot(1)];
    regions.forEach((region, i) => {
      region.fill(i + 1);
    });
    regions.forEach((region, i) => {
      expect(region.length).toBe(arena.length);
      expect(region.every((x) => x === i + 1)).toBe(true);
    });
    arena.zeroGrads();
    expect(arena.grads.every((x) => x === 0)).toBe(true);
    expect(arena.values.every((x) => x === 1)).toBe(true);
  });

  it('has neither gradients nor optimiser arrays for frozen parameters, which come last', () => {
    const arena = new Arena([{ name: 'table', shape: [100, 16], frozen: true }, ...parameters], { slots: 2 });
    expect(arena.names).toEqual(['weight', 'bias', 'scale', 'empty', 'table']);
    expect(arena.trained).toEqual(['weight', 'bias', 'scale', 'empty']);
    // Lines of 16: two of `weight`, one each of `bias` and `scale`.
    expect(arena.length).toBe(64);
    expect([arena.grads, arena.slot(0), arena.slot(1)].map(({ length }) => length)).toEqual([64, 64, 64]);
    expect(arena.values.length).toBe(64 + 1600);
    arena.value('table').fill(7);
    expect([...arena.grads, ...arena.slot(0), ...arena.slot(1)].every((x) => x === 0)).toBe(true);
    expect(() => arena.grad('table')).toThrow('the parameter table is frozen: it has no gradient');
    expect(() => arena.slot(0, 'table')).toThrow(RangeError);
    expect(arena.grad('empty')).toHaveLength(0);
  });

  it('has one memory: a view by name and the whole array are the same numbers', () => {
    const arena = new Arena(parameters);
    arena.value('bias').set([1, 2, 3]);
    arena.grad('bias').set([4, 5, 6]);
    // The 21 elements of `weight` take two lines of 16.
    expect([...arena.values.subarray(32, 35)]).toEqual([1, 2, 3]);
    expect([...arena.grads.subarray(32, 35)]).toEqual([4, 5, 6]);
    expect(arena.value('bias').buffer).toBe(arena.grads.buffer);
  });

  it('hands the kernels the addresses of its regions', () => {
    const arena = new Arena(parameters, { slots: 1, dtype: 'f64' });
    arena.grad('bias').set([3, 4, 0]);
    arena.slot(0, 'scale').set([12]);
    expect(arena.kernels.squaredNorm(arena.address.grads, arena.length)).toBe(25);
    expect(arena.kernels.squaredNorm(arena.address.slots[0], arena.length)).toBe(144);
    expect(arena.kernels.squaredNorm(arena.address.values, arena.length)).toBe(0);
  });

  it('refuses unknown and repeated names, impossible shapes and more than 4 GiB', () => {
    expect(() => new Arena(parameters).value('weights')).toThrow(InputError);
    expect(() => new Arena([...parameters, { name: 'bias', shape: [1] }])).toThrow('bias: there are two');
    expect(() => new Arena([{ name: 'w', shape: [2, -1] }])).toThrow('w: a shape has whole numbers ≥ 0, not [2, -1]');
    expect(() => new Arena(parameters, { slots: 1 }).slot(1)).toThrow(RangeError);
    // 2²⁹ f32 elements are 2 GiB; with gradients 4 GiB, and one line more.
    expect(() => new Arena([{ name: 'w', shape: [2 ** 29] }])).toThrow('at most 4 GiB');
  });

  it('says what is too large, how large it is and what would help', () => {
    const large = [...parameters, { name: 'table', shape: [2 ** 20, 300] }];
    // 300 · 2²⁰ elements of 4 bytes are 1.17 GiB; values, gradients and two arrays four times as much.
    expect(() => new Arena(large, { slots: 2 })).toThrow(
      "the model's 314,572,825 parameters need 4.69 GiB, 1.17 GiB each for values, gradients and 2 arrays of the " +
        'optimiser, but at most 4 GiB fit; the largest parameter is table [1048576, 300]: expected a smaller model, such ' +
        'as one with a smaller vocabulary, shared embeddings or less width',
    );
  });

  it.each(['f32', 'f64'] as const)('adds gradients that lie outside of it, in pieces (%s)', (dtype) => {
    const arena = new Arena([...parameters, { name: 'long', shape: [50_000] }], { slots: 1, dtype });
    const others = arena.newArray();
    for (const name of arena.names) {
      arena.grad(name).forEach((_, i, grad) => {
        grad[i] = i % 1000;
      });
      arena.view(others, name).fill(0.5);
    }
    arena.slot(0).fill(7);
    arena.addToGrads(others);
    for (const name of arena.names) expect(arena.grad(name).every((value, i) => value === (i % 1000) + 0.5)).toBe(true);
    // Gaps and what lies beside stay as they were: Σ over the gaps is 0.
    const total = (values: Iterable<number>): number => [...values].reduce((a, b) => a + b, 0);
    expect(total(arena.grads)).toBe(total(arena.names.map((name) => total(arena.grad(name)))));
    expect(arena.values.every((value) => value === 0)).toBe(true);
    expect(arena.slot(0).every((value) => value === 7)).toBe(true);
  });
});
