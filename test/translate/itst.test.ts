import { describe, expect, it } from 'vitest';
import { Inference } from '../../src/optim/index.js';
import { Random } from '../../src/random.js';
import { concat, constant, exp, f64, i64, lower, Session, sum, type Tensor, trace } from '../../src/tensor/index.js';
import { IncrementalModel } from '../../src/translate/decode/incremental-model.js';
import { TokenStream } from '../../src/translate/decode/stream.js';
import { createStepModel } from '../../src/translate/decode/translator.js';
import { thresholdAt, UNLIMITED } from '../../src/translate/monotonic/config.js';
import { translateByTransport, transportLosses } from '../../src/translate/monotonic/itst.js';
import { itst } from '../../src/translate/policies/itst.js';
import { decidingAttention } from '../../src/translate/trained.js';
import { checkGradient, randomValue } from '../tensor/check-gradient.js';
import { VOCABULARY } from './decode-models.js';
import { sureArena, tinyMonotonic, wholeMonotonic } from './monotonic-models.js';
import { policyCases } from './policy-suite.js';

const SOURCE = [5, 9, 4, 12, 7, 13, 6, 2];

/** Random parameters with which tokens receive a unit of information from about five source tokens. */
function randomTransport(decoderLayers: number, seed: number) {
  const model = tinyMonotonic('itst', { decoderLayers });
  const arena = sureArena(model, seed);
  for (const name of arena.names) {
    const values = arena.value(name) as Float32Array;
    if (name.endsWith('monotonic_bias')) values.fill(-2);
    else if (name.includes('monotonic_')) values.set(values.map((value) => value / 20));
  }
  return { model, arena };
}

describe('information transport, step by step', () => {
  it.each([
    [4, 0.3],
    [6, 0.9],
  ])('reads and writes what one layer was trained to (seed %i, δ = %f)', async (seed, delta) => {
    const { model, arena } = randomTransport(1, seed);
    const stepModel = await createStepModel(model, arena, { beam: 3 }, decidingAttention(model));
    const stream = new TokenStream([new IncrementalModel(stepModel)], itst({ delta }), { beam: 1, earlyEnd: 'block' });
    await stream.push(SOURCE.slice(0, -1));
    await stream.end();
    const { tokens, delays } = stream.decoded;
    await stepModel.close();
    expect(tokens.length).toBeGreaterThan(2);

    // The training program, with the tokens that were written as the target.
    // After twelve tokens for one that was read, the policy reads whatever the information.
    const written = [...tokens].slice(0, 12);
    const whole = await wholeMonotonic(model, arena, SOURCE, [2, ...written], delta);
    let read = 0;
    written.forEach((token, i) => {
      read = Math.max(read, Math.round(whole.delays[i]));
      expect(delays[i]).toBe(Math.min(read, SOURCE.length - 1));
      const allowed = whole.scores[i].map((score, id) => (id < 2 || (id === 2 && read < 8) ? -1e9 : score));
      if (read < SOURCE.length) expect(token).toBe(allowed.indexOf(Math.max(...allowed)));
    });
    expect(new Set(delays.slice(0, 12)).size).toBeGreaterThan(1);
  });

  it('says what the next token has received in the layer that has received least', async () => {
    const { model, arena } = randomTransport(2, 4);
    const stepModel = await createStepModel(model, arena, { beam: 3 }, decidingAttention(model));
    const whole = await Inference.create({
      inputs: { source: i64('S', 1), lengths: i64(1), previous: i64('T', 1) },
      arena,
      model: (p, { source, lengths, previous }) => {
        const thresholds = constant([UNLIMITED], 'f32', [1]);
        const { information } = translateByTransport(p, model, { ids: source, lengths }, previous, thresholds);
        return { received: sum(exp(information), { axes: [-1] }) }; // [B, L, T]
      },
    });
    const integers = (values: readonly number[], ...shape: number[]) => ({
      data: BigInt64Array.from(values, BigInt),
      shape,
    });
    const [source, target] = [stepModel.source(1), stepModel.target(1)];
    for (const [i, token] of SOURCE.entries()) {
      await stepModel.read(source, [token], [i]);
      const read = i + 1;
      const { readiness } = await stepModel.write(target, source.memory, {
        tokens: [[2, 6, 11]],
        lengths: [0],
        visible: [read],
      });
      target.truncate(0);
      const { received } = await whole.run({
        source: integers(SOURCE.slice(0, read), read, 1),
        lengths: integers([read], 1),
        previous: integers([2, 6, 11], 3, 1),
      });
      const layers = [received.data[2], received.data[5]].map(Number);
      expect(layers[0]).not.toBeCloseTo(layers[1], 2);
      expect(readiness?.[0]).toBeCloseTo(Math.min(...layers), 5);
    }
    await whole.close();
    await stepModel.close();
  });
});

describe('the losses of information transport', () => {
  const lengths = { source: constant([3, 2], 'i64', [2]), target: constant([2, 3], 'i64', [2]) };
  const losses = async (information: readonly number[]): Promise<Record<'cost' | 'distance', number[]>> => {
    const layers = information.length / 18;
    const session = await Session.create(
      lower(trace({ x: f64(2, layers, 'T', 'S') }, ({ x }) => ({ ...transportLosses(x, lengths) }))),
    );
    const { cost, distance } = await session.run({
      x: { data: Float64Array.from(information, Math.log), shape: [2, layers, 3, 3] },
    });
    await session.close();
    return { cost: Array.from(cost.data, Number), distance: Array.from(distance.data, Number) };
  };

  const none = 1e-300;
  // |x| = 3, |y| = 2, diagonal at 1.5 and 3; |x| = 2, |y| = 3, diagonal at 2/3, 4/3 and 2. The rest is padding.
  const first = [none, none, 0.5, 0.25, 0.75, 0.5, 9, 9, 9];
  const second = [none, 1, none, 1, none, none, 0.5, none, none];

  it('are those of a hand-made matrix', async () => {
    const { cost, distance } = await losses([...first, ...second]);
    // Sentence 1: row 1 all at 3, 1.5 off, half a token dear; row 2 of sum 1.5: 1/6 at 1, one token dear. 6 = |x||y|.
    expect(cost[0]).toBeCloseTo((0.5 + 1 / 6) / 6, 12);
    // The shares are (0, 0, 1) and (1/6, 1/2, 1/3): 0.5, 1/12, 1/4 and 1/6 off.
    expect(distance[0]).toBeCloseTo(Math.sqrt(36 + 1 + 9 + 4) / 12, 12);
    // Sentence 2: 1 1/3, 1/3 and 1 off: a third of a token dear. Row 3 lacks a half.
    expect(cost[1]).toBeCloseTo(1 / 3 / 6, 12);
    expect(distance[1]).toBeCloseTo(0.5, 12);
  });

  it('are a mean and a norm over the layers', async () => {
    const perfect = [none, none, 1, none, none, 1, 9, 9, 9];
    const { cost, distance } = await losses([...first, ...perfect, ...second, ...second]);
    expect(cost[0]).toBeCloseTo(((0.5 + 1 / 6) / 6 + 0.5 / 6) / 2, 12);
    expect(distance[0]).toBeCloseTo(Math.sqrt(36 + 1 + 9 + 4) / 12, 12);
    expect(distance[1]).toBeCloseTo(0.5 * Math.SQRT2, 12);
  });

  it('have the gradients of their differences', async () => {
    const energies = randomValue(new Random(2), [2, 2, 3, 3]);
    const each = (x: Tensor): Tensor => {
      const { cost, distance } = transportLosses(x, lengths);
      return concat([cost, distance], 0);
    };
    await checkGradient(each, [energies], { named: [['', '', 'T', 'S']] });
  });
});

describe('the threshold of training', () => {
  it('falls from 1 to δ_min once it is applied', () => {
    const schedule = { least: 0.5, decay: 1000, after: 10 };
    const planned = 1e6;
    expect(thresholdAt(schedule, 9, planned)).toBe(UNLIMITED);
    // 0.5 + 0.5 e^−1
    expect(thresholdAt(schedule, 1000, planned)).toBeCloseTo(0.683939720586, 12);
    expect(thresholdAt(schedule, 1e6, planned)).toBe(0.5);
    expect(thresholdAt({ least: 1, decay: 1, after: 0 }, 0, planned)).toBe(1);
  });

  it('is applied from a tenth of the training on, and falls until its end', () => {
    const schedule = { least: 0.5, decay: null, after: null };
    expect(thresholdAt(schedule, 99, 1000)).toBe(UNLIMITED);
    expect(thresholdAt(schedule, 100, 1000)).toBeCloseTo(0.5 + 0.5 * Math.exp(-0.1), 12);
    expect(thresholdAt(schedule, 1000, 1000)).toBeCloseTo(0.683939720586, 12);
  });
});

policyCases(
  'itst',
  itst({ delta: 0.6 }),
  async () => {
    const { model, arena } = randomTransport(2, 4);
    const steps = await createStepModel(model, arena, { beam: 3 }, decidingAttention(model));
    return { models: [new IncrementalModel(steps)], vocabulary: VOCABULARY, close: () => steps.close() };
  },
  { runs: 5 },
);
