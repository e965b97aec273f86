import { describe, expect, it } from 'vitest';
import { Inference, traceModel } from '../../src/optim/index.js';
import { Random } from '../../src/random.js';
import {
  cast,
  constant,
  exp,
  expandDims,
  f64,
  forwardAlgorithm,
  i64,
  linear,
  logSoftmax,
  lower,
  mul,
  range,
  reshape,
  Session,
  sigmoid,
  sub,
  type Tensor,
  trace,
  transpose,
} from '../../src/tensor/index.js';
import { IncrementalModel } from '../../src/translate/decode/incremental-model.js';
import { createStepModel } from '../../src/translate/decode/translator.js';
import { lossFeeds, lossInputs, lossModel, outputWeight } from '../../src/translate/model/transformer.js';
import { type MonotonicModel, monotonicModel } from '../../src/translate/monotonic/config.js';
import {
  choiceEnergies,
  decodeStates,
  hiddenLosses,
  moments,
  momentTransitions,
} from '../../src/translate/monotonic/hmt.js';
import { monotonicInputs, monotonicLossModel } from '../../src/translate/monotonic/loss.js';
import { hmt } from '../../src/translate/policies/hmt.js';
import { decidingAttention } from '../../src/translate/trained.js';
import { checkGradient, randomValue } from '../tensor/check-gradient.js';
import { randomArena, tinyModel, VOCABULARY } from './decode-models.js';
import { policyCases } from './policy-suite.js';

const tinyHmt = (first: number, states: number): MonotonicModel =>
  monotonicModel(tinyModel({ dropout: 0, attentionDropout: 0 }), 'hmt', { first, states });

function randomHmt(model: MonotonicModel, seed: number) {
  const { parameters } = traceModel(monotonicLossModel(model, { smoothing: 0, varianceWeight: 1 }), monotonicInputs);
  return randomArena(model, seed, parameters);
}

describe('the choice of moments', () => {
  // Two sentences of 4 and 9 tokens; three target tokens with moments 2, 3, then 3, 4, then 4, 5, the first ending at 4.
  const lengths = [4, 9];
  const read = [
    [2, 3],
    [3, 4],
    [4, 5],
  ].map((row) => lengths.map((length) => row.map((t) => Math.min(t, length))));
  const moment = constant(read.flat(2), 'i64', [3, 2, 2]);

  /** Every sequence of moments with its probability: each token takes its first open moment with p, else the second. */
  function enumerated(p: readonly number[][], b: number): { k: number[]; probability: number }[] {
    const go = (i: number, before: number): { k: number[]; probability: number }[] => {
      if (i === 3) return [{ k: [], probability: 1 }];
      const [first, second] = read[i][b];
      const take = first >= before ? p[i][b] : 0;
      const then = (k: number, t: number, share: number) =>
        share === 0 ? [] : go(i + 1, t).map((rest) => ({ k: [k, ...rest.k], probability: share * rest.probability }));
      return [...then(0, first, take), ...then(1, second, 1 - take)];
    };
    return go(0, 0);
  }

  it('is that of all sequences in which no token is written before an earlier one', async () => {
    const energies = randomValue(new Random(5), [3, 2, 2]);
    const emissions = randomValue(new Random(6), [3, 2, 2]);
    const program = trace({ e: f64(3, 2, 2), o: f64(3, 2, 2) }, ({ e, o }) => {
      const transitions = momentTransitions(e, moment);
      return {
        chosen: exp(forwardAlgorithm(transitions)),
        spoken: exp(forwardAlgorithm(sub(transitions, expandDims(o, 2)))),
      };
    });
    const session = await Session.create(lower(program));
    const { chosen, spoken } = await session.run({ e: energies, o: emissions });
    await session.close();
    const at = (x: { data: ArrayLike<number | bigint> }, i: number, b: number, k: number) =>
      Number(x.data[i * 4 + b * 2 + k]);
    const p = [0, 1, 2].map((i) => [0, 1].map((b) => 1 / (1 + Math.exp(-at(energies, i, b, 0)))));
    for (const b of [0, 1]) {
      const all = enumerated(p, b);
      expect(all.reduce((sum, { probability }) => sum + probability, 0)).toBeCloseTo(1, 12);
      for (const k of [0, 1]) {
        for (const i of [0, 1, 2]) {
          const with_ = all.filter((one) => one.k[i] === k).reduce((sum, { probability }) => sum + probability, 0);
          expect(at(chosen, i, b, k)).toBeCloseTo(with_, 12);
        }
        const whole = all
          .filter((one) => one.k[2] === k)
          .reduce((sum, { k: path, probability }) => {
            const loss = path.reduce((total, state, i) => total + at(emissions, i, b, state), 0);
            return sum + probability * Math.exp(-loss);
          }, 0);
        expect(at(spoken, 2, b, k)).toBeCloseTo(whole, 12);
      }
    }
  });

  it('has the gradients of its differences', async () => {
    const energies = randomValue(new Random(5), [3, 2, 2]);
    const emissions = randomValue(new Random(6), [3, 2, 2]);
    const spoken = (e: Tensor, o: Tensor): Tensor =>
      forwardAlgorithm(sub(momentTransitions(e, moment), expandDims(o, 2)));
    await checkGradient(spoken, [energies, emissions]);
    await checkGradient((e) => mul(exp(forwardAlgorithm(momentTransitions(e, moment))), 3), [energies]);
  });
});

const BATCH = {
  source: Int32Array.of(5, 8, 9, 2, 4, 1, 12, 1, 2, 1),
  target: Int32Array.of(6, 11, 11, 2, 8, 1, 2, 1),
  sourceLengths: Int32Array.of(5, 2),
  targetLengths: Int32Array.of(4, 2),
  indices: Int32Array.of(0, 1),
  size: 2,
  sourceLength: 5,
  targetLength: 4,
  epoch: 0,
  split: 'train' as const,
};

it('is wait-k where there is one moment for each token', async () => {
  const model = tinyHmt(2, 1);
  const arena = randomHmt(model, 4);
  const hidden = await Inference.create({
    inputs: lossInputs,
    arena,
    model: (p, { source, sourceLengths, previous, target, targetLengths }) => {
      const wide = (x: Tensor): Tensor => cast(x, 'i64');
      const lengths = { source: wide(sourceLengths), target: wide(targetLengths) };
      const pair = { previous: wide(previous), target: wide(target) };
      return { ...hiddenLosses(p, model, { ids: wide(source), lengths: lengths.source }, pair, lengths, 0.1) };
    },
  });
  const plain = await Inference.create({ inputs: lossInputs, arena, model: lossModel(model, { smoothing: 0.1 }) });
  const feeds = lossFeeds(BATCH, Int32Array.of(2, 2), Float32Array.of(1, 1));
  const [own, expected] = [await hidden.run(feeds), await plain.run(feeds, { outputs: ['plain', 'smoothed'] })];
  await hidden.close();
  await plain.close();
  for (const b of [0, 1]) {
    expect(own.marginal.data[b]).toBeCloseTo(Number(expected.plain.data[b]), 4);
    expect(own.stateLoss.data[b]).toBeCloseTo(Number(expected.smoothed.data[b]), 4);
    expect(own.latency.data[b]).toBe(0);
  }
});

const SOURCE = [5, 9, 4, 12, 7, 13, 6, 2];
const PREVIOUS = [2, 6, 11, 8, 15, 4, 9];

describe('step by step', () => {
  it.each([
    [2, 3],
    [-1, 4],
  ])('the states are those of the whole model, first moment %i of %i', async (first, K) => {
    const model = tinyHmt(first, K);
    const arena = randomHmt(model, 8);
    const [S, T] = [SOURCE.length, PREVIOUS.length];
    const whole = await Inference.create({
      inputs: { source: i64(S, 1), previous: i64(T, 1) },
      arena,
      model: (p, { source, previous }) => {
        const lengths = constant([S], 'i64', [1]);
        const read = moments(expandDims(range(T), 0), model.candidates!, reshape(lengths, [1, 1, 1]));
        const { states, memory } = decodeStates(p, model, { ids: source, lengths }, previous, read);
        const energy = choiceEnergies(p, states, memory, transpose(read, [1, 0]), model);
        return { out: logSoftmax(linear(states, outputWeight(p, model))), chosen: sigmoid(energy) };
      },
    });
    const ids = (values: readonly number[]) => ({
      data: BigInt64Array.from(values, BigInt),
      shape: [values.length, 1],
    });
    const { out, chosen } = await whole.run({ source: ids(SOURCE), previous: ids(PREVIOUS) });
    await whole.close();

    const options = { beam: 3, redecodes: true };
    const steps = await createStepModel(model, arena, options, decidingAttention(model));
    const source = steps.source(1);
    for (let read = 1; read <= S; read++) {
      await steps.read(source, [SOURCE[read - 1]], [read - 1]);
      // All at once, and token by token over what is kept.
      for (const pieces of [[PREVIOUS.length], [2, 1, 4], [1, 1, 1, 1, 1, 1, 1]]) {
        const target = steps.target(1);
        let taken = 0;
        for (const size of pieces) {
          const { tokens, scores, readiness } = await steps.write(target, source.memory, {
            tokens: [PREVIOUS.slice(taken, taken + size)],
            lengths: [taken],
            visible: [read],
            ended: [read === S],
          });
          taken += size;
          const i = taken - 1;
          const k = read - first - i;
          if (k < 0) expect(readiness?.[0]).toBe(0);
          else if (k >= K - 1) expect(readiness?.[0]).toBe(1);
          else expect(readiness?.[0]).toBeCloseTo(Number(chosen.data[i * K + k]), 5);
          // Only at moments that have come is there a state of the whole model to compare with.
          if (k < 0 || (k >= K && read < S)) continue;
          const row = (i * K + Math.min(k, K - 1)) * VOCABULARY;
          for (const c of [0, 1, 2]) expect(scores[c]).toBeCloseTo(Number(out.data[row + tokens[c]]), 4);
        }
      }
    }
    await steps.close();
  });
});

policyCases(
  'hmt',
  hmt(),
  async () => {
    const model = tinyHmt(2, 3);
    const arena = randomHmt(model, 8);
    const steps = await createStepModel(model, arena, { beam: 3, redecodes: true }, decidingAttention(model));
    return { models: [new IncrementalModel(steps)], vocabulary: VOCABULARY, close: () => steps.close() };
  },
  { runs: 5 },
);
