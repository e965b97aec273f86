import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { attentionOver, linear } from '../../src/nn/index.js';
import { Inference } from '../../src/optim/index.js';
import {
  concat,
  dimension,
  i64,
  matmul,
  mul,
  reshape,
  softmax,
  type Tensor,
  transpose,
  type Value,
} from '../../src/tensor/index.js';
import { IncrementalModel } from '../../src/translate/decode/incremental-model.js';
import type { StepModel } from '../../src/translate/decode/step-model.js';
import { createStepModel } from '../../src/translate/decode/translator.js';
import { evaluationMode } from '../../src/translate/model/config.js';
import { decode, encode, layerOptions } from '../../src/translate/model/transformer.js';
import { special } from '../../src/translate/text/vocabulary.js';
import { randomArena, tinyModel, VOCABULARY } from './decode-models.js';

const shape = tinyModel();
const arena = randomArena(shape, 21);
const inputs = { source: i64('S', 1), previous: i64('T', 1) };

/** Attention of every head of every layer of the whole model, not incremental, when all of the source is seen: [L·H, T, S]. */
async function wholeAttention(source: readonly number[], previous: readonly number[]): Promise<Value> {
  const model = evaluationMode(shape);
  const { width, heads } = model;
  const inference = await Inference.create({
    inputs,
    arena,
    model: (p, { source: ids, previous: tokens }) => {
      const memory = encode(p, model, { ids, lengths: dimension(ids.shape[0]) });
      const weights: Tensor[] = [];
      const apart = (x: Tensor): Tensor => transpose(reshape(x, [x.shape[0], heads, width / heads]), [1, 0, 2]); // [H, T, d]
      decode(p, model, tokens, (cross, x) => {
        const query = mul(apart(linear(cross.under('q_proj'), x, width)), 1 / Math.sqrt(width / heads));
        weights.push(softmax(matmul(query, apart(linear(cross.under('k_proj'), memory, width)), { transB: true })));
        return attentionOver(memory, undefined, layerOptions(model))(cross, x);
      });
      return { out: concat(weights, 0) };
    },
  });
  const column = (ids: readonly number[]): Value => ({
    data: BigInt64Array.from(ids.map(BigInt)),
    shape: [ids.length, 1],
  });
  const { out } = await inference.run({ source: column(source), previous: column(previous) });
  await inference.close();
  return out;
}

describe('the attention that a policy sees', () => {
  let steps: StepModel;
  beforeAll(async () => {
    steps = await createStepModel(shape, arena);
  });
  afterAll(() => steps.close());

  it('is that of the chosen heads of the whole model, for sentences of different lengths together', async () => {
    const model = new IncrementalModel(steps);
    const sentences = [
      { source: [5, 9, 7, 4], prefix: [6, 11, 8] },
      { source: [12, 4, 10, 5, 8, 13, 6], prefix: [7] },
    ];
    const choices = [
      { layer: 1, heads: [2] },
      { layer: 2, heads: [1, 2] },
    ];
    for (const attention of [...choices, {}]) {
      const questions = sentences.map(({ source, prefix }) => ({
        ...{ state: model.begin(), source, prefix, read: source.length, redecode: true, attention },
      }));
      const answers = await model.propose(questions);
      for (const [row, { source, prefix }] of sentences.entries()) {
        const whole = await wholeAttention(source, [special.eos, ...prefix]);
        const [T, S] = [prefix.length + 1, source.length];
        // Of two layers, two thirds up is the second.
        const { layer = 2, heads = [1, 2] } = attention as { layer?: number; heads?: readonly number[] };
        const found = answers.attention?.[row] ?? new Float32Array();
        expect(found).toHaveLength(S);
        for (let j = 0; j < S; j++) {
          const own = heads.map((head) => Number(whole.data[(((layer - 1) * 2 + head - 1) * T + T - 1) * S + j]));
          expect(found[j]).toBeCloseTo(own.reduce((a, b) => a + b) / heads.length, 5);
        }
      }
    }
  });

  it('is there when a policy begins to look at it, and sums to 1', async () => {
    const word = fc.integer({ min: 4, max: VOCABULARY - 1 });
    const sentence = fc.array(word, { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(sentence, sentence, async (source, prefix) => {
        const model = new IncrementalModel(steps);
        const question = { state: model.begin(), source, prefix, read: source.length };
        const without = await model.propose([question]);
        expect(without.attention).toBeUndefined();
        const { attention, tokens } = await model.propose([{ ...question, attention: { heads: [1] } }]);
        expect(attention?.[0]?.reduce((a, b) => a + b)).toBeCloseTo(1, 5);
        expect(tokens).toEqual(without.tokens);
      }),
      { numRuns: 5, seed: 5 },
    );
  });
});
