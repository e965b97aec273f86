import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Random } from '../../src/random.js';
import * as t from '../../src/tensor/index.js';
import { checkGradient } from './check-gradient.js';

const program = t.trace({ p: t.f64('R', 'T', 'S') }, ({ p }) => ({ out: t.monotonicAlignment(p) }));

async function alignment(p: number[][][]): Promise<number[][][]> {
  const shape = [p.length, p[0].length, p[0][0].length];
  const session = await t.Session.create(t.lower(program));
  const { out } = await session.run({ p: { data: Float64Array.from(p.flat(2)), shape } });
  await session.close();
  const [, steps, source] = shape;
  const at = (r: number, i: number): number[] =>
    Array.from((out.data as Float64Array).subarray((r * steps + i) * source, (r * steps + i + 1) * source));
  return p.map((row, r) => row.map((_, i) => at(r, i)));
}

/** Every way to stop, one after the other, with its probability. */
function enumerated(p: number[][]): number[][] {
  const alpha = p.map((row) => row.map(() => 0));
  const go = (i: number, from: number, probability: number): void => {
    if (i === p.length) return;
    let passing = probability;
    for (let j = from; j < p[i].length; j++) {
      alpha[i][j] += passing * p[i][j];
      go(i + 1, j, passing * p[i][j]);
      passing *= 1 - p[i][j];
    }
  };
  go(0, 0, 1);
  return alpha;
}

const probability = fc.oneof(fc.double({ min: 0, max: 1, noNaN: true }), fc.constantFrom(0, 1));
const sizes = fc.tuple(fc.integer({ min: 1, max: 2 }), fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 5 }));
const probabilities = sizes.chain(([rows, steps, source]) => {
  const list = <A>(of: fc.Arbitrary<A>, n: number): fc.Arbitrary<A[]> => fc.array(of, { minLength: n, maxLength: n });
  return list(list(list(probability, source), steps), rows);
});

describe('the expected monotonic alignment', () => {
  it('is the sum over all ways to stop, and at most 1 over the source', () =>
    fc.assert(
      fc.asyncProperty(probabilities, async (p) => {
        const found = await alignment(p);
        found.forEach((rows, r) => {
          const expected = enumerated(p[r]);
          rows.forEach((row, i) => {
            row.forEach((value, j) => {
              expect(value).toBeCloseTo(expected[i][j], 12);
            });
            expect(row.reduce((a, b) => a + b)).toBeLessThanOrEqual(1 + 1e-12);
          });
        });
      }),
      { numRuns: 40 },
    ));

  it('is negative binomial where every token is a coin', async () => {
    // After i + 1 stops, j tokens were passed: C(i + j, j) / 2^(i + j + 1).
    const coin = [0, 1, 2].map(() => new Array<number>(4).fill(0.5));
    const [found] = await alignment([coin]);
    const expected = [
      [1 / 2, 1 / 4, 1 / 8, 1 / 16],
      [1 / 4, 2 / 8, 3 / 16, 4 / 32],
      [1 / 8, 3 / 16, 6 / 32, 10 / 64],
    ];
    expect(found).toEqual(expected);
  });

  it('never goes back: a head that stopped at the third token has left the first two', async () => {
    const [found] = await alignment([
      [
        [0, 0, 1, 1],
        [1, 1, 1, 1],
      ],
    ]);
    expect(found[1]).toEqual([0, 0, 1, 0]);
  });

  it('has the gradient of finite differences, whatever the sizes', () =>
    fc.assert(
      fc.asyncProperty(fc.integer(), sizes, async (seed, shape) => {
        const random = new Random(seed);
        const size = shape.reduce((a, b) => a * b);
        const data = Float64Array.from({ length: size }, () => 0.05 + 0.9 * random.uniform());
        await checkGradient(t.monotonicAlignment, [{ data, shape }], { named: [['R', 'T', 'S']] });
      }),
      { numRuns: 8 },
    ));

  it('and its gradient stay finite over 200 tokens, however sure the heads are', async () => {
    const both = t.trace({ p: t.f32('R', 'T', 'S') }, ({ p }) => {
      const alpha = t.monotonicAlignment(p);
      return { alpha, gradient: t.grad(t.sum(t.mul(alpha, t.range(p.shape[2], 'f32'))), [p])[0] };
    });
    const session = await t.Session.create(t.lower(both));
    const random = new Random(1);
    // One head that always continues, one that always stops, one that is hardly ever in doubt, one that is always so.
    const of = [() => 0, () => 1, () => (random.uniform() < 0.5 ? 1e-30 : 1 - 1e-7), () => 0.5];
    const data = Float32Array.from({ length: 4 * 200 * 200 }, (_, at) => of[Math.floor(at / 40_000)]());
    const { alpha, gradient } = await session.run({ p: { data, shape: [4, 200, 200] } });
    await session.close();
    for (const values of [alpha.data, gradient.data] as Float32Array[])
      expect(values.every(Number.isFinite)).toBe(true);
    const lastStep = (alpha.data as Float32Array).subarray(40_000 + 199 * 200, 40_000 + 200 * 200);
    expect(lastStep[0]).toBe(1);
  });

  it('refuses what is not [R, T, S]', () => {
    expect(() => t.monotonicAlignment(t.input('p', t.f32('T', 'S')))).toThrow('expected probabilities [R, T, S]');
  });
});
