import { describe, expect, it } from 'vitest';
import type { Value } from '../../src/tensor/index.js';
import { decodeInLockstep } from '../../src/translate/decode/batch.js';
import { Cache, StepModel, type StepProgram } from '../../src/translate/decode/step-model.js';
import { createStepModel } from '../../src/translate/decode/translator.js';
import { waitK } from '../../src/translate/policies/wait-k.js';
import { randomArena, tinyModel, wholeModelScores } from './decode-models.js';

const SOURCE = [5, 9, 4, 12, 7, 2];
const PREVIOUS = [2, 6, 11, 8, 15, 4, 9];

describe.each([
  { encoder: 'unidirectional' },
  { encoder: 'bidirectional' },
  { encoder: 'unidirectional', norm: 'pre', activation: 'gelu' },
  { encoder: 'bidirectional', norm: 'pre', activation: 'gelu' },
  { encoder: 'bidirectional', activation: 'swish', positions: 'marian', outputBias: true, start: 'pad' },
  { encoder: 'unidirectional', activation: 'swish', positions: 'marian', outputBias: true, scaleEmbeddings: false },
] as const)('step by step, a model with %o', (changes) => {
  it.each([1, 3, 9])('gives the scores of the whole model under wait-%i', async (k) => {
    const model = tinyModel({ ...changes, sharedEmbeddings: 'decoder' });
    const arena = randomArena(model, 7);
    const expected = await wholeModelScores(model, arena, SOURCE, PREVIOUS, k);
    const steps = await createStepModel(model, arena, { beam: 8 });

    const target = steps.target(1);
    const source = steps.source(1);
    let memory = source.memory;
    for (const [i, token] of PREVIOUS.entries()) {
      const visible = Math.min(i + k, SOURCE.length);
      if (steps.reencodes) memory = await steps.encode([SOURCE], [visible]);
      else while (memory.length < visible) await steps.read(source, [SOURCE[memory.length]], [memory.length]);
      const found = await steps.write(target, memory, { tokens: [[token]], lengths: [i], visible: [visible] });
      // Padding (1) and <s> (0) are never proposed.
      const ranked = expected[i].map((score, id) => ({ score, id })).filter(({ id }) => id > 1);
      ranked.sort((a, b) => b.score - a.score);
      expect([...found.tokens.subarray(0, 8)]).toEqual(ranked.slice(0, 8).map(({ id }) => id));
      for (let c = 0; c < 8; c++) expect(found.scores[c]).toBeCloseTo(ranked[c].score, 4);
    }
    await steps.close();
  });
});

describe('streams stepped together', () => {
  it('go as they do apart, whatever their lengths', async () => {
    const model = tinyModel({ sharedEmbeddings: 'all' });
    const steps = await createStepModel(model, randomArena(model, 3), { beam: 4 });
    const sentences = [
      { source: [5, 9, 4, 12, 7], target: [2, 6] },
      { source: [8], target: [2, 4, 4, 13, 9] },
      { source: [11, 10, 5], target: [2] },
    ];

    const streams = [];
    const apart: (readonly [number[], number[]])[] = [];
    for (const { source: words, target: written } of sentences) {
      const source = steps.source(1);
      for (const [i, word] of words.entries()) await steps.read(source, [word], [i]);
      const target = steps.target(1);
      for (const [i, token] of written.slice(0, -1).entries()) {
        await steps.write(target, source.memory, { tokens: [[token]], lengths: [i], visible: [words.length] });
      }
      streams.push({
        encoder: source.encoder!.select([0]),
        memory: source.memory.select([0]),
        target: target.select([0]),
      });
      // What follows apart: one more source token, then one more target token.
      await steps.read(source, [6], [words.length]);
      const rows = { tokens: [[written.at(-1)!]], lengths: [written.length - 1], visible: [words.length + 1] };
      const { tokens, scores } = await steps.write(target, source.memory, rows);
      apart.push([[...tokens], [...scores]]);
    }

    const source = {
      encoder: Cache.join(
        streams.map(({ encoder }) => encoder),
        'end',
      ),
      memory: steps.source(3).memory,
    };
    await steps.read(
      source,
      [6, 6, 6],
      sentences.map(({ source: words }) => words.length),
    );
    const read = streams.map(({ memory }, b) => {
      const newest = source.memory.select([b]);
      memory.append(Object.fromEntries(Object.entries(newest.feeds()).map(([name, value]) => [`new.${name}`, value])));
      return memory;
    });
    const together = await steps.write(
      Cache.join(
        streams.map(({ target }) => target),
        'end',
      ),
      Cache.join(read, 'start'),
      {
        tokens: sentences.map(({ target }) => [target.at(-1)!]),
        lengths: sentences.map(({ target }) => target.length - 1),
        visible: sentences.map(({ source: words }) => words.length + 1),
      },
    );
    const { width } = together;
    apart.forEach(([tokens, scores], b) => {
      expect([...together.tokens.subarray(b * width, (b + 1) * width)]).toEqual(tokens);
      for (let c = 0; c < width; c++) expect(together.scores[b * width + c]).toBeCloseTo(scores[c], 4);
    });
    await steps.close();
  });
});

describe('a model of whole sentences that decodes anew', () => {
  it.each(['unidirectional', 'bidirectional'] as const)(
    'sees the source so far as if it were all (%s)',
    async (encoder) => {
      const model = tinyModel({ encoder });
      const arena = randomArena(model, 8);
      const steps = await createStepModel(model, arena, { beam: 1, redecodes: true });
      const [{ tokens }] = await decodeInLockstep(steps, [SOURCE], waitK(2), { beam: 1, earlyEnd: 'block' });
      await steps.close();
      expect(tokens.length).toBeGreaterThan(3);
      for (let i = 0; i < tokens.length; i++) {
        // Token i is the best after those before it, of a sentence that consists of what has been read.
        const read = SOURCE.slice(0, Math.min(i + 2, SOURCE.length));
        const scores = (await wholeModelScores(model, arena, read, [2, ...tokens.slice(0, i)], 100)).at(-1)!;
        const allowed = scores.map((score, id) => (id > 2 ? score : Number.NEGATIVE_INFINITY));
        expect(tokens[i]).toBe(allowed.indexOf(Math.max(...allowed)));
      }
    },
  );
});

describe('a step model over programs of any kind', () => {
  /** A program that notes what it is given and answers with zeros, as many steps as there are tokens. */
  const program = (inputs: readonly string[], given: Record<string, Value>[]): StepProgram => ({
    inputs,
    outputs: inputs.includes('ended') ? ['needed'] : [],
    run: async (feeds, outputs) => {
      given.push(feeds);
      const [steps, batch] = feeds.tokens.shape;
      const zeros = (name: string): Value => {
        if (name === 'candidates') return { data: new BigInt64Array(3 * batch), shape: [batch, 3] };
        if (name === 'needed') return { data: Float32Array.of(2, 4), shape: [batch] };
        const shape = name === 'scores' ? [batch, 3] : [steps, batch, 2];
        return { data: new Float32Array(shape.reduce((a, b) => a * b)), shape };
      };
      return Object.fromEntries(outputs.map((name) => [name, zeros(name)]));
    },
    close: async () => {},
  });
  const shape = {
    ...{ width: 2, maxPositions: 9, beam: 1, redecodes: false, decoderLayers: 1, heads: 1 },
    encoder: 'unidirectional',
  } as const;
  const rows = { tokens: [[2], [2]], lengths: [0, 0], visible: [2, 3], ended: [false, true] };

  it('keeps what the inputs of the programs name', async () => {
    const given: Record<string, Value>[] = [];
    const encoder = program(['tokens', 'lengths', 'encoder.keys.0'], given);
    const decoder = program(['tokens', 'lengths', 'visible', 'decoder.keys.0', 'source.other.0'], given);
    const steps = new StepModel(encoder, decoder, shape);
    const source = steps.source(2);
    await steps.read(source, [5, 6], [0, 0]);
    expect([source.encoder!.length, source.memory.length]).toEqual([1, 1]);
    expect(source.memory.names).toEqual(['source.other.0']);
    const found = await steps.write(steps.target(2), source.memory, rows);
    expect(given.map((feeds) => Object.keys(feeds))).toEqual([encoder.inputs, decoder.inputs]);
    expect(found.wantsMore).toBeUndefined();
  });

  it('asks for more of the source where the decoder needs more than is visible, a token at a time', async () => {
    const given: Record<string, Value>[] = [];
    const decoder = program(['tokens', 'lengths', 'visible', 'ended', 'decoder.keys.0'], given);
    const steps = new StepModel(program(['tokens', 'lengths'], []), decoder, shape);
    const found = await steps.write(steps.target(2), steps.source(2).memory, rows);
    expect(given[0].ended.data).toEqual(BigInt64Array.of(0n, 1n));
    // 2 tokens are needed where 2 are visible, 4 where 3 are.
    expect(found.wantsMore).toEqual([false, true]);
    const two = {
      ...rows,
      tokens: [
        [2, 5],
        [2, 6],
      ],
    };
    await expect(steps.write(steps.target(2), steps.source(2).memory, two)).rejects.toThrow('one token per row');
  });
});
