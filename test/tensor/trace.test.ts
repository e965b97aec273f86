import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import * as t from '../../src/tensor/index.js';
import { temporaryFolder } from '../run/temporary.js';

const run = async (program: t.Program, feeds: Record<string, t.Value>): Promise<Record<string, t.Value>> => {
  const session = await t.Session.create(t.lower(program));
  const results = await session.run(feeds);
  await session.close();
  return results;
};
const vector = (...values: number[]): t.Value => ({ data: Float32Array.from(values), shape: [values.length] });
const matrix = (rows: number, columns: number, start = 0): t.Value => ({
  data: Float32Array.from({ length: rows * columns }, (_, i) => start + i),
  shape: [rows, columns],
});

describe('a traced program', () => {
  it('leaves out what its outputs do not reach', () => {
    const program = t.trace({ x: t.f32('B') }, ({ x }) => {
      t.exp(t.exp(x));
      return { y: t.add(x, 1) };
    });
    expect(program.nodes.map(({ op }) => op.name)).not.toContain('exp');
  });

  it('computes equal expressions once', () => {
    const program = t.trace({ x: t.f32('B') }, ({ x }) => ({ y: t.add(t.exp(t.tanh(x)), t.exp(t.tanh(x))) }));
    const names = program.nodes.map(({ op }) => op.name);
    expect(names.filter((name) => name === 'exp')).toHaveLength(1);
    expect(names.filter((name) => name === 'tanh')).toHaveLength(1);
  });

  it.each([
    ['the infinities', -Infinity, Infinity],
    ['NaN and infinity', Number.NaN, Infinity],
    ['0 and -0', 0, -0],
  ])('keeps fills with %s apart', async (_, a, b) => {
    const program = t.trace({ m: t.bool(2), x: t.f32(2) }, ({ m, x }) => ({
      a: t.where(m, x, a),
      b: t.where(m, x, b),
      vectorA: t.mul(x, t.constant([a, 1])),
      vectorB: t.mul(x, t.constant([b, 1])),
    }));
    const m = { data: Uint8Array.of(0, 1), shape: [2] };
    const found = await run(program, { m, x: vector(2, 3) });
    const values = Object.fromEntries(Object.entries(found).map(([name, { data }]) => [name, [...data]]));
    expect(values).toEqual({ a: [a, 3], b: [b, 3], vectorA: [2 * a, 3], vectorB: [2 * b, 3] });
  });

  it('keeps two dropouts apart', () => {
    const program = t.trace({ x: t.f32('B') }, ({ x }) => ({ y: t.add(t.dropout(x, 0.5), t.dropout(x, 0.5)) }));
    expect(t.lower(program).masks).toHaveLength(2);
  });

  it('has one session for all batch shapes', async () => {
    const program = t.trace({ x: t.f32('T', 'B', 2), w: t.f32(3, 2) }, ({ x, w }) => {
      const [time, batch] = x.shape;
      const y = t.linear(x, w);
      return { y: t.reshape(y, [t.multiplyDims(batch, time), 3]), total: t.mean(y) };
    });
    const session = await t.Session.create(t.lower(program));
    const w = matrix(3, 2);
    for (const [time, batch] of [
      [1, 1],
      [4, 3],
      [2, 9],
    ]) {
      const x = { data: new Float32Array(time * batch * 2).fill(1), shape: [time, batch, 2] };
      const { y, total } = await session.run({ x, w });
      expect(y.shape).toEqual([time * batch, 3]);
      // rows of w sum to 1, 5, 9
      expect([...(y.data as Float32Array).slice(0, 3)]).toEqual([1, 5, 9]);
      expect(total.data[0]).toBe(5);
    }
    await session.close();
  });

  it('changes a shape once where an operation goes on to change it', () => {
    const reshapes = (flat: boolean): number => {
      const program = t.trace({ q: flat ? t.f32('B', 8) : t.f32(1, 'B', 8), kv: t.f32('T', 'B', 8) }, ({ q, kv }) => {
        const [, batch] = kv.shape;
        const found = t.attention(t.reshape(q, [1, batch, 8]), kv, kv, { heads: 2 });
        return { y: t.reshape(found, q.shape) };
      });
      const text = Buffer.from(t.lower(program).onnx).toString('latin1');
      return text.split('\x07Reshape').length - 1; // the type of a node, after its length
    };
    expect(reshapes(false)).toBeGreaterThan(0);
    expect(reshapes(true)).toBe(reshapes(false));
  });

  it('slices and concatenates along a named dimension', async () => {
    const program = t.trace({ x: t.f32('T') }, ({ x }) => ({
      y: t.concat([t.slice(x, 0, 1), t.slice(x, 0, -2), t.slice(x, 0, 0, 1)], 0),
    }));
    const { y } = await run(program, { x: vector(1, 2, 3, 4) });
    expect([...(y.data as Float32Array)]).toEqual([2, 3, 4, 3, 4, 1]);
  });

  it('writes outputs into given arrays', async () => {
    const program = t.trace({ x: t.f32('B') }, ({ x }) => ({ y: t.mul(x, 2) }));
    const session = await t.Session.create(t.lower(program));
    const target = new Float32Array(5);
    await session.run({ x: vector(1, 2, 3) }, { into: { y: target.subarray(1, 4) } });
    expect([...target]).toEqual([0, 2, 4, 6, 0]);
    await session.close();
  });

  it('leaves no copy of an output that was written into a given array', async () => {
    const program = t.trace({ x: t.f32('B') }, ({ x }) => ({ y: t.mul(x, 2) }));
    const session = await t.Session.create(t.lower(program));
    const size = 2 ** 20;
    const [x, y] = [new Float32Array(size).fill(3), new Float32Array(size)];
    const before = process.memoryUsage().arrayBuffers;
    for (let i = 0; i < 5; i++) await session.run({ x: { data: x, shape: [size] } }, { into: { y } });
    // Less than one of the five arrays.
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(y.byteLength);
    expect(y.length).toBe(size);
    expect(y.every((value) => value === 6)).toBe(true);
    await session.close();
  });
});

describe('stopGradient', () => {
  it('passes the value and no derivative', async () => {
    const program = t.trace({ x: t.f32(1) }, ({ x }) => {
      const y = t.sum(t.mul(x, t.stopGradient(t.mul(x, 3))));
      return { y, g: t.grad(y, [x])[0] };
    });
    const { y, g } = await run(program, { x: vector(2) });
    expect(y.data[0]).toBe(12);
    expect(g.data[0]).toBe(6);
  });
});

describe('operations without gradient', () => {
  it('argmax takes the first of equal values', async () => {
    const program = t.trace({ x: t.f32('B', 4) }, ({ x }) => ({ i: t.argmax(x) }));
    const { i } = await run(program, { x: { data: Float32Array.of(1, 3, 3, 0, 5, 1, 5, 5), shape: [2, 4] } });
    expect([...(i.data as BigInt64Array)]).toEqual([1n, 0n]);
  });

  it('topK orders the largest', async () => {
    const program = t.trace({ x: t.f32(5) }, ({ x }) => ({ ...t.topK(x, 3) }));
    const { values, indices } = await run(program, { x: vector(2, 9, 4, 7, 1) });
    expect([...(values.data as Float32Array)]).toEqual([9, 7, 4]);
    expect([...(indices.data as BigInt64Array)]).toEqual([1n, 3n, 2n]);
  });

  it('oneHot marks the index', async () => {
    const program = t.trace({ i: t.i64('B') }, ({ i }) => ({ y: t.oneHot(i, 3) }));
    const { y } = await run(program, { i: { data: BigInt64Array.of(2n, 0n), shape: [2] } });
    expect([...(y.data as Float32Array)]).toEqual([0, 0, 1, 1, 0, 0]);
  });

  it('a fully masked softmax row is all zeros, not NaN', async () => {
    const program = t.trace({ x: t.f32(1, 3) }, ({ x }) => ({ y: t.softmax(x, t.greater(x, 100)) }));
    const { y } = await run(program, { x: { data: Float32Array.of(1, 2, 3), shape: [1, 3] } });
    expect([...(y.data as Float32Array)]).toEqual([0, 0, 0]);
  });

  it('the cross-entropy of a confident wrong answer is exact, not saturated', async () => {
    // −log softmax(0 | 300, 0) = 300 + log(1 + e^−300)
    const program = t.trace({ x: t.f32(1, 2), i: t.i64(1) }, ({ x, i }) => ({ y: t.crossEntropy(x, i) }));
    const { y } = await run(program, {
      x: { data: Float32Array.of(300, 0), shape: [1, 2] },
      i: { data: BigInt64Array.of(1n), shape: [1] },
    });
    expect(y.data[0]).toBe(300);
  });
});

describe('a mistake is found while tracing', () => {
  const here = /\(at .*trace\.test\.ts:\d+:\d+\)$/;
  it('names the operation, both shapes and the line: matmul', () => {
    const wrong = (): unknown => t.trace({ a: t.f32('B', 3), b: t.f32(4, 5) }, ({ a, b }) => ({ y: t.matmul(a, b) }));
    expect(wrong).toThrow('matmul: inner sizes 3 and 4 of [B, 3] and [4, 5] differ');
    expect(wrong).toThrow(here);
  });

  it("names the line of a user's own src/nn, not of whoever called it", () => {
    const folder = join(temporaryFolder(), 'src/nn');
    mkdirSync(folder, { recursive: true });
    const engine = new URL('../../dist/index.js', import.meta.url).href;
    writeFileSync(
      join(folder, 'model.mjs'),
      `import { nn, tensor as t } from ${JSON.stringify(engine)};
export const own = (a, b) => t.matmul(a, b); // line 2
export const layers = (x) => nn.mlp(t.Parameters.root(), x, { hidden: [4], out: 1 }); // line 3
`,
    );
    writeFileSync(
      join(folder, '../main.mjs'),
      `import { tensor as t } from ${JSON.stringify(engine)};
import { layers, own } from './nn/model.mjs';
const x = t.input('x', t.f32('B', 3));
try { own(x, t.input('w', t.f32(4, 5))); } catch (error) { console.log(error.site); }
console.log(layers(x).node.site);
`,
    );
    const printed = execFileSync(process.execPath, [join(folder, '../main.mjs')], { encoding: 'utf8' });
    const places = printed.trim().split('\n');
    expect(places.map((place) => place.slice(0, place.lastIndexOf(':')))).toEqual([
      `${join(folder, 'model.mjs')}:2`,
      `${join(folder, 'model.mjs')}:3`,
    ]);
  });

  it('broadcasting', () => {
    const wrong = (): unknown => t.trace({ a: t.f32('B', 3), b: t.f32('T', 3) }, ({ a, b }) => ({ y: t.add(a, b) }));
    expect(wrong).toThrow('add: the shapes [B, 3] and [T, 3] do not broadcast');
    expect(wrong).toThrow(here);
  });

  it('element types', () => {
    const wrong = (): unknown => t.trace({ a: t.f32('B'), b: t.i64('B') }, ({ a, b }) => ({ y: t.mul(a, b) }));
    expect(wrong).toThrow('mul: f32[B] and i64[B] differ in type');
  });

  it.each<[string, () => unknown]>([
    ['reshape: [B, 3] and [B, 4] differ in size', () => t.reshape(t.input('x', t.f32('B', 3)), ['B', 4])],
    ['gather: indices must be i32 or i64, got f32', () => t.gather(t.input('x', t.f32(3)), t.input('i', t.f32(2)))],
    ['slice: elements 2 to 5 of axis 0 are outside of [4]', () => t.slice(t.input('x', t.f32(4)), 0, 2, 3)],
    ['exp: expected f32 or f64, got i64[B]', () => t.exp(t.input('x', t.i64('B')))],
    [
      'concat: f32[2, B] and f32[3, T] differ besides axis 0',
      () => t.concat([t.input('x', t.f32(2, 'B')), t.input('y', t.f32(3, 'T'))], 0),
    ],
    ['topK: cannot take 5 of the last axis of [4]', () => t.topK(t.input('x', t.f32(4)), 5)],
    [
      'grad: expected a floating-point scalar, got f32[B]',
      () => {
        const x = t.input('x', t.f32('B'));
        return t.grad(x, [x]);
      },
    ],
  ])('%s', (message, wrong) => {
    expect(wrong).toThrow(message);
    expect(wrong).toThrow(t.TraceError);
  });
});

describe('a run with the wrong values', () => {
  const program = t.trace({ x: t.f32('B', 3), y: t.f32('B') }, ({ x, y }) => ({
    z: t.add(t.sum(x, { axes: [1] }), y),
  }));
  const cases: [string, Record<string, t.Value>, string][] = [
    ['a missing input', { x: matrix(2, 3) }, 'y: no value is given for this input of the program'],
    ['another shape', { x: matrix(2, 4), y: vector(1, 2) }, 'x: expected f32[B, 3], got f32[2, 4]'],
    [
      'sizes that contradict',
      { x: matrix(2, 3), y: vector(1) },
      'y: expected f32[B], got f32[1], but B is 2 in an earlier input',
    ],
    [
      'another type',
      { x: matrix(2, 3), y: { data: Int32Array.of(1, 2), shape: [2] } },
      'y: expected f32[B], got i32[2]',
    ],
    [
      'too few elements',
      { x: { data: new Float32Array(5), shape: [2, 3] }, y: vector(1, 2) },
      'x: expected f32[B, 3], got f32[2, 3] with 5 elements',
    ],
  ];
  it.each(cases)('%s', async (_, feeds, message) => {
    await expect(run(program, feeds)).rejects.toThrow(message);
  });
});

describe('firstNonFinite', () => {
  it('names the operation and the line where a NaN begins', async () => {
    const program = t.trace({ x: t.f32('B') }, ({ x }) => ({ y: t.mul(t.log(x), 2) }));
    const found = await t.firstNonFinite(program, { x: vector(1, -1) });
    expect(found?.op).toBe('log');
    expect(found?.site).toMatch(/trace\.test\.ts/);
    expect(found?.value).toBeNaN();
  });

  it('names an input that was already wrong', async () => {
    const program = t.trace({ x: t.f32('B') }, ({ x }) => ({ y: t.exp(x) }));
    expect(await t.firstNonFinite(program, { x: vector(1, Number.NaN) })).toMatchObject({ op: 'input', site: 'x' });
  });
});

it('the sum of two tensors that are both expanded has the shape that they are expanded to', () => {
  const { outputs } = t.trace({ x: t.f32(1), y: t.f32(1) }, ({ x, y }) => ({
    out: t.add(t.broadcastTo(x, [4]), t.broadcastTo(y, [4])),
  }));
  expect(outputs.get('out')?.shape).toEqual([4]);
});
