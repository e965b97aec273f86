import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeInLockstep } from '../../src/translate/decode/batch.js';
import { IncrementalModel } from '../../src/translate/decode/incremental-model.js';
import { lineIds, type TextSide, TextStream, writtenText } from '../../src/translate/decode/text-stream.js';
import { createStepModel } from '../../src/translate/decode/translator.js';
import { waitK } from '../../src/translate/policies/wait-k.js';
import { parseBpeCodes } from '../../src/translate/text/bpe.js';
import { textPipeline } from '../../src/translate/text/pipeline.js';
import { Vocabulary } from '../../src/translate/text/vocabulary.js';
import { randomArena, tinyModel, VOCABULARY } from './decode-models.js';
import { stubModel } from './stub-model.js';

/** Tokens beside the four special ones: words, pieces of words, and marks that the detokeniser joins to them. */
const TOKENS = ['der', 'hund', 'sp@@', 'i@@', 'el', 'en', '.', ',', 'b@@', 'all', '(', ')', '?'];

async function side(language: string): Promise<TextSide> {
  const config = { language, lowercase: true, normalize: false, tokenizer: { kind: 'moses' }, bpe: {} } as const;
  const codes = parseBpeCodes('#version: 0.2\nd e\nde r</w>\ne l</w>\ns p\n', 'codes');
  return {
    pipeline: await textPipeline(config, { codes }),
    vocabulary: new Vocabulary(TOKENS.map((token) => [token, 1])),
  };
}

describe('a stream of text', () => {
  it('writes, piece by piece, the line that the batch writes', async () => {
    expect(TOKENS).toHaveLength(VOCABULARY - 4);
    const [source, target] = [await side('de'), await side('de')];
    const shape = tinyModel();
    const model = await createStepModel(shape, randomArena(shape, 8));
    const options = { beam: 2, earlyEnd: 'block' } as const;
    const words = fc.array(fc.constantFrom('Der', 'el', 'spiel,', 'hund', 'o.k.', '(der)', 'wer?'), { maxLength: 7 });
    await fc.assert(
      fc.asyncProperty(words, fc.integer({ min: 1, max: 4 }), async (sentence, k) => {
        const stream = new TextStream([new IncrementalModel(model)], source, target, waitK(k), options);
        let written = '';
        for (const word of sentence) written += await stream.push(word);
        written += await stream.end();
        const ids = lineIds(source, sentence.join(' '));
        const [decoded] = await decodeInLockstep(model, [ids], waitK(k), options);
        expect(written).toBe(target.pipeline.decode(target.vocabulary.decode(decoded.tokens)));
        expect(writtenText(target, decoded.tokens).at(-1) ?? '').toBe(written);
        expect(stream.decoded).toEqual(decoded);
      }),
      { numRuns: 40, seed: 4 },
    );
    await model.close();
  });

  it.each([
    ['jieba', { kind: 'jieba', spaces: true }],
    ['char', { kind: 'char' }],
  ] as const)('has no spaces at the ends of Chinese cut by %s, as what is evaluated', async (_, tokenizer) => {
    const config = { language: 'zh', lowercase: false, normalize: false, tokenizer };
    const source = await side('de');
    const tokens = ['▁', '写', '▁', 'A', '▁', '▁'];
    const vocabulary = new Vocabulary([...new Set(tokens)].map((token) => [token, 1]));
    const target = { pipeline: await textPipeline(config), vocabulary };
    const ids = target.vocabulary.encode(tokens);
    const model = stubModel(({ prefix }) => [[ids[prefix.length], 0.9]]);
    const shown: string[] = [];
    const options = { beam: 1, onText: (text: string) => shown.push(text) };
    const stream = new TextStream([model], source, target, waitK('full'), options);
    expect(await stream.push('hund')).toBe('');
    expect(await stream.end()).toBe('写 A');
    // A space comes with what follows it.
    expect(shown).toEqual(['写', ' A']);
    expect(Array.from(stream.decoded.tokens)).toEqual(Array.from(ids.slice(0, -1)));
    expect(target.pipeline.decode(tokens)).toBe('写 A');
    const random = fc.array(fc.constantFrom('▁', '写', '代码', 'A', '3'), { maxLength: 8 });
    fc.assert(
      fc.property(random, (some) => {
        const decoder = target.pipeline.textDecoder();
        const written = some.map((token) => decoder.push(token)).join('') + decoder.end();
        expect(written).toBe(target.pipeline.decode(some));
        expect(written).toBe(written.trim());
      }),
    );
  });

  it('with a beam of 1, shows each piece after the source has ended before the next one is computed', async () => {
    const [source, target] = [await side('de'), await side('de')];
    const ids = target.vocabulary.encode(['der', 'hund', ',', 'sp@@', 'el']);
    // All is read first; then the model is asked once for each of the five tokens and for the end.
    const shown: string[] = [];
    const before: number[] = [];
    const model = stubModel(({ prefix }) => {
      before.push(shown.length);
      return [[ids[prefix.length], 0.9]];
    });
    const options = { beam: 1, onText: (text: string) => shown.push(text) };
    const stream = new TextStream([model], source, target, waitK('full'), options);
    expect(await stream.push('hund')).toBe('');
    expect(await stream.end()).toBe('der hund, spel');
    expect(shown).toEqual(['der', ' hund', ',', ' spel']);
    // Nothing is shown in the middle of a word: sp@@ waits for el.
    expect(before).toEqual([0, 1, 2, 3, 3, 4]);
  });
});
