import { describe, expect, it } from 'vitest';
import { Arena, Inference, type InputTypes, type Model, traceModel } from '../../src/optim/index.js';
import { Random } from '../../src/random.js';
import { i64, sub, type Value } from '../../src/tensor/index.js';
import { collate } from '../../src/translate/corpus/batches.js';
import { LossEvaluation } from '../../src/translate/loss-evaluation.js';
import {
  evaluationMode,
  modelSchema,
  type TranslationModel,
  translationModel,
} from '../../src/translate/model/config.js';
import { embed, lossInputs, lossModel, outputWeight, translate } from '../../src/translate/model/transformer.js';

const VOCABULARY = { source: 17, target: 13, shared: false };

function tiny(keys: object = {}): TranslationModel {
  const shape = { preset: 'tiny', width: 16, ffn: 24, heads: 2, maxPositions: 12, ...keys };
  return evaluationMode(translationModel(modelSchema.parse(shape), VOCABULARY));
}

/** An arena with start values, so that models can be run without being trained. */
function arenaOf<I extends InputTypes>(model: Model<I>, inputs: I): Arena {
  const { parameters } = traceModel(model, inputs);
  const arena = new Arena(parameters);
  for (const { name, shape, initialize } of parameters) initialize(arena.value(name), shape, new Random(name));
  return arena;
}

const arenaFor = (model: TranslationModel): Arena => arenaOf(lossModel(model, { smoothing: 0 }), lossInputs);

function ids(rows: readonly (readonly number[])[]): Value {
  const [steps, batch] = [rows[0].length, rows.length];
  const data = BigInt64Array.from({ length: steps * batch }, (_, i) => BigInt(rows[i % batch][Math.floor(i / batch)]));
  return { data, shape: [steps, batch] };
}

const vector = (values: readonly number[]): Value => ({
  data: BigInt64Array.from(values, BigInt),
  shape: [values.length],
});

const STATE_INPUTS = { source: i64('S', 'B'), lengths: i64('B'), previous: i64('T', 'B'), waits: i64('B') };

/** The decoder's states for sentences given as rows of ids. */
async function statesOf(model: TranslationModel) {
  const inference = await Inference.create({
    model: (p, { source, lengths, previous, waits }) => ({
      states: translate(p, model, { ids: source, lengths }, previous, sub(waits, 1)),
    }),
    inputs: STATE_INPUTS,
    arena: arenaFor(model),
  });
  return async (source: number[][], lengths: number[], previous: number[][], waits: number[]) => {
    const feeds = { source: ids(source), lengths: vector(lengths), previous: ids(previous), waits: vector(waits) };
    const { states } = await inference.run(feeds);
    const [, batch, width] = states.shape;
    /** State i of sentence b. */
    return (b: number, i: number) =>
      Array.from((states.data as Float32Array).subarray((i * batch + b) * width, (i * batch + b + 1) * width));
  };
}

describe.each(['unidirectional', 'bidirectional'] as const)('the %s model', (encoder) => {
  const source = [5, 6, 7, 8, 9, 10, 2];
  const previous = [2, 4, 5, 6, 7, 8, 9];

  it('sees at target position i the source up to i + m − 1, and nothing beyond', async () => {
    const states = await statesOf(tiny({ encoder }));
    for (const wait of [1, 3]) {
      const original = await states([source], [7], [previous], [wait]);
      for (let j = 0; j < source.length; j++) {
        const changed = await states([source.with(j, 15)], [7], [previous], [wait]);
        for (let i = 0; i < previous.length; i++) {
          const same = JSON.stringify(changed(0, i)) === JSON.stringify(original(0, i));
          expect(same, `wait-${wait}, source ${j} changed, target ${i}`).toBe(j > i + wait - 1);
        }
      }
    }
  });

  it('sees of the target only what has been written', async () => {
    const states = await statesOf(tiny({ encoder }));
    const original = await states([source], [7], [previous], [2]);
    const changed = await states([source], [7], [previous.with(4, 11)], [2]);
    for (let i = 0; i < 4; i++) expect(changed(0, i)).toEqual(original(0, i));
    expect(changed(0, 4)).not.toEqual(original(0, 4));
  });

  it('treats each sentence of a batch with its own wait and length as if it were alone', async () => {
    const states = await statesOf(tiny({ encoder }));
    const short = [9, 8, 7, 2];
    const both = await states([source, [...short, 1, 1, 1]], [7, 4], [previous, previous], [1, 4]);
    const alone = [await states([source], [7], [previous], [1]), await states([short], [4], [previous], [4])];
    for (let b = 0; b < 2; b++) {
      for (let i = 0; i < previous.length; i++) {
        both(b, i).forEach((value, d) => {
          expect(value).toBeCloseTo(alone[b](0, i)[d], 5);
        });
      }
    }
  });

  it('is the full-sentence model when the wait is longer than any sentence', async () => {
    const model = tiny({ encoder });
    const arena = arenaFor(model);
    const batch = pair(source, [4, 5, 6, 7, 2]);
    const losses = await Promise.all(
      [true, false].map(async (limited) => {
        const evaluation = await LossEvaluation.create(model, arena, { smoothing: 0, limited });
        return (await evaluation.sentences(batch, 1000)).plain[0];
      }),
    );
    expect(losses[0]).toBeCloseTo(losses[1], 4);
  });
});

it('padding is never seen, however long the wait, and the two encoders differ', async () => {
  const first = async (encoder: string, wait: number) => {
    const states = await statesOf(tiny({ encoder }));
    return (await states([[5, 6, 2, 1, 1]], [3], [[2, 4]], [wait]))(0, 0);
  };
  expect(await first('unidirectional', 3)).toEqual(await first('unidirectional', 9));
  expect(await first('bidirectional', 3)).toEqual(await first('bidirectional', 9));
  expect(await first('unidirectional', 3)).not.toEqual(await first('bidirectional', 3));
});

function pair(source: readonly number[], target: readonly number[]) {
  const file = (sentence: readonly number[]) => ({
    lengths: Int32Array.of(sentence.length),
    read: () => Int32Array.from(sentence),
  });
  const pairs = { count: 1, source: file(source), target: file(target), close: () => {} };
  return collate(pairs as unknown as Parameters<typeof collate>[0], Int32Array.of(0));
}

describe('the loss', () => {
  it('is that of the logits, plain and with fairseq’s label smoothing', async () => {
    const model = tiny();
    const smoothing = 0.1;
    const arena = arenaFor(model);
    const target = [4, 9, 12, 2];
    const batch = pair([5, 6, 7, 2], target);
    const evaluation = await LossEvaluation.create(model, arena, { smoothing });
    const { plain, smoothed } = await evaluation.sentences(batch, 2);

    const states = await (await statesOf(model))([[5, 6, 7, 2]], [4], [[2, 4, 9, 12]], [2]);
    const weight = arena.value('decoder.embed_tokens.weight');
    const V = VOCABULARY.target;
    let [expectedPlain, expectedSmoothed] = [0, 0];
    for (const [i, wanted] of target.entries()) {
      const logits = Array.from({ length: V }, (_, v) =>
        states(0, i).reduce((sum, x, d) => sum + x * weight[v * model.width + d], 0),
      );
      const logSum = Math.log(logits.reduce((sum, l) => sum + Math.exp(l), 0));
      expectedPlain += logSum - logits[wanted];
      // q is 1 − ε for the target and ε/(V − 1) for every other token.
      for (let v = 0; v < V; v++) {
        expectedSmoothed += (v === wanted ? 1 - smoothing : smoothing / (V - 1)) * (logSum - logits[v]);
      }
    }
    expect(plain[0]).toBeCloseTo(expectedPlain, 4);
    expect(smoothed[0]).toBeCloseTo(expectedSmoothed, 4);
  });
});

describe.each(['unidirectional', 'bidirectional'] as const)('losses under several waits, %s encoder', (encoder) => {
  it.each([true, false])('are those under each of them (limited: %s), on both sides of a shift', async (limited) => {
    const model = tiny({ encoder });
    const arena = arenaFor(model);
    // Pairs of different lengths: one of them is padded.
    const sentences = [
      [5, 6, 7, 8, 2],
      [9, 4, 2],
    ];
    const side = { lengths: Int32Array.of(5, 3), read: (i: number) => Int32Array.from(sentences[i]) };
    const pairs = { count: 2, source: side, target: side, close: () => {} };
    const batch = collate(pairs as unknown as Parameters<typeof collate>[0], Int32Array.of(0, 1));
    const evaluation = await LossEvaluation.create(model, arena, { smoothing: 0.1, limited });
    const shift = Float32Array.from({ length: arena.length }, (_, i) => Math.sin(i) / 10);
    const waits = [1, 2, 4];
    const found = await evaluation.aroundUnderWaits(batch, waits, shift);
    for (const [side, factor] of [1, -1].entries()) {
      for (const [a, wait] of waits.entries()) {
        const { plain } = await arena.shifted(shift, factor, () => evaluation.sentences(batch, wait));
        for (let b = 0; b < 2; b++) expect(found[side][a * 2 + b]).toBeCloseTo(plain[b], 4);
      }
    }
    // Waits matter only where they limit what is seen; the second pair has three tokens.
    expect(Math.abs(found[0][0] - found[0][2]) > 1e-3).toBe(limited);
    await evaluation.close();
  });
});

describe('embeddings', () => {
  it('are scaled with √d and begin at position 2, as in fairseq', async () => {
    const model = tiny();
    const inputs = { tokens: i64('T', 'B') };
    const embedded: Model<typeof inputs> = (p, { tokens }) => ({ x: embed(p, model, 'encoder', tokens) });
    const arena = arenaOf(embedded, inputs);
    const inference = await Inference.create({ model: embedded, inputs, arena });
    const { x } = await inference.run({ tokens: ids([[7, 7]]) });
    const table = arena.value('encoder.embed_tokens.weight');
    for (const t of [0, 1]) {
      for (let i = 0; i < 8; i++) {
        const angle = (t + 2) * 10000 ** (-i / 7);
        expect(x.data[t * 16 + i]).toBeCloseTo(4 * table[7 * 16 + i] + Math.sin(angle), 5);
        expect(x.data[t * 16 + 8 + i]).toBeCloseTo(4 * table[7 * 16 + 8 + i] + Math.cos(angle), 5);
      }
    }
  });

  it('are shared as the model says', () => {
    const tables = (sharedEmbeddings: string) => {
      const vocabulary = { source: 13, target: 13, shared: true };
      const model = translationModel(modelSchema.parse({ preset: 'tiny', sharedEmbeddings }), vocabulary);
      return arenaFor(model).names.filter((name) => /embed|projection/.test(name));
    };
    expect(tables('all')).toEqual(['encoder.embed_tokens.weight']);
    expect(tables('decoder')).toEqual(['encoder.embed_tokens.weight', 'decoder.embed_tokens.weight']);
    expect(tables('none')).toEqual([
      'encoder.embed_tokens.weight',
      'decoder.embed_tokens.weight',
      'decoder.output_projection.weight',
    ]);
  });

  it('cannot be shared between two vocabularies', () => {
    expect(() => tiny({ sharedEmbeddings: 'all' })).toThrow(/sharedEmbeddings.*one vocabulary/);
  });
});

describe('sizes', () => {
  it('give the parameters of the Multi30k model', () => {
    // With d 256, ffn 512 and a vocabulary of 5,978 (all embeddings in one table):
    // table V·d; attention 4(d² + d); feed-forward 2·d·ffn + ffn + d; normalisation 2d.
    const [V, d, ffn] = [5978, 256, 512];
    const [attention, feedForward, norm] = [4 * (d * d + d), 2 * d * ffn + ffn + d, 2 * d];
    const expected = V * d + 3 * (attention + feedForward + 2 * norm) + 3 * (2 * attention + feedForward + 3 * norm);
    const keys = modelSchema.parse({ preset: 'small', encoderLayers: 3, decoderLayers: 3, ffn });
    const model = translationModel(keys, { source: V, target: V, shared: true });
    expect(arenaFor(model).parameterCount).toBe(expected);
    expect(expected / 1e6).toBeCloseTo(5.48, 2);
  });

  it('that do not fit are refused', () => {
    expect(() => tiny({ heads: 3 })).toThrow(/heads: the width 16 is not divisible by 3 heads/);
  });
});

it('the output projection is the target embedding unless tables are apart', () => {
  const model = tiny();
  const inputs = { previous: i64('T', 'B') };
  const both: Model<typeof inputs> = (p, { previous }) => {
    embed(p, model, 'decoder', previous);
    return { weight: outputWeight(p, model) };
  };
  expect(arenaOf(both, inputs).names).toEqual(['decoder.embed_tokens.weight']);
});
