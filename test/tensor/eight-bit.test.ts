import { describe, expect, it } from 'vitest';
import { Random } from '../../src/random.js';
import {
  add,
  f32,
  grad,
  i64,
  inEightBits,
  linear,
  linearCrossEntropy,
  lower,
  type Program,
  Session,
  sum,
  trace,
  type Value,
} from '../../src/tensor/index.js';

const [ROWS, IN, OUT] = [40, 24, 700];

function normal(seed: number, shape: readonly number[], std = 1): Value & { data: Float32Array } {
  const data = new Float32Array(shape.reduce((a, b) => a * b, 1));
  new Random(seed).fillNormal(data, 0, std);
  return { data, shape };
}

async function run(program: Program, feeds: Record<string, Value>, output: string): Promise<Float32Array> {
  const session = await Session.create(lower(program));
  const outputs = await session.run(feeds);
  await session.close();
  return outputs[output].data as Float32Array;
}

/** ‖a − b‖ / ‖b‖ */
function relativeError(a: Float32Array, b: Float32Array): number {
  const norm = (values: Iterable<number>): number => Math.hypot(...values);
  return norm(a.map((value, i) => value - b[i])) / norm(b);
}

describe('products in 8 bits', () => {
  const feeds = { x: normal(1, [ROWS, IN]), weight: normal(2, [OUT, IN], 0.2), bias: normal(3, [OUT], 0.1) };

  it('differ from those in f32 by rounding alone', async () => {
    const types = { x: f32('N', IN), weight: f32(OUT, IN), bias: f32(OUT) };
    const program = trace(types, ({ x, weight, bias }) => ({ y: linear(x, weight, bias) }));
    const precise = await run(program, feeds, 'y');
    const error = relativeError(await run(inEightBits(program), feeds, 'y'), precise);
    // A normal row of 24 reaches to about 2.3 σ: steps of 2.3 σ/63, rounded with an error of step/√12, are 1.1 % of σ;
    // those of the states, 2.3 σ/127, have errors of 0.5 %. Together 1.2 %.
    expect(error).toBeGreaterThan(0.006);
    expect(error).toBeLessThan(0.02);
  });

  it.each([61, 700])('of a row, and its loss over %d classes, do not depend on the other rows', async (classes) => {
    const types = { x: f32('N', IN), weight: f32(classes, IN), bias: f32(classes), targets: i64('N') };
    const program = inEightBits(
      trace(types, ({ x, weight, bias, targets }) => ({
        y: linear(x, weight, bias),
        losses: linearCrossEntropy(x, weight, targets),
      })),
    );
    const session = await Session.create(lower(program));
    // One row is far larger than the rest.
    const states = feeds.x.data.map((value, i) => (i < IN ? 100 * value : value));
    const rows = (start: number, end: number) => ({
      x: { data: states.slice(start * IN, end * IN), shape: [end - start, IN] },
      weight: { data: feeds.weight.data.slice(0, classes * IN), shape: [classes, IN] },
      bias: { data: feeds.bias.data.slice(0, classes), shape: [classes] },
      targets: { data: BigInt64Array.from({ length: end - start }, (_, i) => BigInt(start + i)), shape: [end - start] },
    });
    const all = await session.run(rows(0, ROWS));
    for (const [start, end] of [
      [0, 1],
      [1, 20],
      [20, ROWS],
    ]) {
      const some = await session.run(rows(start, end));
      expect(some.y.data).toEqual(all.y.data.slice(start * classes, end * classes));
      expect(some.losses.data).toEqual(all.losses.data.slice(start, end));
    }
    await session.close();
  });

  it('leave rows of zeros what they are', async () => {
    const zeros = { x: feeds.x, weight: { data: new Float32Array(OUT * IN), shape: [OUT, IN] } };
    const program = trace({ x: f32('N', IN), weight: f32(OUT, IN) }, ({ x, weight }) => ({ y: linear(x, weight) }));
    expect(new Set(await run(inEightBits(program), zeros, 'y'))).toEqual(new Set([0]));
  });

  it('give losses over more classes than a block holds', async () => {
    const targets = { data: BigInt64Array.from({ length: ROWS }, (_, i) => BigInt((i * 17) % OUT)), shape: [ROWS] };
    const types = { x: f32('N', IN), weight: f32(OUT, IN), targets: i64('N') };
    const program = trace(types, ({ x, weight, targets: t }) => ({ y: linearCrossEntropy(x, weight, t) }));
    const [precise, rounded] = [program, inEightBits(program)].map((p) => run(p, { ...feeds, targets }, 'y'));
    const expected = await precise;
    (await rounded).forEach((loss, row) => {
      expect(Math.abs(loss - expected[row])).toBeLessThan(0.05);
    });
  });

  it('keep losses within 0 and 88 nats', async () => {
    // Two classes with logits ± 1000: right, then wrong.
    const extreme = {
      x: { data: Float32Array.of(1000, 1000), shape: [2, 1] },
      weight: { data: Float32Array.of(1, -1), shape: [2, 1] },
      targets: { data: BigInt64Array.of(0n, 1n), shape: [2] },
    };
    const types = { x: f32('N', 1), weight: f32(2, 1), targets: i64('N') };
    const program = trace(types, ({ x, weight, targets }) => ({ y: linearCrossEntropy(x, weight, targets) }));
    const [right, wrong] = await run(inEightBits(program), extreme, 'y');
    expect(right).toBeCloseTo(0, 3);
    expect(wrong).toBeCloseTo(Math.log(3e38), 4);
  });

  it('are not for programs with gradients', () => {
    const types = { x: f32('N', IN), weight: f32(OUT, IN), targets: i64('N') };
    const program = trace(types, ({ x, weight, targets }) => {
      const loss = sum(linearCrossEntropy(add(x, 1), weight, targets));
      return { gradient: grad(loss, [weight])[0] };
    });
    expect(() => inEightBits(program)).toThrow(/linearCrossEntropyGradient needs an output that has not been replaced/);
  });
});
