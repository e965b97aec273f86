import { describe, expect, it } from 'vitest';
import { writeRound } from '../../src/translate/decode/batch.js';
import { type Candidates, Sentence } from '../../src/translate/decode/search.js';
import { Cache, type StepModel } from '../../src/translate/decode/step-model.js';
import { waitK } from '../../src/translate/policies/wait-k.js';

const END = 2;

/** A cache of one step with the number of each column in it. */
function numbered(columns: number): Cache {
  const cache = new Cache(['keys'], 1, columns);
  cache.append({ 'new.keys': { data: Float32Array.from({ length: columns }, (_, i) => i), shape: [1, columns, 1] } });
  return cache;
}

const content = (cache: Cache): number[] => [...(cache.feeds().keys.data as Float32Array)];

/** A model that always proposes the same. */
function proposing(candidates: Candidates): StepModel {
  return { beam: 2, maxPositions: 50, redecodes: false, write: async () => candidates } as unknown as StepModel;
}

describe('a round of writing', () => {
  it('keeps the caches with their sentences when one leaves and another branches', async () => {
    // The first sentence ends early; the second has been read whole, and its two best continuations are 5 and 6.
    const model = proposing({
      width: 5,
      tokens: Int32Array.from([END, 4, 5, 6, 7, 5, 6, 7, 8, 9]),
      scores: Float32Array.from([-1, -2, -3, -4, -5, -1, -2, -3, -4, -5]),
    });
    const leaving = new Sentence(waitK(1), { beam: 2 }, model);
    const branching = new Sentence(waitK(1), { beam: 2 }, model);
    leaving.take(false);
    branching.take(false);
    branching.take(true);
    const group = await writeRound(model, {
      sentences: [leaving, branching],
      target: numbered(2),
      memory: numbered(2),
    });
    expect(group.sentences).toEqual([branching]);
    expect(branching.search.hypotheses.map(({ tokens }) => tokens)).toEqual([[5], [6]]);
    expect(content(group.target)).toEqual([1, 1]);
    expect(content(group.memory)).toEqual([1, 1]);
  });
});

describe('sentences that are done', () => {
  /** A model that writes 5 forever; of the sentences whose column is in `ends`, the end. It remembers what it was given. */
  function ending(ends: ReadonlySet<number>) {
    const given: { tokens: readonly (readonly number[])[]; visible: readonly number[] }[] = [];
    const write = async (target: Cache, _: Cache, { tokens, visible }: (typeof given)[number]): Promise<Candidates> => {
      given.push({ tokens, visible });
      const data = Float32Array.from(tokens, (_, column) => column);
      target.append({ 'new.keys': { data, shape: [1, tokens.length, 1] } });
      const best = tokens.flatMap((_, column) => (ends.has(column) ? [END, 5, 6] : [5, END, 6]));
      return { width: 3, tokens: Int32Array.from(best), scores: new Float32Array(best.length) };
    };
    const flags = { beam: 1, maxPositions: 50, redecodes: false, reencodes: false };
    return { model: { ...flags, write } as unknown as StepModel, given };
  }

  const group = (model: StepModel, count: number) => ({
    sentences: Array.from({ length: count }, () => {
      const sentence = new Sentence(waitK(1), { beam: 1 }, model);
      sentence.take(false);
      sentence.take(false);
      return sentence;
    }),
    target: new Cache(['keys'], 1, count),
    memory: numbered(count),
  });

  it('stay in the batch until an eighth has ended, and are not written to', async () => {
    const ends = new Set([3]);
    const { model, given } = ending(ends);
    let now = await writeRound(model, group(model, 10));
    // One of ten has ended: its column stays, and is fed what is not looked at.
    expect([now.sentences.length, now.memory.batch]).toEqual([10, 10]);
    now = await writeRound(model, now);
    expect(given[1].tokens).toEqual(Array.from({ length: 10 }, (_, i) => [i === 3 ? END : 5]));
    expect(given[1].visible).toEqual(Array.from({ length: 10 }, (_, i) => (i === 3 ? 1 : 2)));
    const [first, , , third] = now.sentences;
    expect([first.search.tokens, third.search.tokens]).toEqual([[5, 5], []]);
    // A second one: two of ten are more than an eighth, and the caches close up around both.
    ends.add(0);
    now = await writeRound(model, now);
    expect(now.sentences).toHaveLength(8);
    expect(content(now.memory)).toEqual([1, 2, 4, 5, 6, 7, 8, 9]);
    expect(content(now.target)).toEqual(Array(3).fill([1, 2, 4, 5, 6, 7, 8, 9]).flat());
  });

  it('leave an empty group when all have ended', async () => {
    const { model } = ending(new Set([0, 1]));
    expect((await writeRound(model, group(model, 2))).sentences).toEqual([]);
  });
});

describe('a cache', () => {
  it('closes up in place around the columns that are kept, and goes on', () => {
    const cache = new Cache(['keys'], 2, 4, 2);
    // Number 10·step + column, twice: the width is 2.
    const step = (number: number, columns: readonly number[]) => ({
      'new.keys': {
        data: Float32Array.from(columns.flatMap((column) => [10 * number + column, 10 * number + column])),
        shape: [1, columns.length, 2],
      },
    });
    for (const number of [0, 1]) cache.append(step(number, [0, 1, 2, 3]));
    const narrow = cache.narrowed([0, 2, 3]);
    expect(narrow.feeds().keys.shape).toEqual([2, 3, 2]);
    narrow.append(step(2, [0, 2, 3]));
    expect(content(narrow).filter((_, i) => i % 2 === 0)).toEqual([0, 2, 3, 10, 12, 13, 20, 22, 23]);
  });

  it('takes steps that were written in its own place as they are', () => {
    const cache = new Cache(['keys'], 1, 2, 1);
    cache.append({ 'new.keys': { data: Float32Array.of(1, 2), shape: [1, 2, 1] } });
    const { 'new.keys': place } = cache.room(2);
    expect(content(cache)).toEqual([1, 2]);
    place.set([3, 4, 5, 6]);
    cache.append({ 'new.keys': { data: place, shape: [2, 2, 1] } });
    expect(content(cache)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(cache.length).toBe(3);
  });

  it('joins sentences of different lengths at their start or at their end', () => {
    const filled = (values: number[]): Cache => {
      const cache = new Cache(['keys'], 1, 1, 1);
      for (const value of values) cache.append({ 'new.keys': { data: Float32Array.of(value), shape: [1, 1, 1] } });
      return cache;
    };
    const caches = [filled([1, 2, 3]), filled([4])];
    // Time-major: the two columns of each step side by side.
    expect(content(Cache.join(caches, 'start'))).toEqual([1, 4, 2, 0, 3, 0]);
    expect(content(Cache.join(caches, 'end'))).toEqual([1, 0, 2, 0, 3, 4]);
  });
});
