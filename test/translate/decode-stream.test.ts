import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeInLockstep } from '../../src/translate/decode/batch.js';
import { IncrementalModel } from '../../src/translate/decode/incremental-model.js';
import type { SearchOptions } from '../../src/translate/decode/search.js';
import type { StepModel } from '../../src/translate/decode/step-model.js';
import { type StreamEvent, TokenStream } from '../../src/translate/decode/stream.js';
import { createStepModel } from '../../src/translate/decode/translator.js';
import { waitK } from '../../src/translate/policies/wait-k.js';
import { special } from '../../src/translate/text/vocabulary.js';
import { randomArena, tinyModel, VOCABULARY } from './decode-models.js';

/** Words of a sentence, without special tokens. */
const words = fc.array(fc.integer({ min: 4, max: VOCABULARY - 1 }), { minLength: 0, maxLength: 12 });
const settings = fc.record({
  beam: fc.constantFrom(1, 3, 5),
  earlyEnd: fc.constantFrom('allow' as const, 'block' as const),
});

const ended = (sentence: readonly number[]): number[] => [...sentence, special.eos];

async function stream(model: StepModel, sentence: readonly number[], k: number, options: SearchOptions) {
  const events: StreamEvent[] = [];
  const translation = new TokenStream([new IncrementalModel(model)], waitK(k), {
    ...options,
    onEvent: (event) => events.push(event),
  });
  const tokens: number[] = [];
  for (const word of sentence) tokens.push(...(await translation.push([word])));
  tokens.push(...(await translation.end()));
  return { tokens, events, decoded: translation.decoded };
}

describe.each([
  ['unidirectional', 3, false],
  ['unidirectional', 8, false],
  ['bidirectional', 12, false],
  ['bidirectional', 3, true],
] as const)('streams of a %s random model (%i, decoding anew: %s)', (encoder, seed, redecodes) => {
  let model: StepModel;
  beforeAll(async () => {
    const shape = tinyModel({ encoder });
    model = await createStepModel(shape, randomArena(shape, seed), { redecodes });
  });
  afterAll(() => model.close());

  it('write the tokens and delays of the batch', async () => {
    const cases = fc.record({
      sentences: fc.array(words, { minLength: 1, maxLength: 6 }),
      k: fc.integer({ min: 1, max: 7 }),
      options: settings,
    });
    await fc.assert(
      fc.asyncProperty(cases, async ({ sentences, k, options }) => {
        const batch = await decodeInLockstep(model, sentences.map(ended), waitK(k), options);
        for (const [i, sentence] of sentences.entries()) {
          const { tokens, decoded } = await stream(model, sentence, k, options);
          expect(tokens).toEqual([...batch[i].tokens]);
          expect(decoded).toEqual(batch[i]);
        }
      }),
      { numRuns: 15, seed: 5 },
    );
  });

  it('write the tokens of a batch in which some have ended long before others, and of the next in its arrays', async () => {
    const sentences = Array.from({ length: 40 }, (_, i) =>
      Array.from({ length: 1 + (i % 9) }, (_, j) => 4 + ((i + 3 * j) % 13)),
    );
    for (const options of [{ beam: 1 }, { beam: 3, earlyEnd: 'block' }] as const) {
      const batch = await decodeInLockstep(model, sentences.map(ended), waitK(2), { ...options, batch: 20 });
      for (const [i, sentence] of sentences.entries()) {
        expect((await stream(model, sentence, 2, options)).decoded).toEqual(batch[i]);
      }
    }
  });

  it('do not change what is written before a later source word is read', async () => {
    const cases = fc.record({
      sentence: words.filter(({ length }) => length > 0),
      k: fc.integer({ min: 1, max: 5 }),
      options: settings,
      place: fc.nat(),
      other: fc.integer({ min: 4, max: VOCABULARY - 1 }),
    });
    let changes = 0;
    await fc.assert(
      fc.asyncProperty(cases, async ({ sentence, k, options, place, other }) => {
        const at = place % sentence.length;
        const changed = sentence.with(at, other);
        const [a, b] = await decodeInLockstep(model, [ended(sentence), ended(changed)], waitK(k), options);
        // Target i sees the source words j ≤ i + k − 1: word `at` is not seen by the first at − k + 1 target words.
        const unseen = Math.max(0, at - k + 1);
        expect([...a.tokens.slice(0, unseen)]).toEqual([...b.tokens.slice(0, unseen)]);
        if (a.tokens.join() !== b.tokens.join()) changes++;
      }),
      { numRuns: 30, seed: 6 },
    );
    // After that the word matters: otherwise the above would say nothing.
    expect(changes).toBeGreaterThan(5);
  });

  it('read k tokens, then write and read in turn', async () => {
    for (const k of [1, 3]) {
      const { events, decoded } = await stream(model, [5, 8, 4, 16, 9], k, { beam: 1, earlyEnd: 'block' });
      const actions = events.map(({ action }) => action[0]).join('');
      // Five words and the end are read; once they are, only writing is left.
      expect(actions).toMatch(new RegExp(`^R{${k}}(WR){${6 - k}}W*$`));
      expect([...decoded.delays]).toEqual([...decoded.delays].map((_, i) => Math.min(i + k, 5)));
    }
  });

  it('never write before reading, and do not end early when that is blocked', async () => {
    for (const sentence of [[4], [7, 7, 7, 7, 7, 7, 7, 7]]) {
      const { events, decoded } = await stream(model, sentence, 2, { earlyEnd: 'block' });
      expect(events[0].action).toBe('READ');
      expect(decoded.endedEarly).toBe(false);
      expect(events.filter(({ action }) => action === 'READ')).toHaveLength(sentence.length + 1);
    }
  });
});

describe('a stream', () => {
  it('translates nothing to nothing', async () => {
    const shape = tinyModel();
    const model = await createStepModel(shape, randomArena(shape, 1));
    const { tokens, events } = await stream(model, [], 1, {});
    expect({ tokens, events }).toEqual({ tokens: [], events: [] });
    const [empty, other] = await decodeInLockstep(model, [[special.eos], ended([5, 6])], waitK(1), {
      earlyEnd: 'block',
    });
    expect(empty).toEqual({ tokens: new Int32Array(), delays: new Int32Array(), end: 0, endedEarly: false });
    expect(other.tokens.length).toBeGreaterThan(0);
    await model.close();
  });

  it('refuses a sentence that is longer than the positions of the model', async () => {
    const shape = tinyModel({ maxPositions: 4 });
    const model = await createStepModel(shape, randomArena(shape, 1));
    const sentence = [5, 6, 7, 8];
    await expect(stream(model, sentence, 9, {})).rejects.toThrow(
      'has 5 tokens including its end, the model reads at most 4',
    );
    await expect(decodeInLockstep(model, [ended(sentence)], waitK(9))).rejects.toThrow('reads at most 4');
    await model.close();
  });

  it('refuses a wait of no words', () => {
    for (const k of [0, -1, 1.5, Number.NaN]) expect(() => waitK(k)).toThrow('expected a whole number of at least 1');
  });
});
