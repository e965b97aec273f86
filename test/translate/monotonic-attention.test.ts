import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { differentiableAverageLagging } from '../../src/metrics/latency.js';
import {
  constant,
  f64,
  i64,
  lower,
  type Parameters,
  Session,
  type Tensor,
  trace,
  type Value,
} from '../../src/tensor/index.js';
import { expectedLookback, monotonicAttention } from '../../src/translate/monotonic/attention.js';
import { MOVING, type MonotonicKind, monotonicModel } from '../../src/translate/monotonic/config.js';
import { transportAttention, transportLosses } from '../../src/translate/monotonic/itst.js';
import { differentiableLagging, latencyLosses } from '../../src/translate/monotonic/loss.js';
import { expectTorch, type Stored } from '../nn/torch.js';
import { tinyModel } from './decode-models.js';

interface TorchAttention {
  readonly params: Record<string, Stored>;
  readonly x: Stored;
  readonly memory: Stored;
  readonly source: readonly number[];
  readonly target: readonly number[];
  readonly outputs: Record<string, Stored>;
  readonly weights: Record<string, Stored>;
  readonly grads: Record<string, Stored>;
}

const { cases } = JSON.parse(readFileSync(new URL('monotonic.json', import.meta.url), 'utf8')) as {
  cases: Record<MonotonicKind, TorchAttention>;
};

describe.each(MOVING)('%s against PyTorch', (kind) => {
  it('finds the same, is as late and as spread, and has the same gradients, padding left out', async () => {
    const { params, x, memory, source, target, outputs, weights, grads } = cases[kind];
    const model = monotonicModel(tinyModel({ width: 4, heads: 2, attentionDropout: 0 }), kind);
    const attend = (p: Parameters, given: Record<string, Tensor>) => {
      const lengths = { source: given.source, target: given.target };
      const attended = monotonicAttention(p, given.x, given.memory, model, { lengths: lengths.source, noise: false });
      return { ...attended, ...latencyLosses(attended.delays, lengths) };
    };
    await expectTorch(attend, {
      inputs: { x, memory },
      integers: { source: { shape: [2], data: source }, target: { shape: [2], data: target } },
      parameters: params,
      outputs,
      weights,
      gradients: grads,
    });
  });
});

describe('itst against PyTorch', () => {
  it('attends to what has been read, costs as much, and has the same gradients, padding left out', async () => {
    const { params, x, memory, source, target, outputs, weights, grads } = cases.itst;
    const model = monotonicModel(tinyModel({ width: 4, heads: 2, attentionDropout: 0 }), 'itst');
    const attend = (p: Parameters, given: Record<string, Tensor>) => {
      const lengths = { source: given.source, target: given.target };
      const thresholds = constant([0.9, 0.5], p.dtype, [2]); // THRESHOLDS of make_monotonic.py
      const { found, information } = transportAttention(p, given.x, given.memory, model, {
        lengths: lengths.source,
        thresholds,
      });
      return { found, ...transportLosses(information, lengths) };
    };
    await expectTorch(attend, {
      inputs: { x, memory },
      integers: { source: { shape: [2], data: source }, target: { shape: [2], data: target } },
      parameters: params,
      outputs,
      weights,
      gradients: grads,
    });
  });
});

async function run(program: ReturnType<typeof trace>, feeds: Record<string, Value>): Promise<Float64Array> {
  const session = await Session.create(lower(program));
  const { out } = await session.run(feeds);
  await session.close();
  return out.data as Float64Array;
}

const matrix = (rows: readonly (readonly number[])[]): Value => ({
  data: Float64Array.from(rows.flat()),
  shape: [rows.length, rows[0].length],
});
const lengths = (values: readonly number[]): Value => ({
  data: BigInt64Array.from(values, BigInt),
  shape: [values.length],
});

describe('differentiable average lagging', () => {
  const program = trace({ g: f64('B', 'T'), source: i64('B'), target: i64('B') }, ({ g, source, target }) => ({
    out: differentiableLagging(g, { source, target }),
  }));

  it('is 1 where delays are 1, 2, 3: the diagonal', async () => {
    const out = await run(program, { g: matrix([[1, 2, 3]]), source: lengths([3]), target: lengths([3]) });
    expect([...out]).toEqual([1]);
  });

  it('does not forgive what was late: 3, 3, 3 lags by 3 at every step', async () => {
    const out = await run(program, { g: matrix([[3, 3, 3]]), source: lengths([3]), target: lengths([3]) });
    expect([...out]).toEqual([3]);
  });

  it('is the measure of that name, whatever stands on the padding', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 6 }),
        fc.integer({ min: 0, max: 3 }),
        async (delays, padding) => {
          const padded = [...delays, ...new Array<number>(padding).fill(1000)];
          const feeds = { g: matrix([padded]), source: lengths([9]), target: lengths([delays.length]) };
          const [found] = await run(program, feeds);
          expect(found).toBeCloseTo(differentiableAverageLagging(delays, 9), 9);
        },
      ),
      { numRuns: 20 },
    ));
});

describe('infinite lookback', () => {
  const program = trace({ alpha: f64('T', 'S'), energy: f64('T', 'S') }, ({ alpha, energy }) => ({
    out: expectedLookback(alpha, energy),
  }));

  it('is the softmax over what lies behind, for a head that has stopped', async () => {
    // At the second token, energies 0 and log 3: weights 1/4 and 3/4.
    const out = await run(program, { alpha: matrix([[0, 1, 0]]), energy: matrix([[0, Math.log(3), 7]]) });
    [0.25, 0.75, 0].forEach((weight, j) => {
      expect(out[j]).toBeCloseTo(weight, 12);
    });
  });

  it('keeps the mass of the alignment where energies are a thousand apart', async () => {
    const out = await run(program, { alpha: matrix([[0.5, 0.25, 0.25]]), energy: matrix([[-1000, 0, 1000]]) });
    expect(out.reduce((sum, weight) => sum + weight)).toBeCloseTo(1, 9);
    expect(out[2]).toBeCloseTo(0.25, 9);
  });
});
