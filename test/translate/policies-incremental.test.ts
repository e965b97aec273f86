import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { IncrementalModel } from '../../src/translate/decode/incremental-model.js';
import type { StepModel } from '../../src/translate/decode/step-model.js';
import { answerRow } from '../../src/translate/decode/token-model.js';
import { createStepModel } from '../../src/translate/decode/translator.js';
import { special } from '../../src/translate/text/vocabulary.js';
import { randomArena, tinyModel, VOCABULARY, wholeModelScores } from './decode-models.js';

const word = fc.integer({ min: 4, max: VOCABULARY - 1 });
/** A wait that no sentence is as long as. */
const EVERYTHING = 100;

/** Questions about one sentence in any order: the prefix grows, the other things jump about. */
const sentence = fc.record({
  source: fc.array(word, { minLength: 4, maxLength: 8 }).map((words) => [...words, special.eos]),
  target: fc.array(word, { minLength: 3, maxLength: 5 }),
  asks: fc.array(fc.record({ read: fc.nat(), wait: fc.integer({ min: 1, max: 4 }), grows: fc.boolean() }), {
    minLength: 3,
    maxLength: 8,
  }),
});

describe.each([
  ['unidirectional', 'as in training for wait-m'],
  ['unidirectional', 'anew'],
  ['bidirectional', 'anew'],
] as const)('a %s Transformer that decodes %s', (encoder, way) => {
  let steps: StepModel;
  const shape = tinyModel({ encoder });
  const arena = randomArena(shape, 4);
  beforeAll(async () => {
    steps = await createStepModel(shape, arena);
  });
  afterAll(() => steps.close());

  it('answers as the whole model does, whatever was asked before and whoever asks beside', async () => {
    const redecode = way === 'anew';
    await fc.assert(
      fc.asyncProperty(fc.array(sentence, { minLength: 1, maxLength: 3 }), fc.boolean(), async (all, listens) => {
        const model = new IncrementalModel(steps);
        const states = all.map(() => model.begin());
        const lengths = all.map(() => 0);
        const turns = Math.max(...all.map(({ asks }) => asks.length));
        for (let turn = 0; turn < turns; turn++) {
          const questions = all.flatMap(({ source, target, asks }, i) => {
            if (turn >= asks.length) return [];
            const { read, wait, grows } = asks[turn];
            if (grows) lengths[i] = Math.min(lengths[i] + 1, target.length);
            const prefix = target.slice(0, lengths[i]);
            // For wait-m the next position must have been read up to; see `Interpreter`.
            const least = redecode ? 1 : Math.min(prefix.length + wait, source.length);
            const own = least + (read % (source.length - least + 1));
            return [
              {
                state: states[i],
                source: source.slice(0, own),
                read: own,
                prefix,
                ...(redecode ? { redecode } : { wait }),
              },
            ];
          });
          if (listens) await model.readAhead(questions);
          const answers = await model.propose(questions);
          // What is kept decides on the last answer; to compute the whole model for each would take long.
          if (turn < turns - 1) continue;
          for (const [row, { source, prefix, ...ask }] of questions.entries()) {
            const k = 'wait' in ask ? ask.wait! : EVERYTHING;
            const whole = await wholeModelScores(shape, arena, source, [special.eos, ...prefix], k);
            const { tokens, scores } = answerRow(answers, row);
            tokens.forEach((token, c) => {
              expect(scores[c]).toBeCloseTo(whole.at(-1)![token], 3);
            });
          }
        }
      }),
      { numRuns: 5, seed: 3 },
    );
  });
});
