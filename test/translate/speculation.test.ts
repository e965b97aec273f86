import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeBatch } from '../../src/translate/decode/batch.js';
import { IncrementalModel } from '../../src/translate/decode/incremental-model.js';
import type { StepModel } from '../../src/translate/decode/step-model.js';
import { TokenStream } from '../../src/translate/decode/stream.js';
import type { TokenModel } from '../../src/translate/decode/token-model.js';
import { createStepModel } from '../../src/translate/decode/translator.js';
import { waitK } from '../../src/translate/policies/wait-k.js';
import { special } from '../../src/translate/text/vocabulary.js';
import { randomArena, tinyModel } from './decode-models.js';
import { stubModel } from './stub-model.js';

const END = special.eos;

async function stream(model: TokenModel, source: readonly number[], options: object) {
  const translation = new TokenStream([model], waitK(2), options);
  const written: number[][] = [];
  for (const token of source) written.push(await translation.push([token]));
  await translation.end();
  return { written, decoded: translation.decoded };
}

describe('speculation before the end of the source', () => {
  it('writes the first token of what is best some tokens later, with the same delay', async () => {
    // 7 is likelier than 8, but nothing continues well after it: .6 · .4 = .24 against .4 · .9 = .36.
    const model = stubModel(({ prefix }) => {
      if (prefix.length === 0) return [[7, 0.6], [8, 0.4]]; // biome-ignore format: pairs
      return prefix.at(-1) === 7 ? [[9, 0.4], [10, 0.3], [11, 0.3]] : [[9, 0.9], [END, 0.1]]; // biome-ignore format: pairs
    });
    const first = async (speculate: number, beam = 2) => {
      const { written, decoded } = await stream(model, [4, 5, 6], { beam, speculate });
      return [written[1], decoded.delays[0]];
    };
    expect(await first(0)).toEqual([[7], 2]);
    expect(await first(1)).toEqual([[8], 2]);
    // One attempt alone is the greedy one.
    expect(await first(1, 1)).toEqual([[7], 2]);
  });

  it('may end a sentence early, unless that is blocked', async () => {
    // The end has .45, going on .55 · .5 at best: means of log .45 and of log .275 / 2 = log .524.
    const model = stubModel(
      ({ prefix }) =>
      prefix.length === 0 ? [[7, 0.55], [END, 0.45]] : [[8, 0.5], [9, 0.5]], // biome-ignore format: pairs
    );
    const likelier = stubModel(
      ({ prefix }) =>
      prefix.length === 0 ? [[7, 0.3], [END, 0.7]] : [[8, 0.5], [9, 0.5]], // biome-ignore format: pairs
    );
    const of = async (from: TokenModel, earlyEnd: 'allow' | 'block') =>
      (await stream(from, [4, 5, 6], { beam: 2, speculate: 1, earlyEnd })).decoded;
    expect((await of(model, 'allow')).tokens[0]).toBe(7);
    expect(await of(likelier, 'allow')).toMatchObject({ endedEarly: true, tokens: Int32Array.of() });
    expect((await of(likelier, 'block')).tokens[0]).toBe(7);
  });
});

describe('speculation with a trained model', () => {
  let steps: StepModel;
  let model: IncrementalModel;
  beforeAll(async () => {
    const shape = tinyModel();
    steps = await createStepModel(shape, randomArena(shape, 8));
    model = new IncrementalModel(steps);
  });
  afterAll(() => steps.close());

  const sources = Array.from({ length: 12 }, (_, i) =>
    Array.from({ length: 3 + (i % 5) }, (_, j) => 4 + ((5 * i + 3 * j) % 13)),
  );

  it('gives in batches what it gives in streams, changes what is written, and sees nothing that has not been read', async () => {
    const options = { beam: 3, speculate: 2, earlyEnd: 'block' } as const;
    const ended = sources.map((source) => [...source, END]);
    const batch = await decodeBatch([model], ended, waitK(2), options);
    const greedy = await decodeBatch([model], ended, waitK(2), { ...options, speculate: 0 });
    let changed = 0;
    for (const [i, source] of sources.entries()) {
      const { written, decoded } = await stream(model, source, options);
      expect(decoded).toEqual(batch[i]);
      expect([...decoded.delays].slice(0, source.length - 1)).toEqual(source.slice(1).map((_, at) => at + 2));
      if (written.flat().join() !== [...greedy[i].tokens].slice(0, source.length - 1).join()) changed++;
      const other = await stream(model, [...source.slice(0, -1), 4 + ((source.at(-1)! - 3) % 13)], options);
      expect(other.written.slice(0, -1)).toEqual(written.slice(0, -1));
    }
    expect(changed).toBeGreaterThan(0);
    const alone = await decodeBatch([model], ended, waitK(2), { ...options, beam: 1 });
    const one = await decodeBatch([model], ended, waitK(2), { beam: 1, earlyEnd: 'block' });
    expect(alone).toEqual(one);
  });
});
