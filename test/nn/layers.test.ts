import { describe, expect, it } from 'vitest';
import * as nn from '../../src/nn/index.js';
import { Random } from '../../src/random.js';
import * as t from '../../src/tensor/index.js';

const run = async (program: t.Program, feeds: Record<string, t.Value> = {}): Promise<Record<string, t.Value>> => {
  const session = await t.Session.create(t.lower(program));
  const results = await session.run(feeds);
  await session.close();
  return results;
};

function started(initialize: t.Initializer, shape: number[]): Float32Array {
  const values = new Float32Array(shape.reduce((a, b) => a * b, 1));
  initialize(values, shape, new Random(1));
  return values;
}

const spread = (values: Float32Array): number => Math.sqrt(values.reduce((s, v) => s + v * v, 0) / values.length);
const largest = (values: Float32Array): number => values.reduce((m, v) => Math.max(m, Math.abs(v)), 0);

describe('sinusoidal positions', () => {
  it("are fairseq's: sines in the first half, cosines in the second, ω_i = 10000^(−i/(width/2 − 1))", async () => {
    // width 4: ω = 1, 1/10000; rows for positions 2 and 3
    const { table } = await run(
      t.trace({ x: t.f32() }, ({ x }) => ({ table: t.add(nn.sinusoidalTable(2, 4, { first: 2 }), t.mul(x, 0)) })),
      {
        x: { data: Float32Array.of(0), shape: [] },
      },
    );
    const expected = [2, 3].flatMap((p) => [Math.sin(p), Math.sin(p / 1e4), Math.cos(p), Math.cos(p / 1e4)]);
    expected.forEach((value, i) => {
      expect(table.data[i] as number).toBeCloseTo(value, 6);
    });
  });

  it('are added to the steps of every sample', async () => {
    const program = t.trace({ x: t.f32('T', 'B', 4) }, ({ x }) => ({
      y: nn.addPositions(x, nn.sinusoidalTable(10, 4)),
    }));
    const { y } = await run(program, { x: { data: new Float32Array(3 * 2 * 4), shape: [3, 2, 4] } });
    const rows = Array.from({ length: 6 }, (_, i) => [...(y.data as Float32Array).slice(i * 4, i * 4 + 4)]);
    expect(rows[0]).toEqual([0, 0, 1, 1]);
    expect(rows[0]).toEqual(rows[1]);
    expect(rows[2][0]).toBeCloseTo(Math.sin(1), 6);
  });

  it('need an even width', () => {
    expect(() => nn.sinusoidalTable(3, 5)).toThrow('even width');
  });
});

describe('the embedding', () => {
  it('looks up rows, scaled', async () => {
    const p = t.Parameters.root();
    const ids = t.input('ids', t.i64('B'));
    const rows = nn.embedding(p, ids, 3, 2, { scale: 10 });
    const inputs = new Map([['ids', ids], ...p.list().map(({ name, tensor }) => [name, tensor] as const)]);
    const { y } = await run(t.programOf(inputs, new Map([['y', rows]])), {
      ids: { data: BigInt64Array.of(2n, 0n), shape: [2] },
      weight: { data: Float32Array.of(1, 2, 3, 4, 5, 6), shape: [3, 2] },
    });
    expect([...(y.data as Float32Array)]).toEqual([50, 60, 10, 20]);
  });
});

describe('start values', () => {
  const shape = [300, 200];
  it('xavier uniform lies in ±√(6/(in + out))', () => {
    const values = started(nn.xavierUniform(), shape);
    const bound = Math.sqrt(6 / 500);
    expect(largest(values)).toBeLessThanOrEqual(bound);
    expect(largest(values)).toBeGreaterThan(0.99 * bound);
    // a uniform variable on ±b has standard deviation b/√3
    expect(spread(values) / (bound / Math.sqrt(3))).toBeCloseTo(1, 2);
  });

  it('xavier normal has variance 2/(in + out)', () => {
    expect(spread(started(nn.xavierNormal(), shape)) / Math.sqrt(2 / 500)).toBeCloseTo(1, 2);
  });

  it("PyTorch's linear lies in ±1/√in", () => {
    expect(largest(started(nn.torchLinear, shape))).toBeLessThanOrEqual(1 / Math.sqrt(200));
    expect(largest(started(nn.torchUniform(32), [96]))).toBeLessThanOrEqual(1 / Math.sqrt(32));
  });

  it("fairseq's embedding is N(0, 1/width) with zeros for padding", () => {
    const values = started(nn.embeddingNormal(1), [2000, 64]);
    expect(spread(values) / (1 / 8)).toBeCloseTo(1, 1);
    expect(largest(values.subarray(64, 128))).toBe(0);
    expect(largest(values.subarray(0, 64))).toBeGreaterThan(0);
  });
});

describe('parameters', () => {
  it('of one name are one tensor', () => {
    const p = t.Parameters.root();
    expect(p.under('a').get('w', [2, 3], nn.zeros)).toBe(p.get('a.w', [2, 3], nn.zeros));
    expect(p.list().map(({ name }) => name)).toEqual(['a.w']);
  });

  it('of one name must have one shape', () => {
    const p = t.Parameters.root();
    p.get('w', [2, 3], nn.zeros);
    expect(() => p.get('w', [3, 2], nn.zeros)).toThrow('w is used with the shapes [2, 3] and [3, 2]');
  });
});
