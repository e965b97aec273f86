import { describe, expect, it } from 'vitest';
import { type Candidates, Search, type SearchOptions } from '../../src/translate/decode/search.js';

const END = 2;

/** Rows of candidates, each a list of token and probability in descending order. */
function rows(...lists: readonly (readonly (readonly [token: number, p: number])[])[]): Candidates {
  return {
    width: lists[0].length,
    tokens: Int32Array.from(lists.flat().map(([token]) => token)),
    scores: Float32Array.from(lists.flat().map(([, p]) => Math.log(p))),
  };
}

const search = (options: SearchOptions = {}): Search => new Search(options, 100);

describe('while the source goes on, the search', () => {
  it('takes the best token', () => {
    const one = search();
    expect(
      one.advance(
        rows([
          [7, 0.6],
          [8, 0.3],
          [9, 0.1],
        ]),
        0,
        undefined,
      ),
    ).toEqual([0]);
    expect(one.tokens).toEqual([7]);
  });

  it('ends early where the model proposes the end', () => {
    const one = search();
    one.advance(
      rows([
        [7, 0.6],
        [8, 0.3],
        [9, 0.1],
      ]),
      0,
      undefined,
    );
    expect(
      one.advance(
        rows([
          [END, 0.5],
          [8, 0.4],
          [9, 0.1],
        ]),
        0,
        undefined,
      ),
    ).toEqual([]);
    expect(one).toMatchObject({ done: true, endedEarly: true, tokens: [7] });
  });

  it('passes over the end where that is blocked', () => {
    const one = search({ earlyEnd: 'block' });
    one.advance(
      rows([
        [END, 0.5],
        [8, 0.4],
        [9, 0.1],
      ]),
      0,
      undefined,
    );
    expect(one).toMatchObject({ done: false, endedEarly: false, tokens: [8] });
  });

  it('finds its own row among those of other sentences', () => {
    const one = search();
    one.advance(
      rows(
        [
          [4, 0.9],
          [5, 0.1],
        ],
        [
          [6, 0.9],
          [7, 0.1],
        ],
      ),
      1,
      undefined,
    );
    expect(one.tokens).toEqual([6]);
  });
});

describe('once the source has ended, the search', () => {
  it('with a beam of 1 takes the best token until the end is the best', () => {
    const one = search({ beam: 1 });
    expect(
      one.advance(
        rows([
          [7, 0.5],
          [END, 0.4],
          [9, 0.1],
        ]),
        0,
        4,
      ),
    ).toEqual([0]);
    expect(one.done).toBe(false);
    one.advance(
      rows([
        [END, 0.4],
        [7, 0.3],
        [9, 0.3],
      ]),
      0,
      4,
    );
    expect(one).toMatchObject({ done: true, endedEarly: false, tokens: [7] });
  });

  it('finds what greedy search misses', () => {
    // 4 is better than 5 at first (.6 against .4), but everything after it is unlikely:
    // p(4 6 </s>) = .6 · .3 · .4 = .072 < p(5 6 </s>) = .4 · .9 · .9 = .324, of the same length.
    const one = search({ beam: 2 });
    expect(
      one.advance(
        rows([
          [4, 0.6],
          [5, 0.4],
          [6, 0.001],
          [7, 0.001],
          [8, 0.001],
        ]),
        0,
        3,
      ),
    ).toEqual([0, 0]);
    const second = rows(
      [
        [6, 0.3],
        [7, 0.3],
        [8, 0.2],
        [9, 0.1],
        [END, 0.1],
      ],
      [
        [6, 0.9],
        [7, 0.04],
        [8, 0.03],
        [9, 0.02],
        [END, 0.01],
      ],
    );
    // .36 for 5 6, then .18 for 4 6: the hypotheses change places.
    expect(one.advance(second, 0, 3)).toEqual([1, 0]);
    const third = rows(
      [
        [END, 0.9],
        [7, 0.04],
        [8, 0.03],
        [9, 0.02],
        [10, 0.01],
      ],
      [
        [END, 0.4],
        [7, 0.3],
        [8, 0.1],
        [9, 0.1],
        [10, 0.1],
      ],
    );
    one.advance(third, 0, 3);
    expect(one).toMatchObject({ done: true, tokens: [5, 6] });
  });

  it('prefers the better score per token, the end counted', () => {
    // log .3 / 1 = −1.204 for ending at once, (log .7 + log .6) / 2 = −.434 for 4 </s>.
    const one = search({ beam: 2 });
    one.advance(
      rows([
        [4, 0.7],
        [END, 0.3],
        [5, 0.001],
        [6, 0.001],
        [7, 0.001],
      ]),
      0,
      3,
    );
    expect(one.done).toBe(false);
    const next = [
      [END, 0.6],
      [5, 0.1],
      [6, 0.1],
      [7, 0.1],
      [8, 0.1],
    ] as const;
    one.advance(rows(next, next), 0, 3);
    expect(one).toMatchObject({ done: true, tokens: [4] });
  });

  it('cuts off what grows beyond its bound', () => {
    const one = search({ beam: 1, maxLength: { ratio: 1, extra: 1 } });
    for (let i = 0; i < 3; i++) {
      expect(one.done).toBe(false);
      one.advance(
        rows([
          [7, 0.5],
          [8, 0.4],
          [9, 0.1],
        ]),
        0,
        2,
      );
    }
    // 1 · 2 + 1 tokens for two source tokens.
    expect(one).toMatchObject({ done: true, tokens: [7, 7, 7] });
  });
});

describe('finished hypotheses', () => {
  /** With a beam of 2: the end at once (p = .4), or token 7 (.6) and then the end (.55) or more. */
  const finished = (options: SearchOptions): Search => {
    const one = search({ beam: 2, ...options });
    one.advance(
      rows([
        [7, 0.6],
        [END, 0.4],
        [8, 1e-6],
        [9, 1e-7],
        [10, 1e-8],
      ]),
      0,
      5,
    );
    const next = [
      [END, 0.55],
      [8, 0.4],
      [9, 0.02],
      [10, 0.02],
      [11, 0.01],
    ] as const;
    one.advance(rows(next, next), 0, 5);
    return one;
  };

  it('are compared by Σ log p / length^α', () => {
    // Sums: log .4 = −.916 of length 1, log .33 = −1.109 of length 2. The mean prefers the longer one, the sum the shorter.
    expect(finished({}).tokens).toEqual([7]);
    expect(finished({ lengthPenalty: 0 }).tokens).toEqual([]);
    // −.916 against −1.109 / 2^α: the longer one is better from α = log₂(1.109/.916) = .275 on.
    expect(finished({ lengthPenalty: 0.27 }).tokens).toEqual([]);
    expect(finished({ lengthPenalty: 0.28 }).tokens).toEqual([7]);
  });

  it('are listed with their scores, the best first', () => {
    const { best } = finished({ nbest: 2 });
    expect(best.map(({ tokens }) => tokens)).toEqual([[7], []]);
    expect(best[0].score).toBeCloseTo(Math.log(0.6 * 0.55) / 2, 6);
    expect(best[1].score).toBeCloseTo(Math.log(0.4), 6);
    expect(finished({}).best).toEqual([]);
    expect(() => search({ beam: 2, nbest: 3 })).toThrow('nbest: expected at most the beam of 2, found 3');
  });
});
