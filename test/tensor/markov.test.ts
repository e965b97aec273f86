import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Random } from '../../src/random.js';
import * as t from '../../src/tensor/index.js';
import { checkGradient, randomValue } from './check-gradient.js';

const program = t.trace({ m: t.f64('T', 'R', 2, 2) }, ({ m }) => ({ out: t.forwardAlgorithm(m) }));

/** The sum over all sequences of states that end in k at the last step, each from state 0 before the first. */
function enumerated(m: readonly (readonly number[][])[], k: number): number {
  const ways = (i: number, state: number): number[] => {
    if (i < 0) return state === 0 ? [0] : [];
    return [0, 1].flatMap((from) => ways(i - 1, from).map((log) => log + m[i][from][state]));
  };
  return Math.log(ways(m.length - 1, k).reduce((sum, log) => sum + Math.exp(log), 0));
}

const number = fc.double({ min: -4, max: 4, noNaN: true });
const pair = fc.tuple(number, number).map((both): number[] => [...both]);
const step = fc.tuple(pair, pair).map((both): number[][] => [...both]);

describe('the forward algorithm', () => {
  it('is the sum over all sequences of states', async () => {
    const session = await t.Session.create(t.lower(program));
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 5 }), async (m) => {
        const { out } = await session.run({ m: { data: Float64Array.from(m.flat(2)), shape: [m.length, 1, 2, 2] } });
        for (const k of [0, 1]) expect(out.data[2 * (m.length - 1) + k]).toBeCloseTo(enumerated(m, k), 10);
      }),
      { numRuns: 30 },
    );
    await session.close();
  });

  it('has the gradient of its differences', async () => {
    const m = randomValue(new Random(3), [4, 2, 3, 3]);
    await checkGradient(t.forwardAlgorithm, [m], { named: [['T', 'R']] });
  });

  it('neither overflows nor vanishes over 500 steps, and leaves out what is impossible', async () => {
    const size = 500 * 4;
    // From each state to the other alone, with a half: only every other state is reached.
    const data = Float64Array.from({ length: size }, (_, i) => (i % 4 === 1 || i % 4 === 2 ? Math.log(0.5) : t.LOWEST));
    const session = await t.Session.create(t.lower(program));
    const { out } = await session.run({ m: { data, shape: [500, 1, 2, 2] } });
    await session.close();
    expect(out.data[2 * 499]).toBeCloseTo(500 * Math.log(0.5), 9);
    expect(out.data[2 * 499 + 1]).toBeLessThan(-1e29);
  });

  it('refuses other shapes', () => {
    expect(() => t.forwardAlgorithm(t.input('m', t.f32('T', 'R', 2, 3)))).toThrow('expected logarithms [T, R, K, K]');
  });
});
