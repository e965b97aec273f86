import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addDims, type Dim, dim, divideDims, evaluateDim, multiplyDims, sameDim } from '../../src/tensor/dim.js';

const sizes = new Map([
  ['B', 7],
  ['T', 5],
  ['K', 3],
]);

/** A random polynomial together with its value for the sizes above. */
const polynomial: fc.Arbitrary<{ value: Dim; at: number }> = fc.letrec<{ node: { value: Dim; at: number } }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 3 },
    fc.integer({ min: -3, max: 4 }).map((n) => ({ value: n as Dim, at: n })),
    fc.constantFrom('B', 'T', 'K').map((name) => ({ value: dim(name), at: sizes.get(name)! })),
    fc.tuple(tie('node'), tie('node')).map(([a, b]) => ({ value: addDims(a.value, b.value), at: a.at + b.at })),
    fc.tuple(tie('node'), tie('node')).map(([a, b]) => ({ value: multiplyDims(a.value, b.value), at: a.at * b.at })),
  ),
})).node;

describe('symbolic dimensions', () => {
  it('evaluate to what the arithmetic gives', () => {
    fc.assert(
      fc.property(polynomial, ({ value, at }) => {
        expect(evaluateDim(value, sizes) + 0).toBe(at + 0);
      }),
    );
  });

  it('are equal whatever the order of sums and products', () => {
    fc.assert(
      fc.property(polynomial, polynomial, ({ value: a }, { value: b }) => {
        expect(sameDim(addDims(a, b), addDims(b, a))).toBe(true);
        expect(sameDim(multiplyDims(a, b), multiplyDims(b, a))).toBe(true);
      }),
    );
  });

  it('cancel to a number', () => {
    const t = dim('T');
    expect(addDims(addDims(t, 4), multiplyDims(t, -1))).toBe(4);
  });

  it('divide exactly or not at all', () => {
    const [b, t] = [dim('B'), dim('T')];
    expect(divideDims(multiplyDims(multiplyDims(b, t), 6), multiplyDims(t, 2))).toEqual(multiplyDims(b, 3));
    expect(divideDims(multiplyDims(b, 3), 2)).toBeUndefined();
    expect(divideDims(b, t)).toBeUndefined();
  });

  it('refuse a name that is not one', () => {
    expect(() => dim('2B')).toThrow("'2B' is not a name for a dimension");
  });
});
